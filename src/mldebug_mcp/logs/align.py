"""Columns → series over one axis of steps, in each segment of an attempt.

The finest counter that most records hold is the axis: steps, over epochs if they start again with each; epochs,
spread within where several records share one; episodes; tokens or samples seen; seconds. Where the counter falls back
and goes on from there, a segment begins: a resume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from mldebug_mcp.core.arrays import are_whole, distinct, median
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows, ascends, carried_forward
from mldebug_mcp.logs.names import Quantity, role_of
from mldebug_mcp.logs.names.metrics import COUNTERS, canonical, is_evaluation, is_telling
from mldebug_mcp.logs.run import Segment, Series

MOST_STEPS = 2.0**63
"""No program counts further."""
DONE_AGAIN = 0.2
"""Share of records at whole epochs logged before, below which they were done again; chosen: of two to an epoch it is
a half."""
MIN_SHARE_OF_FALLS = 0.5
"""Share of epochs with which the step counter falls, from which on it counts within them."""
AMOUNTS = {
    "token": (Quantity.TOKENS_SEEN,),
    "sample": (Quantity.SAMPLES_SEEN,),
    "second": (Quantity.ELAPSED, Quantity.TIMESTAMP),
}
"""What grows with the run where no counter is logged, by what it counts."""


@dataclass(frozen=True, slots=True)
class _Records:
    """What an axis is made for: the number of rows and of records, and where a counter within a pass begins anew."""

    rows: int
    records: int
    passes: Sequence[int]
    note: Callable[[str], None]


def step_axis(
    named: Mapping[str, Column], rows: int, records: int, passes: Sequence[int], note: Callable[[str], None]
) -> tuple[Floats, str]:
    """Return the step of every row, shape (rows,), and what a step is.

    Args:
        named: The columns by canonical name.
        rows: Records and events.
        records: Rows that are records.
        passes: Rows at which a counter within the pass over the data begins anew, though no epoch tells.
        note: Gets a note of what was worked out.
    """
    of = _Records(rows, records, passes, note)
    for name in COUNTERS:
        column = named.get(name)
        if column is None:
            continue
        at, value = column.arrays()
        finite = np.abs(value) < MOST_STEPS
        if not finite.all():
            at, value = at[finite], value[finite]
        counted = _at_distinct_records(value, named) if len(value) == rows and name != "step" else value
        if len(value) * 2 >= records and not _stands_still(counted, name):
            along = _steps(of, at, value, named) if name == "step" else _epochs(of, at, value, named)
            if along is not None:
                return along, name
    return _amounts(of, named)


MIN_TURNS = 3
"""Turns of two kinds of records from which on each may count by itself. Chosen: so few may be restarts."""
MIN_RATIO_OF_UNITS = 2.0
"""Times as far that one of two counters goes if they count different things. Chosen: two batches to an update make it
2, and an evaluation that comes late counts as far as training."""


def put_on_one_axis(columns: Columns) -> str:
    """Count records of two kinds that take turns by one of their counters; return a note of it, else "".

    Episodes tell the steps of the environment, and updates how many there were. Where one counter goes several times
    as far, the records of the other get its steps, in the order of their lines.
    """
    metrics = {name: column for name, column in columns.items() if canonical(name) not in COUNTERS}
    steps = [name for name in columns if canonical(name) == "step"]
    if len(steps) != 1 or not metrics:
        return ""
    at, step = columns[steps[0]].arrays()
    if not bool(np.any(step[1:] < step[:-1])) or not bool(np.all(np.abs(step) < MOST_STEPS)):
        return ""
    first = np.isin(at, telling(metrics)[0].arrays()[0])
    if not all(len(step[kind]) > MIN_TURNS and bool(np.all(np.diff(step[kind]) >= 0)) for kind in (first, ~first)):
        return ""
    far, near = (first, ~first) if np.ptp(step[first]) > np.ptp(step[~first]) else (~first, first)
    reached, counted = np.searchsorted(at[far], at[near]) - 1, step[near]
    turns = np.flatnonzero(np.diff(reached, prepend=-1))
    turns = turns[np.diff(counted[turns], prepend=-np.inf) > 0]
    known, place = counted[turns], step[far][reached[turns]]
    if len(turns) <= MIN_TURNS:
        return ""
    ratio = (place[-1] - place[0]) / (known[-1] - known[0])
    if ratio < MIN_RATIO_OF_UNITS:
        return ""
    outside = np.maximum(counted - known[-1], 0) + np.minimum(counted - known[0], 0)
    step = step.copy()
    step[near] = np.maximum(np.floor(np.interp(counted, known, place) + ratio * outside), 0)
    columns[steps[0]] = Column.of(at, step)
    return (
        f"records of two kinds count apart, one of them to {counted[-1]:g} where the other comes to {place[-1]:g}: "
        "all are put at the steps of the one that goes further"
    )


def events_in_place(step: Floats, events: Sequence[int], column: Column | None) -> Floats:
    """Put the events between two records, such as steps that were skipped, at steps from the one to the other.

    Each is a step where they are as many; fewer are spread evenly, and of more the last of each step counts. Behind the
    last record nothing tells how far they go: they stay there.

    Args:
        step: The step of every row, shape (rows,).
        events: Rows of events, ascending.
        column: The steps that the log gives; an event with its own keeps it.
    """
    if not events or column is None:
        return step
    logged = column.arrays()[0]
    rows = np.setdiff1d(np.array(events, dtype=np.int64), logged)
    following = np.searchsorted(logged, rows)
    inside = (following > 0) & (following < len(logged))
    rows, following = rows[inside], following[inside]
    first, last = step[logged[following - 1]], step[logged[following]]
    _, begins, group, count = np.unique(following, return_index=True, return_inverse=True, return_counts=True)
    number = np.arange(len(rows)) - begins[group] + 1
    parts = count[group] + (count[group] < last - first)
    placed = step.copy()
    placed[rows] = np.where(last > first, first + np.ceil((last - first) * number / parts), step[rows])
    return placed


def _amounts(of: _Records, named: Mapping[str, Column]) -> tuple[Floats, str]:
    """Return what grows with the run where no counter is logged; the number of the record if nothing does."""
    roles = {name: role for name in named if (role := role_of(name)) is not None}
    for unit, quantities in AMOUNTS.items():
        column = next((named[name] for name, role in roles.items() if role.quantity in quantities), None)
        if column is None or len(column) * 2 < of.records or len(column) < 2:
            continue
        at, value = column.arrays()
        if not bool(np.all(value[1:] >= value[:-1])) or _stands_still(value, unit):
            continue
        begun = float(value[0]) if unit == "second" and value[0] > value[-1] - value[0] else 0.0  # the time of day
        of.note(f"the log has no step counter: records stand by the {unit}s that it tells")
        return carried_forward(at, value - begun, of.rows), unit
    if of.rows:
        of.note("the log has no step counter: records are counted instead")
    return np.arange(1, of.rows + 1, dtype=np.float64), "record"


def _steps(of: _Records, at: Rows, step: Floats, named: Mapping[str, Column]) -> Floats:
    """Return the step of every row from those of the rows that tell it."""
    whole = next((name for name in COUNTERS[1:] if name in named and len(named[name])), None)
    if of.passes:
        step = _counted_on(step, np.searchsorted(at, np.array(of.passes, dtype=np.int64)))
        of.note(f"the step counter starts again {len(of.passes)} time(s) while the loss goes on: steps are counted on")
    if whole is None:
        return step if len(at) == of.rows else carried_forward(at, step, of.rows)
    falls = np.flatnonzero(step[1:] < step[:-1]) + 1
    if not len(falls) and len(at) == of.rows:
        return step
    epoch_at, totals = named[whole].arrays()
    epoch = carried_forward(epoch_at, totals, of.rows)
    counted = epoch[at]
    if not len(falls) and _ends_each(step, counted):
        of.note(f"the step counter is at {step[0]:.0f} in each {whole}: steps are counted on over {whole}s")
        over_epochs: Floats = np.maximum(step[0] * (1 + epoch - counted[0]), 0.0)
        return over_epochs
    if len(falls) and not of.passes:
        rises = bool(np.all(counted[falls] > counted[falls - 1]))
        if rises or _starts_with(step, counted, falls):
            length, unseen = _epoch_length(named, float(step.max())), _unseen(step, falls)
            of.note(
                f"the step counter starts again with each {whole}: steps are counted on over {whole}s"
                + (f" of {length:.0f} steps, by the times of both that are logged" if length else "")
                + (f" as printed: each may have up to {unseen:.0f} more" if unseen and not length else "")
            )
            if length:
                step = step + (counted - counted[0]) * length
            else:
                step = _counted_on(step, falls) if rises else _over(step, counted)
    along = step if len(at) == of.rows else carried_forward(at, step, of.rows)
    return along if len(at) == of.rows else _where_it_ended(along, at, step, epoch, epoch_at)


def _ends_each(step: Floats, epoch: Floats) -> bool:
    """Say whether a step is the last one of each epoch: it is the same in all records, and each has another epoch."""
    return len(step) > 1 and bool(np.all(step == step[0]) and step[0] > 0 and np.all(epoch[1:] > epoch[:-1]))


def _starts_with(step: Floats, epoch: Floats, falls: Rows) -> bool:
    """Say whether a step counter starts again with each epoch, where a resume puts both back."""
    rises = np.flatnonzero(epoch[1:] > epoch[:-1]) + 1
    if not len(rises) or float(np.mean(step[rises] < step[rises - 1])) < MIN_SHARE_OF_FALLS:
        return False
    return bool(np.all(np.isin(falls, rises) | (epoch[falls] <= epoch[falls - 1])))


def _epoch_length(named: Mapping[str, Column], most: float) -> float:
    """Return how many steps an epoch has by its time and that of a step, 0 if they are not logged together.

    `most` is the last step of an epoch that is logged: the times of something else give fewer, or twice as many.
    """
    times = {role.quantity: column for name, column in named.items() if (role := role_of(name)) is not None}
    if not times.keys() >= {Quantity.EPOCH_TIME, Quantity.STEP_TIME}:
        return 0.0
    (at, whole), (step_at, single) = (times[name].arrays() for name in (Quantity.EPOCH_TIME, Quantity.STEP_TIME))
    _, of_epoch, of_step = np.intersect1d(at, step_at, return_indices=True)
    length = round(median(whole[of_epoch] / single[of_step])) if len(of_epoch) and bool(np.all(single > 0)) else 0
    return float(length) if most <= length < 2 * most else 0.0


def _unseen(step: Floats, falls: Rows) -> float:
    """Return how many steps an epoch may have behind the last logged one, if that comes at the usual interval."""
    interval = _interval(step)
    ends = falls[falls > 1] - 1
    regular = len(ends) > 0 and bool(np.all(step[ends] - step[ends - 1] == interval))
    return interval - 1 if regular else 0.0


def _over(step: Floats, epoch: Floats) -> Floats:
    """Count steps within epochs on over them: each begins where the one before it was longest."""
    place = np.unique(epoch, return_inverse=True)[1]
    most, least = np.zeros(place.max() + 1), np.full(place.max() + 1, np.inf)
    np.maximum.at(most, place, step)
    np.minimum.at(least, place, step)
    # A counter that starts at 0 begins one interval after the last step of the epoch before.
    begin = np.cumsum(most[:-1] + np.where(least[1:] == 0, _interval(step), 0.0))
    along: Floats = step + np.append(0.0, begin)[place]
    return along


def _counted_on(step: Floats, at: Rows) -> Floats:
    """Count on where the counter begins anew, at the entries `at`."""
    at = at[at < len(step)]
    offset = np.zeros(len(step))
    offset[at] = step[at - 1] + np.where(step[at] == 0, _interval(step), 0.0)
    along: Floats = step + np.cumsum(offset)
    return along


def _interval(step: Floats) -> float:
    rises = np.diff(step)
    return median(rises[rises > 0]) if bool(np.any(rises > 0)) else 1.0


def _where_it_ended(along: Floats, at: Rows, step: Floats, epoch: Floats, epoch_at: Rows) -> Floats:
    """Put rows that tell an epoch but no step, and that come later than the epoch, at the step at which it ended."""
    has_step = np.zeros(len(along), dtype=np.bool_)
    has_step[at] = True
    alone = epoch_at[~has_step[epoch_at]]
    counted = epoch[at]
    if not len(alone) or bool(np.any(counted[1:] < counted[:-1])):
        return along
    ended = np.searchsorted(counted, epoch[alone], side="right") - 1
    reached = np.searchsorted(at, alone) - 1
    whole = (epoch[alone] == np.floor(epoch[alone])) | np.isin(epoch[alone], counted)
    late = whole & (ended >= 0) & (ended < reached - 1)  # epochs are printed rounded: one record is no distance
    if bool(late.any()):
        along = along.copy()
        along[alone[late]] = step[ended[late]]
    return along


def _epochs(of: _Records, at: Rows, epoch: Floats, named: Mapping[str, Column]) -> Floats | None:
    if of.passes:
        epoch = _counted_on(epoch, np.searchsorted(at, np.array(of.passes, dtype=np.int64)))
    return _spread(of, epoch if len(at) == of.rows else carried_forward(at, epoch, of.rows), named)


def _spread(of: _Records, epoch: Floats, named: Mapping[str, Column]) -> Floats | None:
    """Tell records of one epoch apart: a rounded epoch, or that of several records, is not a step of its own.

    The records of the fullest metric that has several values there are spread evenly from their epoch up to the next;
    the others keep to the one before them. A whole epoch that now and then stands twice was done again. None if they
    all share one epoch, which then tells nothing.
    """
    whole = are_whole(epoch)
    if (
        len(epoch) < 2
        or bool(np.any(epoch[1:] < epoch[:-1]))
        or (whole and np.mean(epoch[1:] == epoch[:-1]) < DONE_AGAIN)
    ):
        return epoch
    column = next((column for column in telling(named) if _contradicts(column, epoch)), None)
    if column is None:
        return epoch
    epochs = distinct(epoch)
    if len(epochs) == 1:
        return None
    at = column.arrays()[0]
    of.note("several records are at one epoch: they are spread evenly up to the next")
    ordinal = np.zeros(of.rows)
    ordinal[at] = np.arange(len(at)) - np.searchsorted(epoch[at], epoch[at], side="left")
    last = np.maximum.accumulate(np.where(np.isin(np.arange(of.rows), at), np.arange(of.rows), 0))
    ordinal = np.where(epoch == epoch[last], ordinal[last], 0.0)
    gaps = np.diff(epochs, append=2 * epochs[-1] - epochs[-2])
    place = np.searchsorted(epochs, epoch)
    most = np.zeros(len(epochs))
    np.maximum.at(most, place, ordinal)
    return epoch + gaps[place] * ordinal / (most[place] + 1)


def _contradicts(column: Column, step: Floats) -> bool:
    """Say whether a metric has several values at one step, and not the same ones."""
    at, value = column.arrays()
    again = np.flatnonzero(step[at[1:]] == step[at[:-1]]) + 1
    return not bool(np.all(np.isclose(value[again], value[again - 1], equal_nan=True)))


def _at_distinct_records(counter: Floats, named: Mapping[str, Column]) -> Floats:
    """Return a counter at the records of the metric that most records hold, each once.

    Training and evaluation may take turns in an epoch, and several processes print the same.
    """
    at, metric = telling(named)[0].arrays()
    counted = counter[at]
    again = (counted[1:] == counted[:-1]) & (metric[1:] == metric[:-1])
    return counted[np.append(True, ~again)] if len(at) else counted


def telling(named: Mapping[str, Column]) -> list[Column]:
    """Return the columns of metrics that only training or evaluation has, of all where there is none, fullest first."""
    known = [column for name, column in named.items() if is_telling(name)]
    others = [column for name, column in named.items() if name not in COUNTERS]
    return sorted(known or others or list(named.values()), key=len, reverse=True)


def _stands_still(values: Floats, name: str) -> bool:
    """Say whether a counter repeats itself so often that it does not count the records.

    Several evaluations of one step repeat it rightly, many records within one epoch do not make the epoch their step.
    """
    if len(values) < 3 or ascends(values):
        return False
    rises = np.diff(values)
    if name == "step" and bool(np.all(rises >= 0)):
        return not bool(np.any(rises))
    return float(np.mean(rises == 0)) > (0.75 if name == "step" else 0.5)


# Where the step counter of an attempt falls back and goes on from there: a resume, which begins a segment.

MAX_SHARE_OUT_OF_ORDER = 0.05
"""Share of records out of order above which a log has several writers at a time, not restarts; chosen: a run does not
restart every twenty records."""
MANY_RESTARTS = 20
"""Records out of order, up to which each is looked at for what it repeats; chosen: a run is not resumed more often."""

MAX_SEGMENTS = 100
"""Segments that are distinguished; each is judged by itself: what was logged before the last of so many is one.
Chosen by hand: nobody resumes a run as often."""
MAX_JOINS = 8
"""Restarts whose step the notes name."""


def segment_starts(
    step: Floats, breaks: Sequence[int], metrics: Mapping[str, Column], note: Callable[[str], None]
) -> list[int]:
    """Return the rows at which a segment starts: where the step counter falls back and goes on from there.

    Args:
        step: Step of every record, shape (records,).
        breaks: Rows at which the readers saw another part begin.
        metrics: The columns without those that count.
        note: Gets a note of what is out of order.
    """
    if not len(step):
        return [0]
    starts = {0, *(row for row in breaks if row < len(step) and step[row] <= step[row - 1])}
    falls = np.flatnonzero(step[1:] < step[:-1]) + 1
    # A single record out of order is no restart: after a restart the counter stays below where it had been.
    if len(falls) and _count_apart(step, metrics):
        note("records of two kinds count their steps apart: sorted by step")
        return _last_of(starts, note)
    restarts = {row for row in falls.tolist() if _stays_below(step, row)}
    others = [row for row in falls.tolist() if row not in restarts]
    again = [row for row in others if _is_logged_again(step, row, metrics)] if len(others) <= MANY_RESTARTS else []
    if len(again) <= max(3, MAX_SHARE_OUT_OF_ORDER * len(step)):
        restarts.update(again)
    stray = len(falls) - len(starts.union(restarts)) + 1
    if stray > max(1, MAX_SHARE_OUT_OF_ORDER * len(step)):
        note(f"{len(falls)} record(s) out of order: several writers share this log; sorted by step")
        return _last_of(starts, note)
    starts.update(restarts)
    if stray:
        note(f"{stray} record(s) out of order: sorted by step")
    return _last_of(starts, note)


def _last_of(starts: set[int], note: Callable[[str], None]) -> list[int]:
    if len(starts) <= MAX_SEGMENTS:
        return sorted(starts)
    note(
        f"{len(starts) - 1:,} resumes: what was logged before the last {MAX_SEGMENTS - 1} is read as one, "
        "sorted by step"
    )
    return [0, *sorted(starts)[1 - MAX_SEGMENTS :]]


def _count_apart(step: Floats, metrics: Mapping[str, Column]) -> bool:
    """Say whether two kinds of records take turns, each with a counter that only goes up: a learner and its actor."""
    columns = telling(metrics)
    if not columns:
        return False
    has_metric = np.zeros(len(step), dtype=bool)
    has_metric[columns[0].arrays()[0]] = True
    array, other = step[has_metric], step[~has_metric]
    return len(array) > 1 and len(other) > 1 and ascends(array) and ascends(other)


def _stays_below(step: Floats, row: int) -> bool:
    """Say whether the counter goes on from where it fell to, or fell to where the log began."""
    following = step[row : row + 3]
    return bool(step[row] <= step[0]) or (len(following) >= 2 and bool(np.all(following < step[row - 1])))


def _is_logged_again(step: Floats, row: int, metrics: Mapping[str, Column]) -> bool:
    """Say whether a record has a metric that was logged at its step before: what a resume repeats may be short."""
    earlier = np.flatnonzero(step[:row] == step[row]).tolist()
    return any(_holds(column, row) and any(_holds(column, number) for number in earlier) for column in metrics.values())


def _holds(column: Column, row: int) -> bool:
    return column.before(row + 1) > column.before(row)


def restart_note(joins: Sequence[float], step_name: str) -> str:
    """Return the note on a counter that restarts at some steps."""
    where = ", ".join(f"{step:g}" for step in joins[:MAX_JOINS]) + ", …" * (len(joins) > MAX_JOINS)
    return f"the {step_name} counter restarts {len(joins)} time(s) (at {where}): each stretch is judged by itself"


# Columns and the step of each record → one series per metric, over the whole run and in each of its segments.


_CLOCK = regex(r"_runtime$|_per_second$|^elapsed$|^timestamp$|^_step$")
_MAX_CONTRADICTIONS = 3
"""Metrics whose left-out values the notes mention."""


class SeriesOfRun:
    """Makes the series of a run.

    Args:
        columns: The metrics under their canonical names, without the counter that is the step.
        step: Step of every record, shape (records,).
        starts: Records at which segments start, the first one first.
    """

    def __init__(self, columns: Columns, step: Floats, starts: list[int]) -> None:
        self._columns = columns
        self._step = step
        self._starts = starts
        self._shared_steps: dict[tuple[range, ...], Floats] = {}
        self._contradicted: dict[str, int] = {}

    def whole(self) -> dict[str, Series]:
        """Return each metric over the whole run. After a resume, what was logged again replaces what it repeats."""
        series: dict[str, Series] = {}
        counted = self._counts_turns()
        for name, column in self._columns.items():
            series[name], self._contradicted[name] = _sorted(self._without_repeated(name, column))
            least = 1 if counted else MIN_REPEATS
            is_again = self._contradicted[name] >= least and len(self._starts) == 1 and name != counted
            if is_again and is_evaluation(name):
                turns = _evaluated_in_turn(name, self._steps_of(column), column.values(), counted=bool(counted))
                self._contradicted[name] *= not turns
                series |= turns
        self._contradicted.pop(counted, None)
        return series

    def _counts_turns(self) -> str:
        """Return the column that counts the evaluations of each step, going on by one there, `pass`; "" if none."""
        for name in sorted(_TURNS & self._columns.keys()):
            stays = np.diff(self._steps_of(self._columns[name])) == 0
            if stays.any() and bool(np.all(np.diff(self._columns[name].values())[stays] == 1)):
                return name
        return ""

    def remark(self, note: Callable[[str], None]) -> None:
        """Say in the notes which values others contradict."""
        contradicted = {name: count for name, count in self._contradicted.items() if count and not _counts(name)}
        for name, count in sorted(contradicted.items(), key=lambda item: (-item[1], item[0]))[:_MAX_CONTRADICTIONS]:
            note(
                f"{name}: {count} value(s) of steps that were logged again with another value are left out: "
                "the last one stands"
            )

    def segments(self, whole: Mapping[str, Series]) -> tuple[Segment, ...]:
        """Return the segments; `whole` holds the series of the whole run, which are those of its only segment."""
        pieces = self._pieces() if len(self._starts) > 1 else [whole]
        segments = []
        for piece in pieces:
            series = {name: curve for name, curve in piece.items() if len(curve)}
            steps = [edge for curve in series.values() for edge in (float(curve.step[0]), float(curve.step[-1]))]
            if steps:
                segments.append(Segment(min(steps), max(steps), series))
        return tuple(segments)

    def _without_repeated(self, name: str, column: Column) -> Series:
        """Return a metric in the order of its records, without those that a resumed run logged again."""
        steps, value = self._steps_of(column), column.values()
        series = Series(name, steps, value, column.logged_as)
        if len(self._starts) == 1:
            return series
        splits = self._splits(column)
        splits = splits[splits < len(value)]
        # A value stays if its step is below the first ones of all the segments that begin behind it.
        limits = np.append(np.minimum.accumulate(steps[splits][::-1])[::-1], np.inf)
        return series.where(steps < limits[np.searchsorted(splits, np.arange(len(value)), side="right")])

    def _splits(self, column: Column) -> Rows:
        """Return how many values of a metric stand before each segment but the first, shape (segments - 1,)."""
        return np.searchsorted(column.arrays()[0], self._starts[1:])

    def _pieces(self) -> list[dict[str, Series]]:
        pieces: list[dict[str, Series]] = [{} for _ in self._starts]
        for name, column in self._columns.items():
            steps, value = self._steps_of(column), column.values()
            edges = [0, *self._splits(column).tolist(), len(column)]
            for piece, (first, last) in zip(pieces, pairwise(edges), strict=True):
                if first < last:
                    piece[name] = _sorted(Series(name, steps[first:last], value[first:last], column.logged_as))[0]
        return pieces

    def _steps_of(self, column: Column) -> Floats:
        """Return the steps of a metric's values; metrics that stand in the same records share one array."""
        stretches = column.stretches
        if stretches == (range(len(self._step)),):
            return self._step
        if stretches is None:
            return self._step[column.arrays()[0]]
        if stretches not in self._shared_steps:
            parts = [self._step[stretch.start : stretch.stop] for stretch in stretches]
            self._shared_steps[stretches] = np.concatenate([np.empty(0), *parts])
        return self._shared_steps[stretches]


def _counts(name: str) -> bool:
    """Say whether a metric is a clock or a counter: they differ each time that a step is logged."""
    return name in COUNTERS or _CLOCK.search(name) is not None


_TURNS = frozenset({"pass", "repeat", "repetition", "turn", "eval_pass", "eval_repeat", "eval_repetition", "eval_turn"})
"""What a column is called that counts the evaluations of one step."""
MIN_REPEATS = 2
"""Evaluations more of the last step, from which on they are kept. Chosen: two may be of two sets without names."""
MAX_REPEATS = 9
"""... and at most. Chosen: more are those of batches or sets."""
MAX_RATIO_OF_REPEATS = 1.5
"""Times that the largest of them is the smallest at most. Chosen: other sets differ by more."""


def _evaluated_in_turn(name: str, steps: Floats, values: Floats, *, counted: bool) -> dict[str, Series]:
    """Return the values of a metric at its last step, as `eval_loss_again2`, where no other step has several.

    Where a column counts them (`counted`), other steps may: then the first one of each step is `eval_loss_again`.
    """
    last = values[steps == steps[-1]]
    once = len(values) - len(last)
    if counted and len(distinct(steps)) != once + 1:
        stays = steps[1:] == steps[:-1]
        again = np.append(stays, False) & ~np.append(False, stays)
        return {f"{name}_again": _sorted(Series(f"{name}_again", steps[again], values[again]))[0]}
    if not MIN_REPEATS < len(last) <= MAX_REPEATS or len(distinct(steps)) != once + 1:
        return {}
    is_of_set = once < len(last) or not 0 < float(last.max()) <= MAX_RATIO_OF_REPEATS * float(last.min())
    if is_of_set and not counted:
        return {}
    turns = [f"{name}_again{turn}" for turn in range(1, len(last) + 1)]
    return {turn: Series(turn, steps[-1:], last[at : at + 1]) for at, turn in enumerate(turns)}


def _sorted(series: Series) -> tuple[Series, int]:
    """Return the series ascending by step, with the last value of each step, and how many other values were dropped."""
    if ascends(series.step):
        return series, 0
    order = np.argsort(series.step, kind="stable")
    step, value = series.step[order], series.value[order]
    last = np.append(step[1:] != step[:-1], True)
    with np.errstate(over="ignore"):  # the distance between the largest numbers of both signs
        other = (step[1:] == step[:-1]) & ~np.isclose(value[1:], value[:-1], equal_nan=True)
    return replace(series, step=step[last], value=value[last]), int(other.sum())
