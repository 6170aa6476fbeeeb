"""The course of each curve: in words for the sheet of a run, and as plain numbers for the classifier.

It holds ends, extremes and turns, and what moved suddenly at one time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.curve import (
    blocks,
    finite_of,
    heaviness,
    noise,
    noise_on_slope,
    positive,
    row_medians,
    sample,
    start_level,
    stretch_medians,
    true_at_end,
)
from mldebug_mcp.checks.progress import uniform_loss
from mldebug_mcp.core.arrays import median, median_gap, quantile, slices_of
from mldebug_mcp.core.conventions import STD_PER_MAD
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.quantities import COUNTERS, LOSSES, UTILISATIONS
from mldebug_mcp.logs.run import Run, Series

# The course of one curve: its ends and extremes, where it turns, and since when it rests, is frozen or is lost.


COURSE_STRETCHES = 30
"""Stretches whose medians describe a curve's course; the records themselves describe a shorter curve.
Chosen: a turn that lasts a thirtieth of a run is seen by eye."""
TURN_WOBBLES = 6.0
"""A turn goes back by this many standard deviations of the medians ... Chosen: the range of thirty normal numbers is
4.1 of them on average, and above 6 once in a hundred times."""
TURN_SHARE = 0.1
"""... and by this share of the whole range. Chosen: smaller ones are not worth the words."""
REST_SHARE = 0.03
"""Share of its range within which a curve rests at its last level. Chosen: what the eye calls level."""
REST_WOBBLES = 3.0
"""Standard deviations within which a curve rests at its last level, too. Chosen: what the eye calls level."""
LEAST_REST = 0.2
"""Share of the stretches over which it does, to be called so. Chosen: less is the end of any curve that slows down."""
MIN_RANGE_FOR_LOGARITHM = 20.0
"""Times the lowest level: from here on logarithms are looked at. Chosen: below it a straight scale shows the course."""
MIN_JUMP_MOVE_SHARE = 0.6
"""Share of a move that is made from one stretch to the next, for it to be a jump or a drop. Chosen: more than half."""
MAX_LISTED_RECORDS = 5
"""Records that are listed one by one. Chosen: they take no more room than a summary of them."""
FROZEN_SHARE = 0.1
"""Share of the records that are exactly alike at the end of a frozen curve. Chosen: by hand."""
LEAST_FROZEN = 4
"""The least number of such records. Chosen: two roundings in a row may agree."""
MOST_TURNS = 4
"""Turns that are listed one by one. Chosen: more are a swing to and fro."""


@dataclass(frozen=True, slots=True)
class Move:
    """A part of a course in one direction.

    Args:
        to: The logged value that it ends at.
        until: The step of that value.
        up: Whether it goes up.
        sudden_at: The step at which most of the way is made at once, if it is.
    """

    to: float
    until: float
    up: bool
    sudden_at: float | None = None

    def __str__(self) -> str:
        if self.sudden_at is not None:
            at = f" at {figure(self.sudden_at)}" if self.sudden_at != self.until else ""
            return f"{'jumps' if self.up else 'drops'}{at} to {figure(self.to)} by {figure(self.until)}"
        return f"{'rises' if self.up else 'falls'} to {figure(self.to)} by {figure(self.until)}"


@dataclass(frozen=True, slots=True)
class Course:
    """What a curve does, in numbers.

    Args:
        records: How many values were logged.
        first, last: Its first and last finite value.
        early: Median of the first twentieth of its records, of three at least.
        low, low_at, high, high_at: Its extremes and the steps of them.
        noise: Standard deviation from record to record, without the trend.
        moves: What it does, in order; empty where it keeps to one level within its noise.
        rests_since: The step since which it keeps its last level; None where it does not.
        frozen_since: The step since which it is exactly the same; None where it is not.
        lost: How many values are NaN or infinite.
        lost_first: The first step at which one is.
        lost_for_good: Whether none is finite after that.
        points: All values with their steps, where they are few.
    """

    records: int
    first: float
    early: float
    low: float
    low_at: float
    high: float
    high_at: float
    last: float
    noise: float
    moves: tuple[Move, ...] = ()
    rests_since: float | None = None
    frozen_since: float | None = None
    lost: int = 0
    lost_first: float | None = None
    lost_for_good: bool = False
    points: tuple[tuple[float, float], ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether every value is the same."""
        return self.low == self.high

    def __str__(self) -> str:
        """Return the course in words: falls, rises, jumps, rests since, frozen since, not finite."""
        words = []
        if self.is_constant:
            words += ["the same in every record"] if self.records - self.lost > 1 else []
        elif len(self.moves) > MOST_TURNS:
            first = self.moves[0]
            words.append(f"{first}, then swings {len(self.moves) - 1} times, {self.moves[-1]}")
        elif self.moves:
            words += [str(move) for move in self.moves]
        elif len(self.points) != self.records:
            words.append("keeps its level")
        if not self.is_constant and self.frozen_since is not None:
            words.append(f"frozen at {figure(self.last)} since {figure(self.frozen_since)}")
        elif self.moves and self.rests_since is not None:
            words.append(f"rests since {figure(self.rests_since)}")
        if self.lost and self.lost_first is not None:
            where = "from" if self.lost_for_good else f"in {self.lost} of {self.records} records, first at"
            words.append(f"not finite {where} {figure(self.lost_first)}")
        return ", ".join(words)


def course_of(series: Series) -> Course | None:
    """Return the course of a curve; None where nothing finite was logged."""
    finite = series.finite
    if not len(finite):
        return None
    value, step = finite.value, finite.step
    low, high = int(np.argmin(value)), int(np.argmax(value))
    lost = ~np.isfinite(series.value)
    first_lost = float(series.step[int(np.argmax(lost))]) if lost.any() else None
    same = true_at_end(value == value[-1])
    frozen = len(value) - same if same >= max(LEAST_FROZEN, FROZEN_SHARE * len(value)) else None
    moves, rests = ((), None) if len(value) <= 2 or low == high else _moves(value, step)
    if frozen is not None and moves and moves[-1].until > step[frozen]:
        moves = (*moves[:-1], replace(moves[-1], until=float(step[frozen])))
    few = len(value) <= MAX_LISTED_RECORDS
    return Course(
        records=len(series),
        first=float(value[0]),
        early=start_level(value),
        low=float(value[low]),
        low_at=float(step[low]),
        high=float(value[high]),
        high_at=float(step[high]),
        last=float(value[-1]),
        noise=_noise(value),
        moves=() if few else moves,
        rests_since=None if few else rests,
        frozen_since=None if frozen is None else float(step[frozen]),
        lost=int(lost.sum()),
        lost_first=first_lost,
        lost_for_good=first_lost is not None and float(step[-1]) < first_lost,
        points=tuple(zip(step.tolist(), value.tolist(), strict=True)) if few else (),
    )


def _noise(value: Floats) -> float:
    """Return the noise from record to record: of the few of a short curve, around its slope."""
    return noise_on_slope(value) if len(value) <= COURSE_STRETCHES else noise(value)


def _moves(value: Floats, step: Floats) -> tuple[tuple[Move, ...], float | None]:
    """Return what a curve does, and since when it rests."""
    low, high = (quantile(sample(value), share) for share in (0.05, 0.95))
    logarithmic = positive(value) and high > MIN_RANGE_FOR_LOGARITHM * low
    scaled = np.log(value) if logarithmic else value
    level, first, wobble = _levels(scaled)
    span = float(level.max() - level.min())
    back = max(TURN_WOBBLES * wobble, TURN_SHARE * span)
    if span <= TURN_WOBBLES * wobble or not np.isfinite(span):
        return (), float(step[0])
    rest = _rest(level, max(REST_SHARE * span, REST_WOBBLES * wobble))
    turns = _turns(level, back)
    parts = []
    for begin, end in pairwise(turns):
        until = end if end != turns[-1] or rest is None else min(end, max(rest, begin + 1))
        block = _sudden(level, begin, until)
        jump = None if block is None else _steepest(scaled, int(first[block - 1]), _end(first, block, len(value)))
        parts.append((bool(level[end] > level[begin]), until, jump))
    moves = []
    for (up, until, jump), after in zip(parts, [*(jump for *_, jump in parts[1:]), None], strict=True):
        start, stop = int(first[until]), _end(first, until, len(value))
        start = start if jump is None or jump >= stop else max(start, jump)
        stop = stop if after is None or after <= start else min(stop, after)
        part = scaled[start:stop]
        at = start + int(np.argmin(np.abs(part - np.sort(part)[(len(part) - 1) // 2])))
        moves.append(Move(float(value[at]), float(step[at]), up, None if jump is None else float(step[jump])))
    if rest is None or rest < turns[-2]:
        return tuple(moves), None
    return tuple(moves), moves[-1].until if until == rest else float(step[first[rest]])


def _levels(value: Floats) -> tuple[Floats, NDArray[np.int64], float]:
    """Return the levels that describe a course, the index of the first record of each, and their noise."""
    if len(value) <= COURSE_STRETCHES:
        return value, np.arange(len(value)), noise_on_slope(value)
    cut = blocks(value, COURSE_STRETCHES)
    return cut.level, cut.first, cut.wobble


def _turns(level: Floats, back: float) -> list[int]:
    """Return the first index, those at which a course turns and goes back by so much, and the last index."""
    turns, best, up = [0], 0, 0
    for at in range(1, len(level)):
        ahead = level[at] - level[best]
        if up == 0:
            low, high = int(np.argmin(level[: at + 1])), int(np.argmax(level[: at + 1]))
            if level[high] - level[low] >= back:
                up, best = (1, high) if high > low else (-1, low)
        elif ahead * up > 0:
            best = at
        elif -ahead * up >= back:
            turns.append(best)
            up, best = -up, at
    return [*turns, len(level) - 1] if best == turns[-1] or level[best] == level[-1] else _closed(turns, best, level)


def _closed(turns: list[int], best: int, level: Floats) -> list[int]:
    """Return the turns with the end of the last move: what follows its extreme goes back by too little to count."""
    return [*turns, best if best > turns[-1] else len(level) - 1]


def _rest(level: Floats, within: float) -> int | None:
    near = true_at_end(np.abs(level - level[-1]) <= within)
    return len(level) - near if near >= max(3, LEAST_REST * len(level)) else None


def _sudden(level: Floats, begin: int, end: int) -> int | None:
    """Return the stretch at whose beginning most of a move is made at once, None where it takes longer."""
    if end - begin < 1 or len(level) < 2 * MAX_LISTED_RECORDS:
        return None
    steps = level[begin + 1 : end + 1] - level[begin:end]
    most = int(np.argmax(np.abs(steps)))
    return (
        begin + 1 + most
        if abs(steps[most]) >= MIN_JUMP_MOVE_SHARE * abs(level[end] - level[begin]) and begin > 0
        else None
    )


def _end(first: NDArray[np.int64], block: int, count: int) -> int:
    return int(first[block + 1]) if block + 1 < len(first) else count


def _steepest(value: Floats, first: int, last: int) -> int:
    """Return the index within a stretch to which a curve makes its longest step."""
    return first + 1 + int(np.argmax(np.abs(np.diff(value[first:last])))) if last - first > 1 else first


# What moved suddenly, and when: jumps of any curve against its own local trend, those at one time together.


BASELINE_RECORDS = 5
"""Records before one, whose median it is compared with. Chosen: the fewest that one outlier does not move."""
NOISE_WINDOW_RECORDS = 40
"""Records around one, from which the usual size of such a difference is taken. Chosen: twice a usual window."""
MIN_JUMP_SIGMAS = 7.0
"""Standard deviations of that size, times the heaviness of its tails, beyond which a curve jumps. Chosen: in ten
thousand records of normal noise none does."""
MAX_TAIL_HEAVINESS = 1.4
"""Heaviness that is believed. Chosen: where every tenth record is a jump, they are no tail."""
LEAST_SHARE = 0.1
"""Share of the middle 95 % of all values that a jump has at least. Chosen: a smaller one is hardly seen by eye."""
LEAST_OF_LEVEL = 0.03
"""Share of the level that it has at least. Chosen: of values that are nearly constant."""
SETTLING_RECORDS_SHARE = 0.1
"""Share of the records, from the first on, in which a move is the usual one of a run that begins; but a loss or a
gradient does not rise then. Chosen: half of what most runs take to settle."""
MAX_LOCAL_SPREAD_RATIO = 3.0
"""Times the usual spread that the spread around a record is at most. Chosen: a moving beginning hides nothing."""
RISES_UNUSUALLY = LOSSES | {Quantity.GRADIENT_NORM, Quantity.KL}
MIN_RECORDS_OF_TREND = 8
"""Records from which a trend can be determined. Chosen: three more than `BASELINE_RECORDS`."""
MIN_RATIO_FOR_LOGARITHM = 5.0
"""Times the median that the highest value is, for logarithms to be compared. Chosen: of what varies by factors."""
MOST_POINTS = 10_000
"""Stretches of a longer curve; only their extremes are used. Chosen: finer than any picture of it."""
FIRST_PART = 1024
"""Records in which the end of a move is looked for at first. Chosen: most moves come back sooner."""
MAX_PART = 65536
"""Records in which it is looked for at a time. Chosen: what is derived from them fits a processor's cache."""
MAX_RECORDS_APART = 3
"""Records within which jumps of several curves are one event. Chosen: what brings a jump about precedes it by one."""
AT_ONCE = 0.4
"""What the logarithm of a rate moves by between two records where it jumps. Chosen: a factor of 1.5, which no smooth
schedule makes at once."""
MIN_SUDDEN_MOVE_RATIO = 3.0
"""Times as far as before and after that a rate then moves. Chosen: by hand."""
MOST_SERIES = 60
"""Curves that are looked at. Chosen: those of hundreds of layers move together."""


@dataclass(frozen=True, slots=True)
class Change:
    """A sudden move of one curve.

    Args:
        metric: The name of the series.
        step: Where it begins.
        before: The level before.
        there: The value farthest from that until it is two thirds of the way back.
        at: The step of that value.
        back: The step at which it is two thirds of the way back; None where it does not come back.
        left: The value at that step, or the last one.
        sigmas: How large it is, in standard deviations of what is usual for the curve.
        records: Records between those of the curve, in steps.
    """

    metric: str
    step: float
    before: float
    there: float
    at: float
    back: float | None
    left: float
    sigmas: float
    records: float


@dataclass(frozen=True, slots=True)
class Event:
    """What moved at about one time, the first mover first."""

    changes: tuple[Change, ...]

    @property
    def step(self) -> float:
        """Where the first of them begins."""
        return self.changes[0].step

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of what moved."""
        return tuple(change.metric for change in self.changes)

    @property
    def sigmas(self) -> float:
        """How large the largest of them is."""
        return max(change.sigmas for change in self.changes)

    @property
    def first_mover(self) -> str:
        """The curve that moved before all others; "" where several did at once or there is one alone."""
        first, *others = self.changes
        return first.metric if others and all(other.step > first.step for other in others) else ""


def events_of(run: Run, names: Sequence[str]) -> list[Event]:
    """Return the sudden moves of these curves, in order; those of several within a few records are one event."""
    changes: list[Change] = []
    for name in names[:MOST_SERIES]:
        role = run[name].role
        rate = role is not None and role.quantity is Quantity.LEARNING_RATE
        changes += _jumps_of_rate(run[name].finite) if rate else _jumps(run[name].finite)
    return _events_of_changes(changes)


def _events_of_changes(changes: Iterable[Change]) -> list[Event]:
    groups: list[list[Change]] = []
    for current in sorted(changes, key=lambda change: (change.step, change.metric)):
        if groups and current.step - groups[-1][0].step <= MAX_RECORDS_APART * min(
            current.records, groups[-1][0].records
        ):
            groups[-1].append(current)
        else:
            groups.append([current])
    return [Event(tuple({change.metric: change for change in reversed(group)}.values())[::-1]) for group in groups]


def _jumps(series: Series) -> list[Change]:
    """Return where a curve leaves its trend at once."""
    if len(series) < MIN_RECORDS_OF_TREND or float(series.value.min()) == float(series.value.max()):
        return []
    found = [*_one_way(series, +1), *_one_way(series, -1)]
    return _without_returns(sorted(found, key=lambda change: change.step))


def _without_returns(changes: list[Change]) -> list[Change]:
    """Return the moves of a curve without those that only end the one before, at the level from which it began."""
    kept: list[Change] = []
    for change in changes:
        ended = kept and kept[-1].back is not None and change.step <= kept[-1].back
        if not ended or abs(change.there - kept[-1].before) > abs(kept[-1].there - kept[-1].before) / 3:
            kept.append(change)
    return kept


def _one_way(series: Series, sign: int) -> list[Change]:
    """Return the jumps up (+1) or down (-1)."""
    at, value = _extremes(series.value, sign)
    logarithmic = positive(value) and float(value.max()) > MIN_RATIO_FOR_LOGARITHM * median(sample(value))
    scaled = np.log(value) if logarithmic else value
    padded = np.concatenate([np.repeat(scaled[:1], BASELINE_RECORDS), scaled[:-1]])
    level = row_medians(np.lib.stride_tricks.sliding_window_view(padded, BASELINE_RECORDS))
    away = sign * (scaled - level)
    usual, spread = _usual(away)
    least = max(LEAST_SHARE * _span(scaled), LEAST_OF_LEVEL * (1.0 if logarithmic else abs(median(value))), 1e-12)
    sigmas = (away - usual) / np.maximum(spread, least / MIN_JUMP_SIGMAS)
    limit = MIN_JUMP_SIGMAS * min(MAX_TAIL_HEAVINESS, max(1.0, heaviness(scaled)))
    beyond = (sigmas > limit) & (away > least)
    at_once = sign > 0 and series.role is not None and series.role.quantity in RISES_UNUSUALLY
    begun = 1 if at_once else max(MAX_RECORDS_APART, int(SETTLING_RECORDS_SHARE * len(value)))
    goes_on = bool(beyond[begun - 1] and beyond[begun])  # a move of the beginning, which is behind it there
    beyond[:begun] = False
    places = np.flatnonzero(beyond)
    groups = np.split(places, np.flatnonzero(np.diff(places) > BASELINE_RECORDS) + 1) if len(places) else []
    groups = groups[1:] if goes_on else groups
    if not groups:
        return []
    records = median_gap(series.step)
    found = [_change(series, records, at[group], float(sigmas[group].max()), sign) for group in groups]
    return found if len(value) == len(series) else _standing_out(series, found)


def _change(series: Series, records: float, places: NDArray[np.int64], sigmas: float, sign: int) -> Change:
    """Return the move up or down at these indices: all of it, until it is two thirds of the way back."""
    step, value, first = series.step, series.value, int(places[0])
    stride = _stride(value)
    if stride > 1:  # only extremes were looked at
        start = max(0, (first // stride - 1) * stride)
        away = sign * (value[start : first + 1] - _level_before(value, start))
        first = start + int(np.argmax(away > 2 / 3 * away[-1]))
    before = _level_before(value, first)
    peak = int(places[np.argmax(sign * (value[places] - before))])
    back = _back_at(value, peak, before, sign)
    peak = peak if back is None else first + int(np.argmax(sign * (value[first:back] - before)))
    return Change(
        metric=series.name,
        step=float(step[first]),
        before=before,
        there=float(value[peak]),
        at=float(step[peak]),
        back=None if back is None else float(step[back]),
        left=float(value[-1 if back is None else back]),
        sigmas=min(1000.0, sigmas),
        records=records,
    )


def _back_at(value: Floats, peak: int, before: float, sign: int) -> int | None:
    """Return the index at which a move is two thirds of the way back from its highest so far, None where it never is.

    It is looked for a part at a time.
    """
    highest, start, size = -math.inf, peak, FIRST_PART
    while start < len(value):
        away = sign * (value[start : start + size] - before)
        so_far = np.maximum(np.maximum.accumulate(away), highest)
        returned = away < so_far / 3
        if returned.any():
            return start + int(np.argmax(returned))
        highest, start, size = float(so_far[-1]), start + size, min(2 * size, MAX_PART)
    return None


def _standing_out(series: Series, changes: list[Change]) -> list[Change]:
    """Return the moves of a long curve that stand out of the noise of its records, as they do of their extremes."""
    value = series.value
    logarithmic = positive(value) and float(value.max()) > MIN_RATIO_FOR_LOGARITHM * median(sample(value))
    value = np.log(value) if logarithmic else value
    limit = MIN_JUMP_SIGMAS * min(MAX_TAIL_HEAVINESS, max(1.0, heaviness(value))) * noise(value)
    moves = [np.array([change.before, change.there]) for change in changes]
    ends = [np.log(move) if logarithmic else move for move in moves]
    return [change for change, (before, there) in zip(changes, ends, strict=True) if abs(there - before) > limit]


def _level_before(value: Floats, at: int) -> float:
    """Return the median of the records before one, and of a long curve of as many stretches."""
    width = BASELINE_RECORDS * _stride(value)
    before = value[max(0, at - width) : at]
    return median(np.concatenate([np.repeat(value[:1], width - len(before)), before]))


def _stride(value: Floats) -> int:
    """Return the records of a stretch whose extremes are looked at."""
    return -(-len(value) // MOST_POINTS)


def _extremes(value: Floats, sign: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the indices and values to look at: all, or of a long curve the extreme one of each stretch."""
    stride = _stride(value)
    if stride == 1:
        return np.arange(len(value)), value
    whole = len(value) // stride * stride
    rows = value[:whole].reshape(-1, stride)
    at = np.arange(0, whole, stride) + (rows.argmax(axis=1) if sign > 0 else rows.argmin(axis=1))
    return at, value[at]


def _usual(away: Floats) -> tuple[Floats, Floats]:
    """Return the usual difference of a record from those before it, and its spread, in the records around each."""
    count = max(1, len(away) // NOISE_WINDOW_RECORDS)
    edges = np.linspace(0, len(away), count + 1).astype(int)
    which = np.minimum(np.searchsorted(edges, np.arange(len(away)), side="right") - 1, count - 1)
    middle = stretch_medians(away, edges)
    spread = STD_PER_MAD * stretch_medians(np.abs(away - middle[which]), edges)
    return middle[which], np.minimum(spread, MAX_LOCAL_SPREAD_RATIO * median(spread))[which]


def _span(value: Floats) -> float:
    low, high = (quantile(sample(value), share) for share in (0.025, 0.975))
    return high - low


def _jumps_of_rate(rate: Series) -> list[Change]:
    """Return where a learning rate moves at once, as no smooth schedule does."""
    above = rate.where(rate.value > 0)
    if len(above) < 4:
        return []
    value, interval = above.value, median_gap(above.step)
    return [
        Change(
            metric=rate.name,
            step=float(above.step[at]),
            before=float(value[at - 1]),
            there=float(value[at]),
            at=float(above.step[at]),
            back=None,
            left=float(value[-1]),
            sigmas=100.0,
            records=interval,
        )
        for at in _moves_at_once(value)
    ]


def _moves_at_once(rate: Floats) -> list[int]:
    """Return the indices to which a rate above zero moves farther than before and after."""
    at_once: list[int] = []
    for part in slices_of(len(rate), also=3):
        moves = np.abs(np.diff(np.log(rate[part])))
        if part.stop == len(rate):
            moves = np.append(moves, 0.0)  # nothing follows the last one
        size, beside = moves[1:-1], np.maximum(moves[:-2], moves[2:])
        is_sudden = (size > AT_ONCE) & (size > MIN_SUDDEN_MOVE_RATIO * beside)
        at_once += (part.start + 2 + np.flatnonzero(is_sudden)).tolist()
    return at_once


# A run as plain numbers, by name: how each of its curves lies, before anybody asks what is wrong with it.
#
# No number has a threshold or an expectation. Each is the same on another step axis, with other columns and, as
# far as that can be, at another interval of logging: places are shares of the records, heights are taken against the
# curve's own start, level or noise. A height itself counts only of what has a scale of its own, such as a loss in nats
# or an accuracy: gradient norms, rates, times and memory are other ones in a large model. What a run did not log has no
# entry.


MAX_CURVE_VALUES = 4096
"""Evenly spaced values that the numbers of a curve are of. Chosen: their median is off by 2 % of the noise."""
EDGE_WIDTH_DIVISOR = 10
"""Part of the records that stands for an end. Chosen: by hand."""
LEAST_OF_COURSE = 4
"""Records from which a curve has a course. Chosen: by hand."""
LEAST_OF_SHAPE = 8
"""Records from which a curve has a memory and tails. Chosen: by hand."""
MOST_PARTS = 1000
"""Parts of a model whose gradients are compared. Chosen: more than any model is logged by."""
MIN_RELATIVE_CHANGE = 1e-3
"""Change, of the level, below which a record repeats the one before. Chosen: what rounding to four digits hides."""
STANDS_OUT = 6.0
"""Noises that the largest rise has to come to before its place says anything. Chosen: one in 10^5 of changes between
normal records."""
RATIO_EPSILON = 1e-12
"""What keeps ratios finite. Chosen: below all that is logged."""
AXES = COUNTERS | {
    Quantity.TIMESTAMP,
    Quantity.ELAPSED,
    Quantity.TIME_LEFT,
    Quantity.RUNTIME,
    Quantity.TOKENS_SEEN,
    Quantity.SAMPLES_SEEN,
}
"""What counts on, whatever is learnt."""
COMPARED = (
    Quantity.LOSS,
    Quantity.ACCURACY,
    Quantity.TOKEN_ACCURACY,
    Quantity.PERPLEXITY,
    Quantity.REWARD,
)
"""What is measured in training and at evaluation alike."""
OWN_SCALE = (
    frozenset(quantity for quantity in Quantity if quantity.is_share)
    | {
        Quantity.LOSS,
        Quantity.PERPLEXITY,
        Quantity.KL,
        Quantity.APPROXIMATE_KL,
        Quantity.POLICY_RATIO,
        Quantity.EXPLAINED_VARIANCE,
        Quantity.UPDATE_RATIO,
        Quantity.EXPLORATION,
        Quantity.R2,
        Quantity.CORRELATION,
    }
) - UTILISATIONS
"""What has the same heights in a small model and in a large one."""
HEIGHTS = frozenset({"first", "least", "most", "early", "middle", "last"})
OF_A_GUESS = ("first", "last", "least")


def vector_of(run: Run) -> dict[str, float]:
    """Return the numbers of a run by what they are, such as "eval loss: last / first"; all of them are finite."""
    with np.errstate(over="ignore", invalid="ignore"):  # a loss of 1e308 has no square
        numbers = {name: float(number) for name, number in _course_numbers(run).items()}
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def _course_numbers(run: Run) -> dict[str, float]:
    curves = _curves(run)
    numbers: dict[str, float] = {}
    for (quantity, name), curve in curves.items():
        left_out = frozenset() if quantity in OWN_SCALE else HEIGHTS
        numbers |= {f"{name}: {what}": number for what, number in _numbers(curve.value) if what not in left_out}
    for quantity in COMPARED:
        train, evaluation = curves.get((quantity, str(quantity))), curves.get((quantity, f"eval {quantity}"))
        if train is not None and evaluation is not None:
            numbers |= {f"{quantity}, eval against train: {what}": gap for what, gap in _gaps(train.finite, evaluation)}
    if guess := uniform_loss(run):
        names = [f"{loss}: {what}" for loss in ("loss", "eval loss") for what in OF_A_GUESS]
        numbers |= {f"{name} / a guess": numbers[name] / guess for name in names if name in numbers}
    return numbers | dict(_of_the_run(run))


def _curves(run: Run) -> Mapping[tuple[Quantity, str], Series]:
    """Return the first series of each quantity as a whole, in its units, by what it is and "loss" or "eval loss"."""
    found: dict[tuple[Quantity, str], Series] = {}
    for series in run.series.values():
        role = series.role
        if role is None or not role.is_whole or role.quantity in AXES or not len(series):
            continue
        if role.quantity.is_memory:
            continue  # that it is logged says nothing of training: whether it grows is asked by itself
        name = f"eval {role.quantity}" if role.is_evaluation else str(role.quantity)
        found.setdefault((role.quantity, name), series if series.name == role.name else series.times(role.factor))
    return found


def _numbers(logged: Floats) -> Iterator[tuple[str, float]]:
    finite = np.isfinite(logged)
    yield "share not finite", 1 - float(finite.mean())
    value = logged if finite.all() else logged[finite]
    if not len(value):
        return
    first = float(value[0])
    yield "first", first
    if len(value) < LEAST_OF_COURSE:
        return
    least, most, start = float(value.min()), float(value.max()), abs(first) + RATIO_EPSILON
    yield from (("least", least), ("most", most), ("least / first", least / start), ("most / first", most / start))
    yield "place of its least", float(np.argmin(value)) / len(value)
    yield "place of its most", float(np.argmax(value)) / len(value)
    count = len(value)
    width = max(1, count // EDGE_WIDTH_DIVISOR)
    early, quarter, middle, last = (median(value[at : at + width]) for at in (0, count // 4, count // 2, count - width))
    yield from (("early", early), ("middle", middle), ("last", last))
    yield from (
        ("quarter / first", quarter / start),
        ("middle / first", middle / start),
        ("last / first", last / start),
    )
    yield "last above least / least", (last - least) / (abs(least) + RATIO_EPSILON)
    yield "late change / first", (last - middle) / start
    yield "fall / early", (early - last) / (abs(early) + RATIO_EPSILON)
    yield from _move_numbers(sample(value, MAX_CURVE_VALUES), start)


def _move_numbers(value: Floats, start: float) -> Iterator[tuple[str, float]]:
    """Yield how a curve goes from record to record, against the noise between them."""
    count, change = len(value), np.diff(value)
    level = abs(median(value)) + RATIO_EPSILON
    noise = STD_PER_MAD * median(np.abs(change - median(change))) / math.sqrt(2) + RATIO_EPSILON
    yield "noise / level", noise / level
    yield "records that rise", float((change > 0).mean())
    yield "records that stand still", float((np.abs(change) <= MIN_RELATIVE_CHANGE * level).mean())
    yield "largest rise / first", float(change.max()) / start
    width = max(1, count // EDGE_WIDTH_DIVISOR)
    early, middle, last = (median(value[at : at + width]) for at in (0, count // 2, count - width))
    if noise > MIN_RELATIVE_CHANGE * MIN_RELATIVE_CHANGE * level:
        yield "largest rise / noise", float(change.max()) / noise
        if change.max() > STANDS_OUT * noise:
            yield "place of its largest rise", float(np.argmax(change)) / count
        yield "largest fall / noise", -float(change.min()) / noise
        yield "range / noise", float(np.ptp(value)) / noise
        yield "change / noise", (last - early) / noise
        yield "late change / noise", (last - middle) / noise
    if count < LEAST_OF_SHAPE:
        return
    yield "late noise / level", median(np.abs(np.diff(value[count // 2 :]))) / (abs(last) + RATIO_EPSILON)
    place = np.arange(count) - (count - 1) / 2
    left = value - value.mean() - place * (float(place @ value) / float(place @ place))
    spread = float(left @ left)
    rounding, variance = MIN_RELATIVE_CHANGE * MIN_RELATIVE_CHANGE * level, spread / count
    if spread > rounding * rounding * count:  # a product of floats can be infinite, where a power raises OverflowError
        yield "memory", float(left[:-1] @ left[1:]) / spread
        yield "tails", float((left**4).mean()) / (variance * variance)


def _gaps(train: Series, evaluation: Series) -> Iterator[tuple[str, float]]:
    """Yield how far evaluation lies from training at the same steps, of where training began."""
    at = evaluation.finite
    if len(train) < 2 or not len(at):
        return
    train_values = np.interp(at.step, train.step, train.value)
    gap, start = at.value - train_values, abs(float(train.value[0])) + RATIO_EPSILON
    yield from (("first gap", float(gap[0]) / start), ("last gap", float(gap[-1]) / start))
    yield from (("least gap", float(gap.min()) / start), ("late trend", float(gap[-1] - gap[len(gap) // 2]) / start))
    yield "last ratio", float(at.value[-1]) / (abs(float(train_values[-1])) + RATIO_EPSILON)


def _of_the_run(run: Run) -> Iterator[tuple[str, float]]:
    yield f"a run of {run.kind}", 1.0
    yield "errors that end it", float(len(run.fatal))
    parts = (series for series in run.series.values() if _is_of_a_part(series) and len(series.finite))
    levels = np.array([median(part.finite.value) for part in islice(parts, MOST_PARTS)])
    if len(levels) > 1 and levels.max() > 0:
        yield "gradients of parts: least / most", math.log10(levels.min() / levels.max() + 1e-30)
        yield "gradients of parts: share of zeros", float((levels == 0).mean())
    if (planned := run.setting("max_steps")) and run.step_name == "step":
        yield "part of the plan", run.last_step / planned
    if len(epoch := finite_of(run, "epoch").value):
        yield "passes", float(epoch.max())


def _is_of_a_part(series: Series) -> bool:
    role = series.role
    return role is not None and role.quantity is Quantity.GRADIENT_NORM and role.is_level and not role.is_whole
