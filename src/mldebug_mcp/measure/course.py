"""The course of one curve: its ends and extremes, where it turns, and since when it rests, is frozen or is lost."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Series
from mldebug_mcp.measure.statistics import blocks, noise, noise_on_slope, positive, sample, start_level
from mldebug_mcp.text import figure

BLOCKS = 30
"""Stretches by whose medians a curve's course is told; a curve of no more records is told by these themselves.
Chosen: a turn that lasts a thirtieth of a run is seen by eye."""
TURN_WOBBLES = 4.0
"""A turn goes back by this many standard deviations of the medians ... Chosen: none in white noise, as a rule."""
TURN_SHARE = 0.1
"""... and by this share of the whole range. Chosen: smaller ones are not worth the words."""
REST_SHARE, REST_WOBBLES = 0.03, 3.0
"""A curve rests while it keeps within this share of its range, or so many standard deviations, of its last level.
Chosen: what the eye calls level."""
LEAST_REST = 0.2
"""Share of the stretches over which it does, to be called so. Chosen: less is the end of any curve that slows down."""
FAR = 20.0
"""Times the lowest level: from here on logarithms are looked at. Chosen: below it a straight scale shows the course."""
SUDDEN = 0.6
"""Share of a move that is made from one stretch to the next, for it to be a jump or a drop. Chosen: more than half."""
FEW = 5
"""Records that are told one by one. Chosen: they take no more room than a summary of them."""
FROZEN_SHARE, LEAST_FROZEN = 0.1, 4
"""Share of the records, and their least number, that are exactly alike at the end of a frozen curve. Chosen: two
roundings in a row may agree."""
MOST_TURNS = 4
"""Turns that are told one by one. Chosen: more are a swing to and fro."""


@dataclass(frozen=True, slots=True)
class Move:
    """A part of a course in one direction.

    Args:
        to: The level that it ends at.
        until: The step at which it does.
        up: Whether it goes up.
        sudden_at: The step at which most of the way is made at once, if it is.
    """

    to: float
    until: float
    up: bool
    sudden_at: float | None = None

    def __str__(self) -> str:
        if self.sudden_at is not None:
            return f"{'jumps' if self.up else 'drops'} to {figure(self.to)} at {figure(self.sudden_at)}"
        return f"{'rises' if self.up else 'falls'} to {figure(self.to)} by {figure(self.until)}"


@dataclass(frozen=True, slots=True)
class Course:
    """What a curve does, in numbers.

    Args:
        records: How many values were logged.
        first, last: Its first and last finite value.
        early: Median of the first twentieth of its records.
        low, low_at, high, high_at: Its extremes and the steps of them.
        noise: Standard deviation from record to record, without the trend.
        moves: What it does, in order; empty where it keeps to one level within its noise.
        rests_since: The step since which it keeps its last level; None where it does not.
        frozen_since: The step since which it is exactly the same; None where it is not.
        lost: How many values are NaN or infinite.
        lost_first: The first step at which one is.
        lost_for_good: Whether none is finite after that.
        told: All values with their steps, where they are few.
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
    told: tuple[tuple[float, float], ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether every value is the same."""
        return self.low == self.high

    def __str__(self) -> str:
        """Return the course in words: falls, rises, jumps, rests since, frozen since, not finite."""
        words = []
        if self.is_constant and self.records > 1:
            words.append("the same in every record")
        elif len(self.moves) > MOST_TURNS:
            first = self.moves[0]
            words.append(f"{first}, then swings {len(self.moves) - 1} times, {self.moves[-1]}")
        elif self.moves:
            words += [str(one) for one in self.moves]
        elif len(self.told) != self.records:
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
    frozen = _frozen_since(value)
    moves, rests = ((), None) if len(value) <= 2 or low == high else _moves(value, step)
    few = len(value) <= FEW
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
        told=tuple(zip(step.tolist(), value.tolist(), strict=True)) if few else (),
    )


def _noise(value: Floats) -> float:
    """Return the noise from record to record: of the few of a short curve, around its slope."""
    return noise_on_slope(value) if len(value) <= BLOCKS else noise(value)


def _frozen_since(value: Floats) -> int | None:
    """Return the index since which a curve is exactly the same, None where it is not for long."""
    different = np.flatnonzero(value != value[-1])
    since = int(different[-1]) + 1 if len(different) else 0
    return since if len(value) - since >= max(LEAST_FROZEN, FROZEN_SHARE * len(value)) else None


def _moves(value: Floats, step: Floats) -> tuple[tuple[Move, ...], float | None]:
    """Return what a curve does, and since when it rests."""
    logarithmic = positive(value) and _spans_far(value)
    scaled = np.log(value) if logarithmic else value
    level, first, wobble = _levels(scaled)
    span = float(level.max() - level.min())
    back = max(TURN_WOBBLES * wobble, TURN_SHARE * span)
    if span <= TURN_WOBBLES * wobble or not np.isfinite(span):
        return (), float(step[0])
    rest = _rest(level, max(REST_SHARE * span, REST_WOBBLES * wobble))
    turns = _turns(level, back)
    moves = []
    for begin, end in pairwise(turns):
        until = end if end != turns[-1] or rest is None else min(end, max(rest, begin + 1))
        to = float(np.exp(level[end])) if logarithmic else float(level[end])
        sudden = _sudden(level, begin, until)
        at = None if sudden is None else _steepest(scaled, int(first[sudden - 1]), _end(first, sudden, len(value)))
        moves.append(
            Move(
                to, float(step[first[until]]), bool(level[end] > level[begin]), None if at is None else float(step[at])
            )
        )
    return tuple(moves), None if rest is None else float(step[first[rest]])


def _spans_far(value: Floats) -> bool:
    some = sample(value)
    low, high = (float(edge) for edge in np.quantile(some, (0.05, 0.95)))
    return high > FAR * low


def _levels(value: Floats) -> tuple[Floats, NDArray[np.int64], float]:
    """Return the levels by which a course is told, the index of the first record of each, and their noise."""
    if len(value) <= BLOCKS:
        return value, np.arange(len(value)), noise_on_slope(value)
    cut = blocks(value, BLOCKS)
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
                start = min(low, high)
                if start and abs(level[start] - level[0]) >= back:
                    turns.append(start)
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
    away = np.flatnonzero(np.abs(level - level[-1]) > within)
    since = int(away[-1]) + 1 if len(away) else 0
    return since if len(level) - since >= max(3, LEAST_REST * len(level)) else None


def _sudden(level: Floats, begin: int, end: int) -> int | None:
    """Return the stretch at whose beginning most of a move is made at once, None where it takes longer."""
    if end - begin < 1 or len(level) < 2 * FEW:
        return None
    steps = level[begin + 1 : end + 1] - level[begin:end]
    most = int(np.argmax(np.abs(steps)))
    return begin + 1 + most if abs(steps[most]) >= SUDDEN * abs(level[end] - level[begin]) and begin > 0 else None


def _end(first: NDArray[np.int64], block: int, count: int) -> int:
    return int(first[block + 1]) if block + 1 < len(first) else count


def _steepest(value: Floats, first: int, last: int) -> int:
    """Return the index within a stretch to which a curve makes its longest step."""
    return first + 1 + int(np.argmax(np.abs(np.diff(value[first:last])))) if last - first > 1 else first
