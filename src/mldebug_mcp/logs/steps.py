"""Where a run is at each record: the step of every record, and where the counter starts again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.columns import Column
from mldebug_mcp.logs.names import COUNTERS, is_telling
from mldebug_mcp.logs.run import Floats

if TYPE_CHECKING:
    from mldebug_mcp.logs.builder import RunBuilder

INTERLEAVED = 0.05
"""Share of records out of order above which a log has several writers at a time, not restarts; chosen: a run does not
restart every twenty records."""
MANY_RESTARTS = 20
"""Records out of order, up to which each is looked at for what it repeats; chosen: a run is not resumed more often."""

MOST_STEPS = 2.0**63
"""No program counts further."""
DONE_AGAIN = 0.2
"""Share of records at whole epochs logged before, below which they were done again; chosen: of two to an epoch it is
a half."""


def step_axis(builder: RunBuilder, named: Mapping[str, Column]) -> tuple[Floats, str]:
    """Return the step of every record, shape (records,), and what a step is."""
    for name in COUNTERS:
        column = named.get(name)
        if column is None:
            continue
        value = column.values()
        finite = np.abs(value) < MOST_STEPS
        everywhere = len(value) == builder.rows and bool(finite.all())
        counted = _told_once(value, named) if everywhere and name != "step" else value
        if not finite.all():
            value = value[finite]
        if len(value) * 2 >= builder.records and not _stands_still(counted[np.abs(counted) < MOST_STEPS], name):
            # A record without a step belongs to the last one seen.
            step = value if everywhere else _carried_forward(column.arrays()[0][finite], value, builder.rows)
            along = (_unrolled if name == "step" else _spread)(builder, step, named)
            if along is not None:
                return along, name
    if builder.rows:
        builder.note("the log has no step counter: records are counted instead")
    return np.arange(1, builder.rows + 1, dtype=np.float64), "record"


def _unrolled(builder: RunBuilder, step: Floats, named: Mapping[str, Column]) -> Floats:
    """Count on over epochs, or episodes, where the step counter starts again with each of them."""
    whole = next((name for name in COUNTERS[1:] if name in named and len(named[name])), None)
    if whole is None:
        return step
    falls = np.flatnonzero(step[1:] < step[:-1]) + 1
    if not len(falls):
        return step
    epoch = _carried_forward(*named[whole].arrays(), builder.rows)
    if not bool(np.all(epoch[falls] > epoch[falls - 1])):
        return step
    builder.note(f"the step counter starts again with each {whole}: steps are counted on over {whole}s")
    rises = np.diff(step)
    interval = float(np.median(rises[rises > 0])) if bool(np.any(rises > 0)) else 1.0
    offset = np.zeros(builder.rows)
    # A counter that starts at 0 begins one interval after the last step of the epoch before.
    offset[falls] = step[falls - 1] + np.where(step[falls] == 0, interval, 0.0)
    return step + np.cumsum(offset)


def _spread(builder: RunBuilder, epoch: Floats, named: Mapping[str, Column]) -> Floats | None:
    """Tell records of one epoch apart: a rounded epoch, or that of several records, is no step of its own.

    The records of the fullest metric that has several values there are spread evenly from their epoch up to the next;
    the others keep to the one before them. A whole epoch that now and then stands twice was done again. None if they
    all share one epoch, which then tells nothing.
    """
    whole = bool(np.all(epoch == np.floor(epoch)))
    if (
        len(epoch) < 2
        or bool(np.any(epoch[1:] < epoch[:-1]))
        or (whole and np.mean(epoch[1:] == epoch[:-1]) < DONE_AGAIN)
    ):
        return epoch
    column = next((one for one in _telling(named) if _contradicts(one, epoch)), None)
    if column is None:
        return epoch
    distinct = np.unique(epoch)
    if len(distinct) == 1:
        return None
    at = column.arrays()[0]
    builder.note("several records stand at one epoch: they are spread evenly up to the next")
    ordinal = np.zeros(builder.rows)
    ordinal[at] = np.arange(len(at)) - np.searchsorted(epoch[at], epoch[at], side="left")
    last = np.maximum.accumulate(np.where(np.isin(np.arange(builder.rows), at), np.arange(builder.rows), 0))
    ordinal = np.where(epoch == epoch[last], ordinal[last], 0.0)
    gaps = np.diff(distinct, append=2 * distinct[-1] - distinct[-2])
    place = np.searchsorted(distinct, epoch)
    most = np.zeros(len(distinct))
    np.maximum.at(most, place, ordinal)
    return epoch + gaps[place] * ordinal / (most[place] + 1)


def _contradicts(column: Column, step: Floats) -> bool:
    """Say whether a metric has several values at one step, and not the same ones."""
    at, value = column.arrays()
    again = np.flatnonzero(step[at[1:]] == step[at[:-1]]) + 1
    return not bool(np.all(np.isclose(value[again], value[again - 1], equal_nan=True)))


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
    if len(falls) and _count_apart(step, metrics):
        builder.note("records of two kinds count their steps apart: sorted by step")
        return sorted(starts)
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


def _count_apart(step: Floats, metrics: Mapping[str, Column]) -> bool:
    """Say whether two kinds of records take turns, each with a counter that only goes up: a learner and its actor."""
    columns = _telling(metrics)
    if not columns:
        return False
    of_one = np.zeros(len(step), dtype=bool)
    of_one[columns[0].arrays()[0]] = True
    one, other = step[of_one], step[~of_one]
    return len(one) > 1 and len(other) > 1 and ascends(one) and ascends(other)


def _told_once(counter: Floats, named: Mapping[str, Column]) -> Floats:
    """Return a counter at the records of the metric that most records hold, each told once.

    Training and evaluation may take turns in an epoch, and several processes print the same.
    """
    at, metric = _telling(named)[0].arrays()
    counted = counter[at]
    again = (counted[1:] == counted[:-1]) & (metric[1:] == metric[:-1])
    return counted[np.append(True, ~again)] if len(at) else counted


def _telling(named: Mapping[str, Column]) -> list[Column]:
    """Return the columns of metrics that only training or evaluation has, of all where there is none, fullest first."""
    known = [column for name, column in named.items() if is_telling(name)]
    others = [column for name, column in named.items() if name not in COUNTERS]
    return sorted(known or others or list(named.values()), key=len, reverse=True)


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
