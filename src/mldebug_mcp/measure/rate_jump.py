"""Where a learning rate leaves its course: goes up after its first warm-up, or falls out of a smooth schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Series
from mldebug_mcp.measure.statistics import median, row_medians

FACTOR = 1.5
"""Times the rate before that a rise is a jump. Chosen: half a warm-up's last tenth."""
FALL = 3.0
"""Times the rate after that a fall is a jump. Chosen: schedules of stages fall by two and more, again and again."""
LEAST = 0.1
"""Share of the peak that a jump makes, and that a rate must have. Chosen: near zero any change is a large factor."""
HIGH = 0.2
"""Share of the peak from which a fall is one. Chosen: twice the least."""
WIDTH, RECORDS = 0.02, 3
"""A jump takes no more than this share of the log, or so many records. Chosen: a second warm-up is longer."""
STEEP = 3.0
"""Times the usual change from one record to the next. Chosen: even slopes, as of a triangular cycle, are no jump."""
BEFORE = 6
"""Records whose slope is the usual one at a place. Chosen: cycles become flatter."""
ALIKE, ABOVE = 0.15, 1.2
"""Share by which distances of restarts differ, and times the first peak that they reach. Chosen: records are coarse."""
RUN_DOWN, RUNS_DOWN, BACK = 0.1, 0.35, 0.9
"""Shares of the peak at the end of a schedule, a record before that, and as it begins anew. Chosen: a cosine's ends."""
STAGES = 8
"""Different rates below which a schedule is one of stages. Chosen: more are a course."""
STAIRS, UNEVEN = 4, 3.0
"""Stretches of one rate, and times the typical that the longest has, of a rate set once per epoch. Chosen: as timm."""
LEVEL = 1e-9
"""Share of the peak below which a change is rounding. Chosen: float32 resolves 1e-7."""


@dataclass(frozen=True, slots=True)
class RateJump:
    """A jump of the rate.

    Args:
        before: The rate before it.
        lowest: The rate just behind it.
        after: The rate a little later.
        step: Where it is.
        comes_again: Whether restarts to the first peak, or less, stand at even or doubling distances.
        begins_anew: Whether a schedule that had run down begins anew from its own peak within a record.
    """

    before: float
    lowest: float
    after: float
    step: float
    comes_again: bool
    begins_anew: bool

    @property
    def comes_back(self) -> bool:
        """Whether it is a fall that a second warm-up follows."""
        return self.lowest < min(self.before, self.after) / FACTOR


def jump_of(rate: Series) -> RateJump | None:
    """Return the first jump of a rate, up before down; None if it has none."""
    rate = _by_stairs(rate)
    at = _rise(rate.value)
    at = _fall(rate.value) if at is None else at
    if at is None:
        return None
    later = min(at + _width(rate.value), len(rate) - 1)
    before, lowest, after = (float(rate.value[place]) for place in (at, at + 1, later))
    anew = _begins_anew(rate.value, at)
    return RateJump(before, lowest, after, float(rate.step[at + 1]), _comes_again(rate.value), anew)


def _by_stairs(rate: Series) -> Series:
    """Return the first record of each stretch of one rate, where the rate is set once per epoch."""
    begins = np.append(True, np.diff(rate.value) != 0)
    lengths = np.diff(np.append(np.flatnonzero(begins), len(rate)))
    typical = median(lengths)
    even = len(lengths) >= STAIRS and typical > 1 and float(lengths.max()) <= UNEVEN * typical
    return rate.where(begins) if even else rate


def _width(rate: Floats) -> int:
    return max(RECORDS, int(WIDTH * len(rate)))


def _rise(rate: Floats) -> int | None:
    """Return the index before the first sudden rise that follows the end of the first warm-up."""
    peak, width = float(rate.max()), _width(rate)
    change = np.diff(rate, append=rate[-1])
    falls = change[:-1] <= LEVEL * peak
    if not falls.any():
        return None
    start = int(np.argmax(falls)) + 1  # from here on the first warm-up is over
    for distance in (1, width):
        before, after = rate[start:-distance], rate[start + distance :]
        least = max(LEAST * peak, STEEP * distance * median(np.abs(change[start:])))
        up = np.flatnonzero((after > FACTOR * before) & (after - before > least) & (change[start:-distance] > 0))
        up = up[after[up] - before[up] > STEEP * distance * _slope_before(change, start + up)]
        if len(up):
            return _before_the_drop(rate, start + int(up[0]))
    return None


def _slope_before(change: Floats, places: NDArray[np.int64]) -> Floats:
    """Return the usual change from record to record shortly before each place, (places,)."""
    shortly = np.maximum(places[:, None] - np.arange(1, BEFORE + 1), 0)
    return row_medians(np.abs(change[shortly]))


def _before_the_drop(rate: Floats, lowest: int) -> int:
    """Return the index before the drop that a second warm-up begins with, or `lowest` where the rate only rises."""
    before = lowest
    while before > 0 and rate[before - 1] > FACTOR * rate[before]:
        before -= 1
    # A smooth schedule near zero falls by large factors too, but not down from a share of its peak.
    return before if rate[before] > LEAST * rate.max() else lowest


def _fall(rate: Floats) -> int | None:
    """Return the index before a fall within one record out of an otherwise smooth schedule."""
    after = rate[int(np.argmax(rate)) :]
    change = np.diff(after)
    deep = after[1:] < after[:-1] / FALL
    sudden = np.flatnonzero(deep & (after[:-1] > HIGH * after[0]))
    by_stages = 2 * int(deep.sum()) > int((change != 0).sum()) or len(np.unique(after)) < STAGES
    sudden = sudden[-change[sudden] > STEEP * _slope_before(change, sudden)]
    return None if by_stages or not len(sudden) else len(rate) - len(after) + int(sudden[0])


def _comes_again(rate: Floats) -> bool:
    """Say whether the rate is set back up time and again, to its first peak or less, at even or doubling distances."""
    change = np.diff(rate)
    first = int(np.argmax(change < 0))
    peak = float(rate[: first + 1].max())
    restarts = np.flatnonzero((change > rate[1:] / 2) & (rate[1:] > LEAST * peak))
    restarts = restarts[restarts > first]
    if len(restarts) < 2 or float(rate.max()) > ABOVE * peak:
        return False
    between = np.diff(np.concatenate([[first], restarts + 1])).astype(np.float64)
    if len(restarts) > 2:  # the first stretch holds a warm-up, or misses it
        between = between[1:]
    growth = between[1:] / between[:-1]
    even = np.all(np.abs(growth - 1) < ALIKE) or (len(between) > 2 and float(np.ptp(between)) <= 1)
    return bool(even or np.all(np.abs(growth - 2) < 2 * ALIKE))


def _begins_anew(rate: Floats, at: int) -> bool:
    """Say whether the rate comes back to its own peak, within a record and without a warm-up, after it had run down.

    That is a warm restart, or a scheduler that was stepped on beyond its end: what a resume loses, it loses anywhere. A
    schedule of stages has no end from which it could begin anew.
    """
    if len(np.unique(rate)) < STAGES:
        return False
    peak = float(rate[: at + 1].max())
    jump = at + int(np.argmax(np.diff(rate[at:])))
    ran_down = rate[jump] <= RUN_DOWN * peak and rate[jump - 1] <= RUNS_DOWN * peak
    return bool(ran_down and BACK * peak <= rate[jump + 1] and float(rate.max()) <= ABOVE * peak)
