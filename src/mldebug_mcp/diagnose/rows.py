"""The verb `rows_at`: which rows were in the batch of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mldebug_mcp.access import OutsideError, is_file, is_folder, require
from mldebug_mcp.batch.picked import count_rows
from mldebug_mcp.diagnose.next_call import is_sendable
from mldebug_mcp.diagnose.rows_data import Data, Seen, look_up, rows_of_keys
from mldebug_mcp.diagnose.rows_settings import PastEnd, Sampler, SamplerOptions, Settled, settle
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.models import Call
from mldebug_mcp.models.rows import FedBatch, FedRow, RowsAt
from mldebug_mcp.paths import expanded
from mldebug_mcp.rows.order import Orders
from mldebug_mcp.rows.plan import MicroBatch
from mldebug_mcp.rows.recording import MOST_ROWS, Recording, RowId, fed_before, read_recording, recordings_in
from mldebug_mcp.text import counted, figure, shorten

AROUND = 3
"""Steps on either side whose rows the step's rows are compared with."""
MOST_BEFORE = 5
LAST_STEP = 2**53


@dataclass(slots=True)
class _Fed:
    """What is known of the rows of a step, without the data.

    Args:
        batches: Its micro-batches.
        around: The rows of the steps around it.
        before: Earlier steps that were fed the same rows.
        recorded: Whether a recording tells it; else it is drawn again.
        basis, notes: On what it rests, and what is to be known beside it.
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
        return list(dict.fromkeys(row for one in self.batches for row in one.rows))


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
        InputError: the rows cannot be told exactly; the message says why, and what would make it so.
        MissingExtraError: the data or the tokenizer need a package that is not installed.
    """
    place = expanded(path)
    require(place)
    if not is_file(place) and not is_folder(place):
        raise InputError(f"{shorten(str(path), 200)}: no such file or folder; name the log or the folder of a run")
    if isinstance(step, bool) or not 0 <= step < LAST_STEP:
        raise InputError(f"step is {step}; a step is a whole number from 0 up")
    resumed = None if resumed_at is None else tuple(sorted(resumed_at))
    options = SamplerOptions(
        sampler, seed, batch_size, accumulation, world, rows, drop_last, split_batches, dispatch_batches, past_end,
        first_step, resumed,
    )  # fmt: skip
    named = None if data is None else Data.of(data, tokenizer, purpose)
    fed = _fed(place, step, options, named)
    if named is not None:
        fed = _with_numbers(fed, named)
    seen = None if named is None else _seen(fed, named)
    return _answer(str(path), step, fed, seen, named)


def _fed(place: Path, step: int, options: SamplerOptions, data: Data | None) -> _Fed:
    """Return the rows of a step: as recorded, else drawn again."""
    files = recordings_in(place)
    recording = read_recording(files, range(max(0, step - AROUND), step + AROUND + 1)) if files else Recording()
    if step in recording.fed:
        return _recorded(recording, step, fed_before(files, step, _ids(recording, [step])))
    run = _run(place)
    data_rows = count_rows(expanded(data.path)) if data is not None and options.rows is None else None
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


def _recorded(recording: Recording, step: int, before: dict[RowId, list[int]]) -> _Fed:
    ranks = recording.fed[step]
    missing = sorted(recording.ranks - set(ranks))
    notes = [f"rank {rank} recorded no rows at this step" for rank in missing[:MOST_BEFORE]]
    world = recording.sampler.get("world")
    if isinstance(world, int) and world > len(recording.ranks):
        notes.append(
            f"{len(recording.ranks)} of {world} ranks have a recording here; the rows of the others are missing"
        )
    if any(len(one) >= MOST_ROWS for one in ranks.values()):
        notes.append(f"a recorder keeps {MOST_ROWS:,} rows of a step and rank; there may have been more")
    if recording.broken:
        notes.append(f"{counted(recording.broken, 'line')} of the recording could not be read")
    told = "numbers of rows in the data set" if recording.kind == "index" else "keys of the rows' tokens"
    return _Fed(
        batches=[FedBatch(rank=rank, rows=rows) for rank, rows in sorted(ranks.items())],
        around=_ids(recording, [one for one in recording.fed if one != step]),
        before=before,
        recorded=True,
        basis=[f"the recorder wrote down {told} as they were fed"],
        notes=notes,
    )


def _ids(recording: Recording, steps: Sequence[int]) -> list[RowId]:
    return [row for step in steps for rows in recording.fed[step].values() for row in rows]


def _drawn(settled: Settled, step: int, run: Run | None) -> _Fed:
    """Draw the rows of a step again, as the sampler drew them."""
    plan, first = settled.plan, settled.first_step
    number = step - first + 1
    if number < 1:
        raise InputError(f"step {step} comes before the first one, {first}; name a step of the run")
    micros = [one for one in plan.step(number) if one.places.size]
    orders = Orders(plan)
    notes = [
        "rows are numbered as the sampler saw the data: after filtering, packing and shuffling, not as in a raw file"
    ]
    last = max((float(one.step[-1]) for one in run.series.values() if len(one)), default=None) if run else None
    if last is not None and step > last:
        notes.append(f"the log ends at step {figure(last)}")
    near = [one for one in range(max(1, number - AROUND), number + AROUND + 1) if one != number]
    return _Fed(
        batches=[FedBatch(rank=one.rank, epoch=one.epoch, rows=_rows(orders, one)) for one in micros],
        around=[row for one in near for micro in plan.step(one) for row in _rows(orders, micro)],
        before=_before(orders, micros, number, first),
        recorded=False,
        basis=settled.basis,
        notes=notes,
    )


def _rows(orders: Orders, micro: MicroBatch) -> list[RowId]:
    return [int(row) for row in orders.of(micro.epoch)[micro.places]]


def _before(orders: Orders, micros: Sequence[MicroBatch], number: int, first: int) -> dict[RowId, list[int]]:
    """Return the steps of this pass and of the one before in which the rows were fed, numbered as in the log."""
    found: dict[RowId, list[int]] = {}
    if orders.plan.resumed_at:
        return found
    rows = np.array([row for one in micros for row in _rows(orders, one)])
    epochs = {one.epoch for one in micros}
    for epoch in sorted({max(0, min(epochs) - 1), *epochs}):
        order = orders.of(epoch)
        for place in np.flatnonzero(np.isin(order, rows)).tolist():
            fed = orders.plan.step_with(epoch, place)
            if fed is not None and fed < number:
                found.setdefault(int(order[place]), []).append(fed + first - 1)
    return found


def _run(place: Path) -> Run | None:
    """Return the run, or None where no log of it can be read: options may say enough."""
    try:
        return read_run(place)
    except OutsideError:
        raise
    except InputError:
        return None


def _with_numbers(fed: _Fed, data: Data) -> _Fed:
    """Return what was recorded as keys of tokens with the numbers of those rows in the data."""
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
    return _Fed(
        batches=[
            one.model_copy(update={"rows": [numbers.get(str(row), row) for row in one.rows]}) for one in fed.batches
        ],
        around=[numbers.get(str(row), row) for row in fed.around],
        before={numbers.get(str(row), row): steps for row, steps in fed.before.items()},
        recorded=fed.recorded,
        basis=fed.basis,
        notes=fed.notes,
    )


def _seen(fed: _Fed, data: Data) -> Seen | None:
    own = [row for row in fed.rows if isinstance(row, int)]
    return look_up(data, own, [row for row in fed.around if isinstance(row, int)]) if own else None


def _answer(path: str, step: int, fed: _Fed, seen: Seen | None, data: Data | None) -> RowsAt:
    odd = list(seen.odd) if seen is not None else []
    rows = sorted(fed.rows, key=lambda row: odd.index(row) if row in odd else len(odd))
    return RowsAt(
        path=path,
        step=step,
        source="recorded" if fed.recorded else "reconstructed",
        row_count=sum(len(one.rows) for one in fed.batches),
        batches=fed.batches,
        rows=[_row(row, fed, seen) for row in rows],
        here=None if seen is None else seen.here,
        around=None if seen is None else seen.around,
        findings=[] if seen is None else list(seen.findings),
        basis=fed.basis,
        next_step=_next(path, data),
        notes=[*fed.notes, *(() if seen is None else seen.notes)],
    )


def _row(row: RowId, fed: _Fed, seen: Seen | None) -> FedRow:
    view = seen.views.get(row) if seen is not None and isinstance(row, int) else None
    return FedRow(
        row=row,
        before=fed.before.get(row, [])[-MOST_BEFORE:],
        odd=seen.odd.get(row, []) if seen is not None and isinstance(row, int) else [],
        tokens=None if view is None else view.tokens,
        trained=None if view is None else view.trained,
        text="" if view is None else view.text,
    )


def _next(path: str, data: Data | None) -> Call | None:
    if data is not None and is_sendable(data.path):
        return Call(tool="inspect_batch", arguments={"path": data.path}, why="is the rest of the data sound?")
    if is_sendable(path):
        return Call(tool="explain", arguments={"id": "bad_batch"}, why="how a bad batch is told from a hot rate")
    return None
