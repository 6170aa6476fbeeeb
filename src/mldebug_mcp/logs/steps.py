"""Where a run is at each record: the step of every record, and where the counter starts again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.columns import Column
from mldebug_mcp.logs.run import Floats

if TYPE_CHECKING:
    from mldebug_mcp.logs.builder import RunBuilder

INTERLEAVED = 0.05
"""Share of records out of order above which a log has several writers at a time, not restarts; chosen: a run does not
restart every twenty records."""
MANY_RESTARTS = 20
"""Records out of order, up to which each is looked at for what it repeats; chosen: a run is not resumed more often."""


def step_axis(builder: RunBuilder, named: Mapping[str, Column]) -> tuple[Floats, str]:
    """Return the step of every record, shape (records,), and what a step is."""
    for name in ("step", "epoch"):
        column = named.get(name)
        if column is None:
            continue
        value = column.values()
        finite = np.isfinite(value)
        everywhere = len(value) == builder.rows and bool(finite.all())
        if not finite.all():
            value = value[finite]
        if len(value) * 2 >= builder.records and not _stands_still(value, name):
            # A record without a step belongs to the last one seen.
            step = value if everywhere else _carried_forward(column.arrays()[0][finite], value, builder.rows)
            return (_unrolled(builder, step, named.get("epoch")) if name == "step" else step), name
    if builder.rows:
        builder.note("the log has no step counter: records are counted instead")
    return np.arange(1, builder.rows + 1, dtype=np.float64), "record"


def _unrolled(builder: RunBuilder, step: Floats, epochs: Column | None) -> Floats:
    """Count on over epochs where the step counter starts again with each of them."""
    if epochs is None or not len(epochs):
        return step
    falls = np.flatnonzero(step[1:] < step[:-1]) + 1
    if not len(falls):
        return step
    epoch = _carried_forward(*epochs.arrays(), builder.rows)
    if not bool(np.all(epoch[falls] > epoch[falls - 1])):
        return step
    builder.note("the step counter starts again with each epoch: steps are counted on over epochs")
    rises = np.diff(step)
    interval = float(np.median(rises[rises > 0])) if bool(np.any(rises > 0)) else 1.0
    offset = np.zeros(builder.rows)
    # A counter that starts at 0 begins one interval after the last step of the epoch before.
    offset[falls] = step[falls - 1] + np.where(step[falls] == 0, interval, 0.0)
    return step + np.cumsum(offset)


def segment_starts(
    builder: RunBuilder, step: Floats, breaks: Sequence[int], metrics: Mapping[str, Column]
) -> list[int]:
    """Return the rows at which a segment starts: where the step counter falls back and goes on from there.

    Args:
        builder: Gets a note of what is out of order.
        step: Step of every record, shape (records,).
        breaks: Rows at which the readers saw another part begin.
        metrics: The columns without those that count.
    """
    if not len(step):
        return [0]
    starts = {0, *(row for row in breaks if row < len(step) and step[row] <= step[row - 1])}
    falls = np.flatnonzero(step[1:] < step[:-1]) + 1
    # A single record out of order is no restart: after a restart the counter stays below where it had been.
    restarts = {row for row in falls.tolist() if _stays_below(step, row)}
    others = [row for row in falls.tolist() if row not in restarts]
    again = [row for row in others if _is_logged_again(step, row, metrics)] if len(others) <= MANY_RESTARTS else []
    if len(again) <= max(3, INTERLEAVED * len(step)):
        restarts.update(again)
    stray = len(falls) - len(starts.union(restarts)) + 1
    if stray > max(1, INTERLEAVED * len(step)):
        builder.note(f"{len(falls)} record(s) out of order: several writers share this log; sorted by step")
        return sorted(starts)
    starts.update(restarts)
    if stray:
        builder.note(f"{stray} record(s) out of order: sorted by step")
    return sorted(starts)


def _stands_still(values: Floats, name: str) -> bool:
    """Say whether a counter repeats itself so often that it is no counter of the records.

    Several evaluations of one step repeat it rightly, many records within one epoch do not make the epoch their step.
    """
    if len(values) < 3 or ascends(values):
        return False
    rises = np.diff(values)
    if name == "step" and bool(np.all(rises >= 0)):
        return not bool(np.any(rises))
    return float(np.mean(rises == 0)) > (0.75 if name == "step" else 0.5)


def ascends(values: Floats) -> bool:
    """Say whether each value is larger than the one before."""
    return bool(np.all(values[1:] > values[:-1]))


def _stays_below(step: Floats, row: int) -> bool:
    """Say whether the counter goes on from where it fell to, or fell to where the log began."""
    following = step[row : row + 3]
    return bool(step[row] <= step[0]) or (len(following) >= 2 and bool(np.all(following < step[row - 1])))


def _is_logged_again(step: Floats, row: int, metrics: Mapping[str, Column]) -> bool:
    """Say whether a record has a metric that was logged at its step before: what a resume repeats may be short."""
    earlier = np.flatnonzero(step[:row] == step[row]).tolist()
    return any(_holds(column, row) and any(_holds(column, one) for one in earlier) for column in metrics.values())


def _holds(column: Column, row: int) -> bool:
    return column.before(row + 1) > column.before(row)


def _carried_forward(at: NDArray[np.int64], value: Floats, rows: int) -> Floats:
    """Return the value at each row, shape (rows,): a row without one has that of the last row before it."""
    held = np.diff(np.append(at, rows))
    held[0] += at[0]
    return np.repeat(value, held)
