"""The verb `rows_at`: which rows were in the batch of a step, and what is odd in them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mldebug_mcp.batch import Batch, Sequences
from mldebug_mcp.batch.read import DataSet, count_rows, open_data
from mldebug_mcp.batch.sequences import Bools, Floats, Ints
from mldebug_mcp.batch.tokenizer import Tokenizer, load_tokenizer
from mldebug_mcp.core.access import OutsideError, is_file, is_folder, require
from mldebug_mcp.core.arrays import median, median_gap
from mldebug_mcp.core.conventions import STD_PER_MAD
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import counted, figure, percent, shorten
from mldebug_mcp.judge.batch import inspect_batch
from mldebug_mcp.judge.batch_pass import view
from mldebug_mcp.judge.next_call import is_sendable
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.models import Call
from mldebug_mcp.models.data import BatchFinding, BatchInspection, Beside, FedBatch, FedRow, RowsAt, RowView
from mldebug_mcp.rows.plan import (
    RECORDING_MOST_ROWS,
    MicroBatch,
    Orders,
    Recording,
    RowId,
    fed_before,
    read_recording,
    recordings_in,
)
from mldebug_mcp.rows.sampler import PastEnd, Sampler, SamplerOptions, Settled, settle

# The rows of a step, without the data: as a recording tells them, else drawn again.


STEPS_PER_SIDE = 3
"""Steps on either side whose rows the step's rows are compared with."""
MOST_NOTES = 5


@dataclass(slots=True)
class Fed:
    """What is known of the rows of a step, without the data.

    Args:
        batches: Its micro-batches.
        around: The rows of the steps around it.
        before: Earlier steps that were fed the same rows.
        recorded: Whether a recording tells it; else it is drawn again.
        basis, notes: On what it rests, and what else is to be known.
    """

    batches: list[FedBatch]
    around: list[RowId]
    before: dict[RowId, list[int]]
    recorded: bool
    basis: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[RowId]:
        """Each row once, in the order in which they were fed."""
        return list(dict.fromkeys(row for batch in self.batches for row in batch.rows))


def fed_at(place: Path, step: int, options: SamplerOptions, data: Path | None) -> Fed:
    """Return the rows of a step: as recorded, else drawn again.

    Args:
        place: The log or the folder of the run.
        step: As the log numbers it.
        options: What the caller says of the sampler.
        data: The data set, whose rows are counted where nothing else tells how many there are.

    Raises:
        InputError: the rows are not known exactly; the message says why.
    """
    files = recordings_in(place)
    recording = (
        read_recording(files, range(max(0, step - STEPS_PER_SIDE), step + STEPS_PER_SIDE + 1)) if files else Recording()
    )
    if step in recording.fed:
        return _recorded(recording, step, fed_before(files, step, _ids(recording, [step])))
    run = _run(place)
    data_rows = count_rows(data) if data is not None and options.rows is None else None
    try:
        settled = settle(options, place, run, recording.head, data_rows)
    except InputError as error:
        if not recording.steps:
            raise
        raise InputError(
            f"the recording has rows of {counted(recording.steps, 'step')} from {recording.first} to {recording.last}, "
            f"and none of step {step}; nor can they be drawn again: {error}"
        ) from None
    return _drawn(settled, step, run)


def _recorded(recording: Recording, step: int, before: dict[RowId, list[int]]) -> Fed:
    ranks = recording.fed[step]
    missing = sorted(recording.ranks - set(ranks))
    notes = [f"rank {rank} recorded no rows at this step" for rank in missing[:MOST_NOTES]]
    world = recording.sampler.get("world")
    if isinstance(world, int) and world > len(recording.ranks):
        notes.append(
            f"{len(recording.ranks)} of {world} ranks have a recording here; the rows of the others are missing"
        )
    if any(len(rank) >= RECORDING_MOST_ROWS for rank in ranks.values()):
        notes.append(f"a recorder keeps {RECORDING_MOST_ROWS:,} rows of a step and rank; there may have been more")
    if recording.broken:
        notes.append(f"{counted(recording.broken, 'line')} of the recording could not be read")
    what = "numbers of rows in the data set" if recording.kind == "index" else "keys of the rows' tokens"
    return Fed(
        batches=[FedBatch(rank=rank, epoch=None, rows=rows) for rank, rows in sorted(ranks.items())],
        around=_ids(recording, [number for number in recording.fed if number != step]),
        before=before,
        recorded=True,
        basis=[f"the recorder wrote down {what} as they were fed"],
        notes=notes,
    )


def _ids(recording: Recording, steps: Sequence[int]) -> list[RowId]:
    return [row for step in steps for rows in recording.fed[step].values() for row in rows]


def _drawn(settled: Settled, step: int, run: Run | None) -> Fed:
    """Draw the rows of a step again, as the sampler drew them."""
    plan, first = settled.plan, settled.first_step
    number = step - first + 1
    if number < 1:
        raise InputError(f"step {step} comes before the first one, {first}; name a step of the run")
    ends = None if run is None else _planned_end(run)
    if ends is not None and step > ends:
        raise InputError(f"step {step} comes after the last one: the run has {figure(ends)} steps; name one of them")
    micros = [micro_batch for micro_batch in plan.step(number) if micro_batch.places.size]
    orders = Orders(plan)
    notes = [
        "rows are numbered as the sampler saw the data: after filtering, packing and shuffling, not as in a raw file"
    ]
    last = max((float(series.step[-1]) for series in run.series.values() if len(series)), default=None) if run else None
    if last is not None and step > last:
        notes.append(f"the log ends at step {figure(last)}")
    interval = _interval(run)
    if interval > 1:
        notes.append(
            f"the log has a record every {interval} steps: where it tells means, what it shows at step {step} was "
            f"fed from step {max(first, step - interval + 1)} on"
        )
    near = [
        neighbour
        for neighbour in range(max(1, number - STEPS_PER_SIDE), number + STEPS_PER_SIDE + 1)
        if neighbour != number
    ]
    return Fed(
        batches=[FedBatch(rank=micro.rank, epoch=micro.epoch, rows=_rows(orders, micro)) for micro in micros],
        around=[row for neighbour in near for micro in plan.step(neighbour) for row in _rows(orders, micro)],
        before=_earlier_steps(orders, micros, number, first),
        recorded=False,
        basis=settled.basis,
        notes=notes,
    )


def _planned_end(run: Run) -> float | None:
    """Return the last step of the run by its settings or counters, where its log does not go beyond it."""
    plan = plan_of(run)
    return plan.planned if plan is not None and plan.unit == "step" and plan.reached <= plan.planned else None


def _interval(run: Run | None) -> int:
    """Return how many steps lie between two records, usually."""
    loss = run.series.get("loss") if run is not None else None
    return 1 if loss is None or len(loss) < 2 else int(median_gap(loss.step))


def _rows(orders: Orders, micro: MicroBatch) -> list[RowId]:
    return [*orders.rows_at(micro.epoch, micro.places)]


def _earlier_steps(orders: Orders, micros: Sequence[MicroBatch], number: int, first: int) -> dict[RowId, list[int]]:
    """Return the steps of this pass and of the one before in which the rows were fed, numbered as in the log."""
    found: dict[RowId, list[int]] = {}
    if orders.plan.resumed_at:
        return found
    rows = np.array([row for micro in micros for row in _rows(orders, micro)])
    fed: list[tuple[int, int, int]] = []
    before = min(micro.epoch for micro in micros) - 1
    if before >= 0:
        places_before = orders.places_of(before, rows)
        fed += [
            (before, place, row)
            for place, row in zip(places_before, orders.rows_at(before, np.array(places_before, np.int64)), strict=True)
        ]
    # Within a pass a row comes again only where a rank is given the first ones to fill its last batch.
    places = {(micro.epoch, place) for micro in micros for place in micro.places.tolist()}
    fed += [(epoch, place, *orders.rows_at(epoch, np.array([place]))) for epoch, place in sorted(places)]
    for epoch, place, row in fed:
        step = orders.plan.step_with(epoch, place)
        if step is not None and step < number:
            found.setdefault(row, []).append(step + first - 1)
    return found


def _run(place: Path) -> Run | None:
    """Return the run, or None where no log of it can be read: options may say enough."""
    try:
        return read_run(place)
    except OutsideError:
        raise
    except InputError:
        return None


# The rows of a step in the data set: shown, and compared with those of the steps around.


MOST_ROWS = 4096
"""Rows of a step, and of the steps around it, that are read. Chosen: some seconds' work."""
MOST_ODD = 3
"""Ways listed in which a row is odd."""


@dataclass(frozen=True, slots=True)
class Data:
    """A data set that rows are looked up in; path, tokenizer and purpose are as `inspect_batch` takes them."""

    path: str
    tokenizer: Tokenizer | None
    purpose: str

    @classmethod
    def of(cls, path: str | Path, tokenizer: str | Path | None, purpose: str) -> Data:
        """Return a data set with its tokenizer loaded."""
        return cls(str(path), None if tokenizer is None else load_tokenizer(tokenizer), purpose)

    def opened(self) -> DataSet:
        """Return it for reading."""
        return open_data(self.path, self.tokenizer, None, self.purpose)


@dataclass(frozen=True, slots=True)
class ShownRows:
    """What the data set shows of the rows of a step and of those around it, and what is odd, most different first.

    `findings` are on the rows of the step alone; `notes` say what could not be looked at.
    """

    views: Mapping[int, RowView]
    odd: Mapping[int, list[str]]
    here: Beside
    around: Beside | None
    findings: Sequence[BatchFinding]
    notes: Sequence[str]


def look_up(data: Data, rows: Sequence[int], around: Sequence[int]) -> ShownRows:
    """Look at the rows of a step, and at those of the steps around it.

    Raises:
        InputError: they are not in the data, or the data cannot be read.
        MissingExtraError: a format needs a package that is not installed.
    """
    fed = dict.fromkeys(rows)
    near = list(dict.fromkeys(number for number in around if number not in fed))[:MOST_ROWS]
    own = list(fed)[:MOST_ROWS]
    batch = next(replace(data.opened(), chosen=[*own, *near]).batches())
    there = set(batch.numbers.tolist())
    missing = [number for number in own if number not in there]
    if missing:
        raise InputError(f"{data.path[:200]}: row {missing[0]} of the step is not in it; is it the data of this run?")
    here = inspect_batch(data.path, data.tokenizer, None, batch.purpose, rows=own)
    inspection_around = inspect_batch(data.path, data.tokenizer, None, batch.purpose, rows=near) if near else None
    usual = set() if inspection_around is None else {finding.check for finding in inspection_around.findings}
    odd: dict[int, list[str]] = {}
    for odd_row in odd_rows(batch, own):
        odd.setdefault(odd_row.row, []).append(odd_row.says)
    return ShownRows(
        views=_views(batch, own),
        odd={row: says[:MOST_ODD] for row, says in odd.items()},
        here=_counts(here),
        around=None if inspection_around is None else _counts(inspection_around),
        findings=[finding for finding in here.findings if finding.check not in usual],
        notes=[note for note in here.notes if "tokenizer" in note],
    )


def rows_of_keys(data: Data, keys: Collection[str]) -> dict[str, int]:
    """Return the first row whose tokens have a key, for each key that is found.

    A key is BLAKE2b of the tokens as 64-bit little-endian numbers, in 16 hexadecimal digits, as the recorder makes it.
    """
    found: dict[str, int] = {}
    for batch in data.opened().batches():
        for side in batch.sides:
            starts, stops = side.bounds
            for index, row in enumerate(side.numbers.tolist()):
                tokens = np.asarray(side.ids.flat[int(starts[index]) : int(stops[index])], "<i8")
                key = hashlib.blake2b(tokens.tobytes(), digest_size=8).hexdigest()
                if key in keys:
                    found.setdefault(key, row)
        checkpoint("looking for the rows by their keys")
    return found


def _views(batch: Batch, rows: Sequence[int]) -> dict[int, RowView]:
    side = batch.sides[0] if batch.sides else None
    if side is None:
        return {}
    places = {row: index for index, row in enumerate(side.numbers.tolist())}
    return {row: view(batch, side, places[row]) for row in rows if row in places}


def _counts(inspection: BatchInspection) -> Beside:
    batch = inspection.batch
    return Beside(
        rows=batch.rows,
        tokens=batch.tokens,
        trained_tokens=batch.trained_tokens,
        longest=batch.lengths.greatest,
        findings=[finding.check for finding in inspection.findings],
    )


MOST_BEFORE = 5
LAST_STEP = 2**53
"""Steps below which each has a float of its own."""


def rows_at(
    path: str | Path,
    step: int,
    data: str | Path | None = None,
    tokenizer: str | Path | None = None,
    *,
    purpose: str = "auto",
    sampler: Sampler | None = None,
    seed: int | None = None,
    batch_size: int | None = None,
    accumulation: int | None = None,
    world: int | None = None,
    rows: int | None = None,
    drop_last: bool | None = None,
    split_batches: bool | None = None,
    dispatch_batches: bool | None = None,
    past_end: PastEnd | None = None,
    first_step: int | None = None,
    resumed_at: Sequence[int] | None = None,
) -> RowsAt:
    """Say which rows of the data were in the batch of a step: as they were recorded, else drawn again from the seed.

    Args:
        path: The log or the folder of a run, or a recording.
        step: The step, as the log numbers it.
        data: The training data as the sampler saw them, in any form that `inspect_batch` reads, to show the rows.
        tokenizer: The tokenizer's folder or file, to decode them.
        purpose: What the data are for, as `inspect_batch` takes it.
        sampler: How rows were sampled, where the run's files do not say: "transformers", "accelerate", "lightning",
            "distributed", "random", "shuffle" or "sequential".
        seed: What the sampler was seeded with.
        batch_size: Rows of a micro-batch of one rank.
        accumulation: Micro-batches of a step.
        world: Ranks that rows are divided among.
        rows: Rows of the data, as the sampler counts them.
        drop_last: Whether the loader leaves out a last, smaller batch.
        split_batches: Whether Accelerate splits each batch among the ranks.
        dispatch_batches: Whether Accelerate's first rank reads for all.
        past_end: What becomes of micro-batches at the end of a pass that make no whole step: "step" or "carry".
        first_step: The number that the log gives the first step: 0 or 1.
        resumed_at: Steps after which a resumed run began its pass anew (`ignore_data_skip`).

    Returns:
        The rows, exactly: the steps in which they were before, and with `data` what they hold and what is odd in them.

    Raises:
        InputError: the rows are not known exactly; the message says why, and what would make it so.
        MissingExtraError: the data or the tokenizer need a package that is not installed.
    """
    place = expanded(path)
    require(place)
    if not is_file(place) and not is_folder(place):
        raise InputError(f"{shorten(str(path), 200)}: no such file or folder; name the log or the folder of a run")
    if isinstance(step, bool) or not 0 <= step < LAST_STEP:
        raise InputError(f"step is {step}; a step is a whole number from 0 to {LAST_STEP - 1}")
    resumed = None if resumed_at is None else tuple(sorted(resumed_at))
    options = SamplerOptions(
        sampler, seed, batch_size, accumulation, world, rows, drop_last, split_batches, dispatch_batches, past_end,
        first_step, resumed,
    )  # fmt: skip
    named = None if data is None else Data.of(data, tokenizer, purpose)
    fed = fed_at(place, step, options, None if named is None else expanded(named.path))
    if named is not None:
        fed = _with_numbers(fed, named)
    shown = None if named is None else _shown_rows(fed, named)
    return _answer(str(path), step, fed, shown, named)


def _with_numbers(fed: Fed, data: Data) -> Fed:
    keys = {row for row in (*fed.rows, *fed.around) if isinstance(row, str)}
    if not keys:
        return fed
    numbers = rows_of_keys(data, keys)
    missing = sum(row not in numbers for row in fed.rows)
    if missing:
        fed.notes.append(
            f"{counted(missing, 'row')} of the step not found in the data by their tokens: name the data as they were "
            "tokenized for this run, with the tokenizer"
        )
    return replace(
        fed,
        batches=[
            batch.model_copy(update={"rows": [numbers.get(str(row), row) for row in batch.rows]})
            for batch in fed.batches
        ],
        around=[numbers.get(str(row), row) for row in fed.around],
        before={numbers.get(str(row), row): steps for row, steps in fed.before.items()},
    )


def _shown_rows(fed: Fed, data: Data) -> ShownRows | None:
    """Return what the data show of the rows; where they cannot be shown, the notes say why: the rows stay true."""
    own = [row for row in fed.rows if isinstance(row, int)]
    try:
        return look_up(data, own, [row for row in fed.around if isinstance(row, int)]) if own else None
    except OutsideError:
        raise
    except InputError as error:
        fed.notes.append(f"the rows could not be shown: {error}")
        return None


def _answer(path: str, step: int, fed: Fed, shown: ShownRows | None, data: Data | None) -> RowsAt:
    odd = list(shown.odd) if shown is not None else []
    rows = sorted(fed.rows, key=lambda row: odd.index(row) if row in odd else len(odd))
    return RowsAt(
        path=path,
        step=step,
        source="recorded" if fed.recorded else "reconstructed",
        row_count=sum(len(batch.rows) for batch in fed.batches),
        batches=fed.batches,
        rows=[_row(row, fed, shown) for row in rows],
        here=None if shown is None else shown.here,
        around=None if shown is None else shown.around,
        findings=[] if shown is None else list(shown.findings),
        basis=fed.basis,
        next_step=_next_call(path, data),
        notes=[*fed.notes, *(() if shown is None else shown.notes)],
    )


def _row(row: RowId, fed: Fed, shown: ShownRows | None) -> FedRow:
    view = shown.views.get(row) if shown is not None and isinstance(row, int) else None
    return FedRow(
        row=row,
        before=fed.before.get(row, [])[-MOST_BEFORE:],
        odd=shown.odd.get(row, []) if shown is not None and isinstance(row, int) else [],
        tokens=None if view is None else view.tokens,
        trained=None if view is None else view.trained,
        text="" if view is None else view.text,
    )


def _next_call(path: str, data: Data | None) -> Call | None:
    if data is not None and is_sendable(data.path):
        return Call(tool="inspect_batch", arguments={"path": data.path}, why="is the rest of the data sound?")
    if is_sendable(path):
        return Call(tool="explain", arguments={"id": "bad_batch"}, why="a bad batch against a high learning rate")
    return None


# In what a few rows of a data set differ from others: numbers compared with what is usual.


MIN_ROWS_FOR_USUAL = 8
"""Rows that are needed to know what is usual. Chosen: of fewer a spread cannot be measured."""
MIN_ODD_DEVIATIONS = 6.0
"""Robust standard deviations of an odd row. Chosen: ten rows with five numbers are seen; lengths have long tails."""
LEAST_SPREAD = 0.05
"""Spread of a share that is taken for noise, at least. Chosen: a token more or less in a short row."""
LEAST_LOG_SPREAD = 0.2
"""Spread of a logarithm that is taken for noise, at least. Chosen: a fifth more or less."""


class Oddity(NamedTuple):
    """In what a row differs: by how many robust standard deviations, in words."""

    row: int
    by: float
    says: str


def odd_rows(batch: Batch, rows: Collection[int]) -> list[Oddity]:
    """Return what some rows of a batch differ in from its other rows, what differs most first."""
    found = [token for side in batch.sides for token in _in_tokens(side, rows, batch.unit)]
    found += _in_numbers({**batch.floats, **batch.cells}, batch.numbers, rows)
    return sorted((oddity for oddity in found if oddity.by > MIN_ODD_DEVIATIONS), key=lambda oddity: -oddity.by)


def _in_tokens(side: Sequences, rows: Collection[int], unit: str) -> Iterator[Oddity]:
    where = f" ({side.name})" if side.name else ""
    here = np.isin(side.numbers, list(rows))
    each = [_tokens(side, index) for index in range(side.rows)]
    lengths = side.lengths.astype(np.float64)
    for index, by in _outlying_values(np.log1p(lengths), here, LEAST_LOG_SPREAD, both=True):
        summary = f"{lengths[index]:.0f} {unit} long{where}; {figure(median(lengths[~here]))} is usual around it"
        yield Oddity(int(side.numbers[index]), by, summary)
    for shares, says in (
        (_commonest(each), f"of its {unit} are the same one{where}"),
        (_unknown(each, here), f"of its {unit} are in no row around it{where}"),
    ):
        for index, by in _outlying_values(shares, here, LEAST_SPREAD):
            summary = f"{percent(float(shares[index]))} {says}; {percent(median(shares[~here]))} is usual"
            yield Oddity(int(side.numbers[index]), by, summary)


def _in_numbers(columns: Mapping[str, object], numbers: Ints, rows: Collection[int]) -> Iterator[Oddity]:
    here = np.isin(numbers, list(rows))
    for name, column in columns.items():
        if not isinstance(column, np.ndarray) or len(column) != len(numbers) or column.dtype.kind not in "fiu":
            continue
        sizes = np.abs(column.astype(np.float64)).reshape(len(column), -1).max(axis=1) if column.size else here * 0.0
        called, finite = shorten(name, 60), np.isfinite(sizes)
        for index in np.flatnonzero(here & ~finite).tolist():
            yield Oddity(int(numbers[index]), np.inf, f"{called} is not finite")
        usual = sizes[~here & finite]
        for index, by in _outlying_values(np.log1p(np.where(finite, sizes, 0.0)), here & finite, LEAST_LOG_SPREAD):
            summary = f"{called} is up to {figure(sizes[index])} in size; {figure(median(usual))} is usual"
            yield Oddity(int(numbers[index]), by, summary)


def _outlying_values(values: Floats, here: Bools, least: float, *, both: bool = False) -> Iterator[tuple[int, float]]:
    """Yield where `here` is, and by how many robust standard deviations the value lies above the others."""
    others = values[~here]
    if len(others) < MIN_ROWS_FOR_USUAL:
        return
    middle = median(others)
    spread = max(STD_PER_MAD * median(np.abs(others - middle)), least)
    for index in np.flatnonzero(here).tolist():
        by = (float(values[index]) - middle) / spread
        yield index, abs(by) if both else by


def _tokens(side: Sequences, index: int) -> Ints:
    start, stop = (int(bound[index]) for bound in side.bounds)
    return np.asarray(side.ids.flat[start : max(start, stop)], np.int64)


def _commonest(rows: list[Ints]) -> Floats:
    return np.array([np.unique(row, return_counts=True)[1].max() / len(row) if len(row) else 0.0 for row in rows])


def _unknown(rows: list[Ints], here: Bools) -> Floats:
    """Return the share of each row's tokens that no other row around has."""
    around = [np.unique(row) for row, inside in zip(rows, here.tolist(), strict=True) if not inside]
    if not around:
        return np.zeros(len(rows))
    tokens, counts = np.unique(np.concatenate(around), return_counts=True)
    in_one, in_two = tokens, tokens[counts > 1]  # of a row around, itself does not count
    return np.array(
        [
            1 - float(np.isin(row, in_one if inside else in_two).mean()) if len(row) else 0.0
            for row, inside in zip(rows, here.tolist(), strict=True)
        ]
    )
