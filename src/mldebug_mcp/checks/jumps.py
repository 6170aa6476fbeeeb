"""Where a curve leaves its level. It jumps and comes back, rises for good, or goes up and down like a saw."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.curve import (
    MAD_TO_STD,
    blocks,
    end_level,
    mad,
    median_of_three,
    positive,
    row_medians,
    sample,
    start_level,
)
from mldebug_mcp.core.arrays import median, quantile
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Run, Series

# Jumps of a noisy curve: what each point is compared with, and the stretches that stand far above that.


MAX_WINDOWS = 2000
"""Windows that are evaluated per curve. Chosen: enough to follow any trend, and a bound on the cost for a million
points."""
_BATCH = 1 << 18
"""Points of windows that are sorted at a time. Chosen: 2 MiB, however long the curve."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a point is compared with: the level and spread of the points before it.

    Args:
        level: Median of the window before each stretch of points, shape (stretches,).
        spread: Standard deviation in that window, shape (stretches,).
        stride: Points of a stretch.
    """

    level: Floats
    spread: Floats
    stride: int

    def spelled_out(self, stretches: Floats, count: int) -> Floats:
        """Return for each of a curve's `count` points what holds for its stretch, shape (count,)."""
        return stretches if self.stride == 1 else np.repeat(stretches, self.stride)[:count]

    def rest(self, values: Floats) -> Floats:
        """Return what is left of a `sample` of the values without their level."""
        some = sample(values)
        return some - self.level[np.arange(len(some)) * -(-len(values) // max(1, len(some))) // self.stride]

    def is_exceeded(self, values: Floats, threshold: Floats) -> bool:
        """Say whether a point, or the middle one of three, may lie above its level by more than its threshold.

        `threshold` has shape (stretches,). Costs one look at each point.
        """
        starts = np.arange(0, len(values), self.stride)
        highest = np.maximum.reduceat(values, starts)
        ends = starts[1:] - 1
        highest[1:] = np.maximum(highest[1:], values[ends])
        highest[:-1] = np.maximum(highest[:-1], values[starts[1:]])
        return bool((highest - self.level > threshold).any())


def baseline(values: Floats, width: int) -> Baseline:
    """Return the median and spread of the up to `width` points before each point.

    Beyond `MAX_WINDOWS` points the windows move on in strides. The first points are compared with the first window.
    """
    count = len(values)
    width = min(width, count)
    stride = -(-count // MAX_WINDOWS)
    starts = np.maximum(np.arange(0, count, stride), width) - width
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    batch = max(1, _BATCH // width)
    pairs = [_levels_and_spreads(windows[starts[i : i + batch]]) for i in range(0, len(starts), batch)]
    levels, spreads = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    spreads[starts == 0] = mad(values[:width])
    return Baseline(levels, spreads, stride)


def _levels_and_spreads(windows: Floats) -> tuple[Floats, Floats]:
    """Return median of windows of shape (windows, width), and their spread around a straight line.

    The first window stands for its own points, whose fall is part of its spread.
    """
    width = windows.shape[1]
    half = width // 2
    slope = (row_medians(windows[:, width - half :]) - row_medians(windows[:, :half])) / (width - half)
    away = windows - slope[:, np.newaxis] * (np.arange(width) - (width - 1) / 2)
    away -= row_medians(away)[:, np.newaxis]
    return row_medians(windows), MAD_TO_STD * row_medians(np.abs(away))


@dataclass(frozen=True, slots=True)
class Spike:
    """A stretch of points far above the level before them.

    Args:
        first, last, peak: Indices of its first, last and highest point.
        level: The level before it.
        height: How far the peak stands above that level.
        recovered: Whether the curve came back; None where it ends too soon to tell.
    """

    first: int
    last: int
    peak: int
    level: float
    height: float
    recovered: bool | None


def spikes(values: Floats, width: int, threshold: Floats, base: Baseline, skip: int) -> list[Spike]:
    """Return where a curve exceeds `base.level + threshold`, joined where at most `width` apart.

    `threshold` has the shape of the level. A spike lasts until the curve comes back, however long that takes; none
    begins in the first `skip` points.
    """
    count = len(values)
    exceeds = values - base.spelled_out(base.level, count) > base.spelled_out(threshold, count)
    exceeds[:skip] = False
    above = np.flatnonzero(exceeds)
    if not len(above):
        return []
    smooth = median_of_three(values)
    groups = np.split(above, np.flatnonzero(np.diff(above) > width) + 1)
    found: list[Spike] = []
    for group in groups:
        if not found or int(group[0]) > found[-1].last:
            spike = _spike(values, smooth, group, base)
            if _rises_to(spike, values[max(0, spike.first - width) : spike.first]):
                found.append(spike)
    return found


def _rises_to(spike: Spike, before: Floats) -> bool:
    """Say whether a curve comes up to a spike: the first points, compared with those behind them, may only fall."""
    return float(before.min()) < spike.level + spike.height / 2


def _spike(values: Floats, smooth: Floats, group: NDArray[np.int64], base: Baseline) -> Spike:
    first, last = int(group[0]), int(group[-1])
    level = float(base.level[first // base.stride])
    height = float(values[first : last + 1].max()) - level
    # A third of the way back counts as not recovered, two thirds as recovered.
    back = np.flatnonzero(smooth[last + 1 :] < level + height / 3)
    recovered = True if len(back) else (False if len(values) - last > 3 else None)
    last = last + int(back[0]) if len(back) else last
    peak = first + int(np.argmax(values[first : last + 1]))
    return Spike(first, last, peak, level, float(values[peak]) - level, recovered)


# A loss that rises and does not come back: from where, and from what level to what.


SHARE_OF_PROGRESS = 0.2
"""The rise takes back at least this share of the progress made before it. Chosen: by hand."""
SHARE_OF_LEVEL = 0.08
"""... and is at least this share of the best level. Chosen: by hand."""
MIN_RECORDS_FOR_RISE = 2
"""Finite records without which a rise cannot be judged."""
LEAST_EXPLOSION = 3
"""Records of a loss that explodes. Chosen: by hand."""
DOUBLES = 2.0
"""Times the record before that each of them is, at least. Chosen: losses that are sums grow less from record to
record."""
EXPLOSION_TIMES = 100.0
"""Times the first record that the last is, at least. Chosen: by hand."""
MAX_EXCERPT_RECORDS = 8
"""An excerpt has fewer records. Chosen: by hand."""
SHORT_FACTOR = 1.4
"""Times the level of its first half that the last two records of an excerpt must be at. Chosen: by hand."""
MANIFOLD = 10.0
"""Times the lowest level: a higher rise is followed on the logarithm. Chosen: else the last of its jumps would be its
onset."""
EPOCHS = 4
"""Means over epochs in a row that go up. Chosen: they have hardly any noise; by chance one in 24 level curves ends
so."""
SHARE_BY_EPOCHS = 0.05
"""Share above the lowest that the last of them reaches. Chosen: by chance no level curve ends so high."""
FEW = 20
"""Records of a log in which the last go up smoothly. Chosen: by hand."""
TIMES = 2.0
"""Times the lowest loss to which they go up. Chosen: such a slope is not noise."""
MOST_OF_PROGRESS = 0.5
"""Share of the progress made by which they go up. Chosen: such a slope is not noise."""
STEEP = 3
"""Records in a row that go up steeply, which is enough. Chosen: by hand."""
STEEP_TIMES = 4.0
"""Times the lowest loss to which they go up. Chosen: by hand."""
RISE_SIGMAS = 6.0
"""A rise stands this far above the noise of block medians. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A rise of the loss that lasts to the end.

    Args:
        at: Index of the finite record at which it begins.
        lowest: The lowest level before.
        end: The level at the end.
    """

    at: int
    lowest: float
    end: float


def explodes(loss: Series) -> bool:
    """Say whether every record is a multiple of the one before: three of them show that as well as fifty."""
    value = loss.value
    if len(value) < LEAST_EXPLOSION or value[0] <= 0 or value[-1] < EXPLOSION_TIMES * value[0]:
        return False
    return bool(np.all(value[1:] >= DOUBLES * value[:-1]))


def rise_for_good(run: Run) -> Rise | None:
    """Return the rise at whose top the training loss is still at the end of the log; None where there is none."""
    loss = run["loss"].finite
    if len(loss) < MIN_RECORDS_FOR_RISE:
        return None
    if explodes(loss) or _rises_by_epochs(run, loss) or _rises_smoothly(loss):
        best = int(np.argmin(loss.value))
        return Rise(best + 1, float(loss.value[best]), float(loss.value[-1]))
    if len(loss) < MAX_EXCERPT_RECORDS:
        level = median(loss.value[: len(loss) // 2])
        if level <= 0 or float(loss.value[-2:].min()) < SHORT_FACTOR * level:
            return None
        return Rise(int(np.argmax(loss.value > 1.1 * level)), level, float(loss.value[-1]))
    cut = blocks(loss.value)
    best = int(np.argmin(cut.level))
    lowest, end = float(cut.level[best]), end_level(loss.value)
    rise = end - lowest
    start = start_level(loss.value) if best else lowest
    needed = max(SHARE_OF_PROGRESS * (start - lowest), SHARE_OF_LEVEL * abs(lowest), RISE_SIGMAS * cut.wobble, 1e-9)
    tail = loss.value[-max(3, len(loss) // 10) :]
    if rise < needed or best == len(cut.level) - 1 or not _stays_up(loss.value, quantile(tail, 0.2), lowest, rise):
        return None
    return Rise(_onset(loss.value, int(cut.first[best]), lowest, rise), lowest, end)


def _rises_by_epochs(run: Run, loss: Series) -> bool:
    """Say whether the means of the last epochs go up one after the other, well above the lowest before them."""
    if run.step_name != "epoch" or len(loss) <= EPOCHS + 1 or bool(np.any(loss.step != np.floor(loss.step))):
        return False
    lowest, last = float(loss.value.min()), loss.value[-EPOCHS - 1 :]
    return bool(np.all(np.diff(last) > 0)) and 0 < lowest * (1 + SHARE_BY_EPOCHS) < float(last[-1])


def _rises_smoothly(loss: Series) -> bool:
    """Say whether a short curve comes down and goes up again, record by record to its end, by most of its progress."""
    if not EPOCHS + 1 < len(loss) <= FEW:
        return False
    lowest, end, up = float(loss.value.min()), float(loss.value[-1]), np.diff(loss.value) > 0
    if lowest <= 0 or end - lowest <= MOST_OF_PROGRESS * (float(loss.value[0]) - lowest):
        return False
    smooth = end > TIMES * lowest and bool(np.all(up[-EPOCHS:]))
    return smooth or (end > STEEP_TIMES * lowest and bool(np.all(up[-STEEP:])))


def _is_manifold(values: Floats, lowest: float, rise: float) -> bool:
    return lowest > 0 and lowest + rise > MANIFOLD * lowest and positive(values)


def _stays_up(values: Floats, tail: float, lowest: float, rise: float) -> bool:
    """Say whether the low end of the last records is a third of the way up, on the logarithm where it is a long way."""
    if _is_manifold(values, lowest, rise):
        return tail >= lowest * math.exp(math.log1p(rise / lowest) / 3)
    return tail >= lowest + rise / 3


def _onset(values: Floats, after: int, lowest: float, rise: float) -> int:
    """Return the index at which the rise begins: a line through 15 % and 60 % of it, drawn back to its foot.

    A rise by more than a factor of ten is followed on the logarithm, else the last of its jumps would be its beginning.
    """
    smooth = median_of_three(values)
    if _is_manifold(values, lowest, rise):
        smooth, lowest, rise = np.log(smooth), math.log(lowest), math.log1p(rise / lowest)

    def reached(share: float) -> int:
        low = np.flatnonzero(smooth < lowest + share * rise)
        return min(len(values) - 1, max(after, int(low[-1]) + 1 if len(low) else after))

    early, late = reached(0.15), reached(0.6)
    return max(after, early - max(0, late - early) // 3)


# Where the training loss fails: where it is no longer finite, or turns up for good.


RISE = 0.05
"""Share above its lowest level by which a loss rises. Chosen: healthy losses hardly ever rise."""
TURNING_SIGMAS = 6.0
"""Times the noise of block medians by which a loss rises. Chosen: healthy losses hardly ever rise."""
BLOCKS = 20
"""Blocks of records that a loss is cut into. Chosen: by hand."""
LAST = 3
"""Blocks at the end that are its level. Chosen: an outlier in one moves no median."""


def fails_at(loss: Series) -> float | None:
    """Return the step from which the loss is not finite, or at which it was lowest before it rose for good."""
    bad = ~np.isfinite(loss.value)
    if bad.any():
        return float(loss.step[int(np.argmax(bad))])
    cut = blocks(loss.value, BLOCKS)
    lowest = int(np.argmin(cut.level))
    after = cut.level[lowest + 1 :]  # of a loss that falls steeply to the end, the blocks before are higher too
    risen = median(after[-LAST:]) - float(cut.level[lowest]) if len(after) else 0.0
    if risen < max(RISE * abs(float(cut.level[lowest])), TURNING_SIGMAS * cut.wobble):
        return None
    return float(loss.step[int(cut.first[lowest])])


# A loss like the teeth of a saw: it jumps up, and comes down bit by bit until it jumps again.
#
# So does the loss of rows that come in blocks of one kind: each block is learnt, and the next is another. A spike comes
# down as it went up; noise goes up as it goes down.


SAWTOOTH_SIGMAS = 6.0
"""Standard deviations of the changes from record to record that a jump is. Chosen: no noise goes so far."""
OF_LEVEL = 0.04
"""Share of the level that a jump is. Chosen: no noise goes so far."""
STAYS = 0.5
"""Share of a jump that is left a record after its top. Chosen: half separates a jump from its starting level."""
BACK = 0.5
"""Share of a jump that is gone before the next. Chosen: half separates a jump from its starting level."""
MAX_JUMP_RECORDS = 40
"""Records within which a jump ends. Chosen: by hand."""
FEWEST = 3
"""Teeth of a sawtooth. Chosen: two may be a change of the data."""
SHORTEST = 4
"""Records of each tooth. Chosen: by hand."""
SHARE_OF_LARGEST_CHANGES = 0.1
"""Share of the changes that are the largest. Fitted: on runs of benchmarks/faults and loops."""
SUDDEN = 0.8
"""Share of all that the loss goes up which the largest changes make. Fitted: on runs of benchmarks/faults and loops."""
EVENLY = 1.3
"""Times the share of the largest changes in all that the loss goes down. Fitted: noise and spikes have 0.9 to 1.2 in
benchmarks/faults and loops, rows in blocks 1.34 and more."""


REMAINS = 0.1
"""Share of a jump that is left where its fall is over. Chosen: an exponential fall has no other end."""


@dataclass(frozen=True, slots=True)
class Teeth:
    """The teeth.

    Args:
        first: Index of the last record before each jump, shape (n,).
        height: Median height of the jumps.
        length: Median records from one jump to the next.
        fall: Median records from a jump until no more than `REMAINS` of it is left.
    """

    first: NDArray[np.int64]
    height: float
    length: float
    fall: float


def teeth_of(values: Floats) -> Teeth | None:
    """Return the teeth of a curve in time order, None without teeth."""
    change = np.diff(values)
    if len(change) < FEWEST * SHORTEST or _share(change) < max(SUDDEN, EVENLY * _share(-change)):
        return None
    least = max(SAWTOOTH_SIGMAS * mad(change), OF_LEVEL * abs(median(values)))
    jumps = np.flatnonzero(change > least)
    starts = jumps[np.append(True, np.diff(jumps) >= SHORTEST - 1)] if len(jumps) else jumps
    ends = np.minimum(np.append(starts[1:], len(values) - 1), starts + MAX_JUMP_RECORDS)
    found = [(at, height) for at, end in zip(starts, ends, strict=True) if (height := _tooth(values, at, end)) > 0]
    if len(found) < FEWEST:
        return None
    first = np.array([at for at, _ in found])
    falls = [_records_to_fall(values[at + 1 : end + 1]) for at, end in pairwise([*first, len(values) - 1])]
    return Teeth(first, median([height for _, height in found]), median(np.diff(first)), median(falls))


def _records_to_fall(tooth: Floats) -> int:
    """Return after how many records a tooth, from its top on, is near its lowest level."""
    lowest = median(tooth[-max(1, len(tooth) // 4) :])
    return int(np.argmax(tooth <= lowest + REMAINS * (float(tooth[0]) - lowest)))


def _share(change: Floats) -> float:
    """Return which share of all that a curve goes up its largest steps make."""
    up = np.sort(change[change > 0])[::-1]
    return float(up[: max(2, int(SHARE_OF_LARGEST_CHANGES * len(change)))].sum() / up.sum()) if len(up) else 0.0


def _tooth(values: Floats, at: int, end: int) -> float:
    """Return the height of a jump after `at` that comes down bit by bit until `end`, 0 of any other."""
    after = values[at + 1 : end + 1]
    if len(after) < SHORTEST:
        return 0.0
    before, top = float(values[at]), float(after[:2].max())
    height = top - before
    stays, back = float(after[2]) - before > STAYS * height, top - float(after[-2:].min()) > BACK * height
    return height if stays and back else 0.0
