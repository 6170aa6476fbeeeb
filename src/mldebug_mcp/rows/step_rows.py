"""The rows of a step, without the data: as a recording tells them, else drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mldebug_mcp.batch.read import count_rows
from mldebug_mcp.core.access import OutsideError
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.models.batch import FedBatch
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
from mldebug_mcp.rows.sampler import SamplerOptions, Settled, settle

AROUND = 3
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
    recording = read_recording(files, range(max(0, step - AROUND), step + AROUND + 1)) if files else Recording()
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
    near = [neighbour for neighbour in range(max(1, number - AROUND), number + AROUND + 1) if neighbour != number]
    return Fed(
        batches=[FedBatch(rank=micro.rank, epoch=micro.epoch, rows=_rows(orders, micro)) for micro in micros],
        around=[row for neighbour in near for micro in plan.step(neighbour) for row in _rows(orders, micro)],
        before=_before(orders, micros, number, first),
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
    return 1 if loss is None or len(loss) < 2 else int(median(np.diff(loss.step)))


def _rows(orders: Orders, micro: MicroBatch) -> list[RowId]:
    return [*orders.rows_at(micro.epoch, micro.places)]


def _before(orders: Orders, micros: Sequence[MicroBatch], number: int, first: int) -> dict[RowId, list[int]]:
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
