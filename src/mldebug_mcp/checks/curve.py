"""Robust statistics of one curve.

They give its levels, noise and trend, means over equal stretches, and fewer points that look the same; last where it
leaves its level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct, median, median_gap, quantile
from mldebug_mcp.core.conventions import STD_PER_MAD
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats, ascends
from mldebug_mcp.logs.run import Run, Series

# Robust statistics that measurements share: levels, noise, trends and spikes of a noisy curve.
#
# Medians and median absolute deviations throughout, so that the outliers that are looked for do not hide themselves.


LEAST_FOR_LEVEL = 5
"""Records that are a level. Chosen: the median of fewer is not one, nor has it a trend."""
LEAST_FOR_COURSE = 20
"""Records that show a course. Chosen: so many blocks of them, or both halves, have a level and a noise."""
CLEAR_SIGMAS = 6.0
"""Standard deviations of a level, that of a block of records among them, by which it has clearly moved. Fitted: 400
healthy runs of benchmarks/faults: none does by chance."""
MEDIAN_ERROR = 1.25
"""Standard error of a median of n normal values, times sqrt(n). Source: sqrt(pi / 2)."""
MAX_SAMPLE = 40_000
"""Values that a median over a whole curve is taken from. Chosen: its error is below 1 % of the values' spread."""
MAX_TAIL_SAMPLE = 100_000
"""Values that a high quantile is taken from. Chosen: tails need more of them than medians."""
MAX_IN_BLOCK = 4_000
"""Values that the median of a block is taken from. Chosen: its error is 2 % of the noise."""


def finite_of(run: Run, metric: str) -> Series:
    """Return the finite records of a metric; none where it is not logged."""
    return run[metric].finite if metric in run else Series(metric, np.empty(0), np.empty(0))


def first_finite(found: Iterable[Series]) -> Series | None:
    """Return the finite records of the first series that has any; None if none has."""
    return next((series.finite for series in found if len(series.finite)), None)


def sample(values: Floats, most: int = MAX_SAMPLE) -> Floats:
    """Return at most `most` of the values, evenly spaced, for medians and quantiles of a million."""
    return values[:: -(-len(values) // most)] if len(values) > most else values


def mad(values: Floats) -> float:
    """Return the standard deviation that a normal distribution with this median absolute deviation has."""
    values = sample(values)
    return STD_PER_MAD * median(np.abs(values - median(values))) if len(values) else 0.0


def noise(values: Floats) -> float:
    """Return the standard deviation of the step-to-step noise.

    It is taken from first differences, so that a trend does not count: of a long curve from `MAX_SAMPLE` of them all
    over it, which tell it to within a percent.
    """
    stride = max(1, -(-len(values) // MAX_SAMPLE))
    return _noise_between(values[:-1:stride], values[1::stride])


def noise_on_slope(values: Floats) -> float:
    """Return the `noise` of a curve that also has a trend: of second differences, which no slope moves."""
    count = len(values) - 2
    if count < 1:
        return 0.0
    stride = -(-count // MAX_SAMPLE)
    first, middle, last = (values[at : count + at : stride] for at in range(3))
    return mad((last - middle) - (middle - first)) / math.sqrt(6)


def relative_noise(values: Floats) -> float:
    """Return the `noise` of the logarithm of a curve that is above zero."""
    stride = max(1, -(-len(values) // MAX_SAMPLE))
    return _noise_between(np.log(values[:-1:stride]), np.log(values[1::stride]))


def _noise_between(before: Floats, after: Floats) -> float:
    return mad(after - before) / math.sqrt(2) if len(after) > 1 else 0.0


def edge_width(count: int) -> int:
    """Return how many of a curve's `count` points stand for its beginning or its end: a twentieth, at least 3."""
    return min(count, max(3, count // 20))


IN_TURN_APART = 10.0
"""Times the noise of either curve by which two that take turns are apart. Chosen: batches of one kind are not."""


def curves_in_turn(values: Floats) -> tuple[float, float] | None:
    """Return the last levels of two smooth curves whose values take turns, None where it is one curve.

    Such are the records of two runs, sorted by step, and those of two kinds of batches. Each value lies above its
    neighbours, and the next below: so do those of no smooth curve, whichever way it goes.
    """
    if len(values) < LEAST_FOR_COURSE:
        return None
    beginning = _apart(values[:LEAST_FOR_COURSE])  # most curves show there that they are one
    if not (beginning > 0).all() and not (beginning < 0).all():
        return None
    apart, count = _apart(values), len(values) // 2
    in_turn = bool((apart > 0).all()) or bool((apart < 0).all())
    even, odd = values[: 2 * count : 2], values[1 : 2 * count : 2]
    if not in_turn or median(np.abs(apart)) < IN_TURN_APART * max(noise(even), noise(odd)):
        return None
    return end_level(even), end_level(odd)


def _apart(values: Floats) -> Floats:
    """Return how far values lie from the middle of their neighbours: above zero throughout where they take turns."""
    apart = values[1:-1] - (values[:-2] + values[2:]) / 2
    apart[::2] *= -1
    return apart


def start_level(values: Floats) -> float:
    """Return the median of the first twentieth of a curve, of three points at least."""
    return median(sample(values[: edge_width(len(values))], MAX_IN_BLOCK))


def start_in_words(values: Floats) -> str:
    """Return the `start_level` with the records that it is of."""
    return f"the first {edge_width(len(values))} records lie around {figure(start_level(values))}"


def end_level(values: Floats) -> float:
    """Return the median of the last twentieth of a curve, of three points at least."""
    return median(sample(values[-edge_width(len(values)) :], MAX_IN_BLOCK))


@dataclass(frozen=True, slots=True)
class Blocks:
    """A curve cut into blocks of equal numbers of points.

    Args:
        level: Median of each block, shape (blocks,).
        first: Index of each block's first point, shape (blocks,).
        wobble: Noise of the block medians, as a standard deviation.
    """

    level: Floats
    first: NDArray[np.int64]
    wobble: float


def blocks(values: Floats, count: int = 40) -> Blocks:
    """Cut a curve into at most `count` blocks of at least 3 points (of one, below six points)."""
    count = max(1, min(count, len(values) // 3 if len(values) >= 6 else len(values)))
    first = np.linspace(0, len(values), count + 1).astype(np.int64)
    level = np.array([median(sample(values[a:b], MAX_IN_BLOCK)) for a, b in pairwise(first)])
    # Second differences: a steady trend, however steep, is no wobble.
    wobble = mad(np.diff(level, 2)) / math.sqrt(6) if count > 4 else 0.0
    points = min(max(1, len(values) // count), MAX_IN_BLOCK)
    return Blocks(level, first[:-1], max(wobble, noise(values) / math.sqrt(points)))


def row_medians(rows: Floats) -> Floats:
    """Return the median of each row, shape (rows,), as numpy does: it is faster to sort short rows, shape (rows, n)."""
    ordered, half = np.sort(rows, axis=1), rows.shape[1] // 2
    middle = ordered[:, half] if rows.shape[1] % 2 else (ordered[:, half - 1] + ordered[:, half]) / 2
    return np.where(np.isnan(ordered[:, -1]), np.nan, middle)


def stretch_medians(values: Floats, edges: NDArray[np.int64]) -> Floats:
    """Return the median of each stretch, shape (stretches,): those of one length are sorted together.

    Args:
        values: The values, shape (n,).
        edges: Where each stretch begins, and n; no stretch is empty. Shape (stretches + 1,).
    """
    lengths = np.diff(edges)
    medians = np.empty(len(lengths))
    for length in set(lengths.tolist()):
        which = np.flatnonzero(lengths == length)
        medians[which] = row_medians(values[edges[which, None] + np.arange(length)])
    return medians


def median_of_three(values: Floats) -> Floats:
    """Return each point's median with its two neighbours, shape (n,): single outliers are gone."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    before, at, after = padded[:-2], padded[1:-1], padded[2:]
    middle: Floats = np.maximum(before, at)
    np.minimum(middle, after, out=middle)
    np.maximum(middle, np.minimum(before, at), out=middle)
    return middle


TAIL_OF_NORMAL_NOISE = 3.217380808164528
"""The 97th percentile over the median of the sizes of normal noise. Source: its quantiles."""


def heaviness(values: Floats) -> float:
    """Return how heavy the tails of the noise are: about 1 for normal noise, 1.35 for Student's t with 3 degrees.

    That is the 97th percentile over the median of the sizes of second differences, as a share of the same quotient of
    normal noise. A steady trend and a few outliers do not count. Below 40 points it is 1: they cannot tell.
    """
    if len(values) < 40:
        return 1.0
    stride = -(-(len(values) - 2) // MAX_TAIL_SAMPLE)
    before, at, after = values[:-2:stride], values[1:-1:stride], values[2::stride]
    size = np.abs((after - at) - (at - before))
    typical = median(size)
    share, expected = min(0.97, 1 - 4 / len(values)), TAIL_OF_NORMAL_NOISE
    if share < 0.97:
        from statistics import NormalDist

        expected = NormalDist().inv_cdf((1 + share) / 2) / NormalDist().inv_cdf(0.75)
    return quantile(size, share) / typical / expected if typical > 0 else 1.0


MAX_RESTARTS = 0.05
"""Share of its records in which a counter may begin anew. Chosen: what falls more often counts nothing up."""


def counted_up(values: Floats) -> Floats | None:
    """Return a counter as if it had never begun anew at zero, shape (n,); None for values that are not counted up.

    TRL 1.16.0 counts the tokens of a resumed run from zero, while its steps go on.
    """
    fell = np.diff(values) < 0
    if len(values) < 2 or values.min() < 0 or fell.sum() > MAX_RESTARTS * len(values):
        return None
    before = np.cumsum(np.where(fell, values[:-1], 0.0))
    total: Floats = values + np.concatenate([np.zeros(1), before])
    return total


def positive(values: Floats) -> bool:
    """Say whether a curve has values and all are above zero, so that its logarithm can be taken."""
    return bool(len(values)) and float(values.min()) > 0


def aligned(series: Series, other: Series) -> tuple[Floats, Floats, Floats]:
    """Return the steps of `other` and both metrics there.

    Of `series`, the value at a step is the last that was logged at or before it.
    """
    if not len(series) or not len(other):
        return np.empty(0), np.empty(0), np.empty(0)
    if series.step is other.step and ascends(other.step):
        return other.step, series.value, other.value
    index = np.searchsorted(series.step, other.step, side="right") - 1
    keep = index >= 0
    return other.step[keep], series.value[index[keep]], other.value[keep]


def at_common_steps(series: Series, other: Series) -> tuple[Floats, Floats, Floats]:
    """Return the steps that both metrics have, and the values of both there."""
    if series.step is other.step and ascends(other.step):
        return other.step, series.value, other.value
    steps, here, there = np.intersect1d(series.step, other.step, return_indices=True)
    return steps, series.value[here], other.value[there]


def drift(values: Floats) -> tuple[float, float]:
    """Fit a straight line by least squares and return how far it moves, with the standard error of that.

    The error of the change over n evenly spaced points with noise s is s * sqrt(12 / n).
    """
    count = len(values)
    if count < 3:
        return 0.0, math.inf
    middle = (count - 1) / 2
    position = np.arange(-middle, count - middle)
    # From the first value on: else rounding, which differs by processor, moves a curve that keeps one value.
    slope = float(position @ (values - values[0])) / (count * (count**2 - 1) / 12)
    return slope * (count - 1), noise(values) * math.sqrt(12 / count)


def highest_level(values: Floats) -> tuple[float, int]:
    """Return the highest median of a twentieth, and where it begins: a curve keeps it, however high a point jumps."""
    cut = blocks(values, 20)
    best = int(np.argmax(cut.level))
    return float(cut.level[best]), int(cut.first[best])


def monotone(levels: Floats) -> float:
    """Return the rank correlation (Spearman's, ties in order) of levels with their order, from -1 to 1."""
    count = len(levels)
    if count < 3:
        return 0.0
    ranks = np.argsort(np.argsort(levels, kind="stable"), kind="stable")
    return float(1 - 6 * np.sum((ranks - np.arange(count)) ** 2) / (count * (count**2 - 1)))


def departure(values: Floats, target: float) -> int:
    """Return the index at which a curve leaves its course for the level `target`, which it reaches later.

    A straight line with one bend is fitted to the block medians up to where most of the way is done; the bend with the
    least squared error is the departure; of a jump, the first point past halfway.
    """
    cut = blocks(values, 120)
    level = cut.level
    up = target > median(level[: edge_width(len(level))])
    base = float(level.min() if up else level.max())
    most = base + 0.7 * (target - base)
    last = int(np.argmax(level >= most if up else level <= most))
    course = level[: last + 1]
    if len(course) < 6 or not np.isfinite(course).all():
        return int(cut.first[last])
    position = np.arange(len(course), dtype=np.float64)
    errors = [_bent_error(position, course, bend) for bend in range(1, len(course) - 1)]
    at = int(cut.first[1 + int(np.argmin(errors))])
    if len(course) - 1 - int(np.argmin(errors)) > 2:
        return at
    # Done within a block: a jump, which can be told to the point.
    halfway = base + (target - base) / 2
    return at + int(np.argmax(values[at:] >= halfway if up else values[at:] <= halfway))


def _bent_error(position: Floats, values: Floats, bend: int) -> float:
    terms = np.stack([np.ones_like(position), position, np.maximum(0, position - bend)], axis=1)
    fitted = terms @ np.linalg.lstsq(terms, values, rcond=None)[0]
    return float(np.sum((values - fitted) ** 2))


def last_decimal(values: Floats) -> float:
    """Return the unit of the last decimal that values were printed with, of two to eight; 0 if they have more."""
    finite = values[np.isfinite(values)]
    for decimals in range(2, 9):
        scaled = finite * 10.0**decimals
        if bool(np.all(np.abs(scaled - np.round(scaled)) < 1e-6)):
            return float(10.0**-decimals)
    return 0.0


ROUNDED_FROM = 20.0
"""Units of the last digit up to which numbers before the zeros have come down. Chosen: a few more records of a fall."""
FEW_BEFORE = 3
"""How many numbers before the zeros count, by their median. Chosen: a lone small one is chance."""


def true_at_end(holds: NDArray[np.bool_]) -> int:
    """Return for how many places at the end something holds without a break."""
    return len(holds) if holds.all() else int(np.argmin(holds[::-1]))


def zeros_at_end(values: Floats) -> int:
    """Return how many values at the end are exactly zero."""
    return true_at_end(values == 0)


LEAST_AFTER_START = 10
"""Records behind the first. Chosen: so many come back from a step that was too large."""
TIMES_FIRST_RECORD = 3.0
"""Times its first record that a loss is at least ever after. Chosen: a batch is twice as hard as another."""
MAX_LATER_RISE_RATIO = 1.5
"""Times its second record that the level of the next ones is at most. Chosen: what runs away is slower than that."""


def leaves_start_at_once(loss: Series) -> bool:
    """Say whether a loss is by far the lowest in its first record, from the second on far above, and never back.

    Not this where it may be a sum over the steps between two records: the first then is one step alone.
    """
    first, later = loss.value[:1], loss.value[1:]
    if len(later) < LEAST_AFTER_START or not first[0] > 0 or later.min() / TIMES_FIRST_RECORD < first[0]:
        return False
    level, steps = median(later[:LEAST_AFTER_START]), median_gap(loss.step)
    is_sum = any(
        1 / MAX_LATER_RISE_RATIO <= later_level / first[0] / steps <= MAX_LATER_RISE_RATIO
        for later_level in (level, later[0])
    )
    return level / MAX_LATER_RISE_RATIO <= later[0] and not (steps > 1 and is_sum)


def fades_to_zero(values: Floats) -> bool:
    """Say whether zeros at the end are small numbers written in few digits: those before came down to the last one."""
    zeros = zeros_at_end(values)
    before = values[: len(values) - zeros]
    if not zeros or len(before) < FEW_BEFORE:
        return False
    last = median(before[-FEW_BEFORE:])
    return 0 < last <= ROUNDED_FROM * last_decimal(before) and last < start_level(before)


# The level of a curve over equal stretches of steps, which a shorter or longer logging interval does not move.


@dataclass(frozen=True, slots=True)
class Stretches:
    """The levels of a curve over stretches of its steps.

    Args:
        level: Median of each stretch that holds a record, shape (stretches,).
        first: Step of the first record of each, shape (stretches,).
        error: Standard error of a level, from the noise between neighbouring records.
    """

    level: Floats
    first: Floats
    error: float


def stretches_of(series: Series, count: int) -> Stretches:
    """Cut a curve with records into `count` stretches that are equally long in steps."""
    step, value = series.step, series.value
    place = np.linspace(0, count, 1 + count)[1:-1] / count
    edges = np.searchsorted(step, step[0] + place * (step[-1] - step[0]))
    edges = distinct(np.concatenate([[0], edges, [len(step)]]))
    level = np.array([median(value[start:end]) for start, end in pairwise(edges)])
    error = MEDIAN_ERROR * noise(value) / math.sqrt(len(value) / len(level))
    return Stretches(level, step[edges[:-1]], error)


# Fewer points of a curve that look the same: its extremes survive.


def thinned(series: Series, stretches: int) -> Series:
    """Return the first, lowest, highest and last point of each of so many stretches of steps.

    A line through them looks like one through all points (M4 of Jugel et al., 2014, doi.org/10.14778/2732951.2732953).
    The first value of a stretch that is not finite stays, too.
    """
    if len(series) <= 4 * stretches:
        return series
    keep = _of_stretches(series.step, series.value, stretches)
    return Series(series.name, series.step[keep], series.value[keep], series.logged_as)


def _of_stretches(step: Floats, value: Floats, stretches: int) -> NDArray[np.int64]:
    edges = np.searchsorted(step, np.linspace(step[0], step[-1], stretches + 1)[:-1])
    starts = distinct(edges)
    ends = np.append(starts[1:], len(step))
    kept: set[int] = set()
    for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
        part = value[first:end]
        finite = np.isfinite(part)
        low, high = np.where(finite, part, np.inf), np.where(finite, part, -np.inf)
        kept |= {first, first + int(np.argmin(low)), first + int(np.argmax(high)), end - 1}
        kept.add(first + int(np.argmin(finite)))
    return np.array(sorted(kept), dtype=np.int64)


# Jumps of a noisy curve: what each point is compared with, and the stretches that stand far above that.


MAX_WINDOWS = 2000
"""Windows of a curve. Chosen: enough to follow any trend, and a bound on the cost for a million points."""
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
    return row_medians(windows), STD_PER_MAD * row_medians(np.abs(away))


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
            # The first points, compared with those behind them, may only fall.
            lowest = float(values[max(0, spike.first - width) : spike.first].min())
            if lowest < spike.level + spike.height / 2:
                found.append(spike)
    return found


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
MIN_RECORD_GROWTH_RATIO = 2.0
"""Times the record before that each is. Chosen: losses that are sums grow less from record to record."""
EXPLOSION_TIMES = 100.0
"""Times the first record that the last is, at least. Chosen: by hand."""
MAX_EXCERPT_RECORDS = 8
"""An excerpt has fewer records. Chosen: by hand."""
SHORT_FACTOR = 1.4
"""Times the level of its first half that the last two records of an excerpt must be at. Chosen: by hand."""
MIN_RISE_FOR_LOGARITHM = 10.0
"""Times the lowest level above which the logarithm is followed. Chosen: else its last jump would be its onset."""
MIN_RISING_EPOCHS = 4
"""Means of epochs in a row that go up. Chosen: they have hardly any noise; by chance one in 24 level curves ends so."""
SHARE_BY_EPOCHS = 0.05
"""Share above the lowest that the last of them reaches. Chosen: by chance no level curve ends so high."""
MAX_SMOOTH_RISE_RECORDS = 20
"""Records of a log in which the last go up smoothly. Chosen: by hand."""
MIN_SMOOTH_RISE_RATIO = 2.0
"""Times the lowest loss to which they go up. Chosen: such a slope is not noise."""
MOST_OF_PROGRESS = 0.5
"""Share of the progress made by which they go up. Chosen: such a slope is not noise."""
MIN_STEEP_RECORDS = 3
"""Records in a row that go up steeply, which is enough. Chosen: by hand."""
STEEP_TIMES = 4.0
"""Times the lowest loss to which they go up. Chosen: by hand."""


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
    return bool(np.all(value[1:] >= MIN_RECORD_GROWTH_RATIO * value[:-1]))


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
    needed = max(SHARE_OF_PROGRESS * (start - lowest), SHARE_OF_LEVEL * abs(lowest), CLEAR_SIGMAS * cut.wobble, 1e-9)
    tail = loss.value[-max(3, len(loss) // 10) :]
    if rise < needed or best == len(cut.level) - 1 or not _stays_up(loss.value, quantile(tail, 0.2), lowest, rise):
        return None
    return Rise(_onset(loss.value, int(cut.first[best]), lowest, rise), lowest, end)


def _rises_by_epochs(run: Run, loss: Series) -> bool:
    """Say whether the means of the last epochs go up one after the other, well above the lowest before them."""
    if run.step_name != "epoch" or len(loss) <= MIN_RISING_EPOCHS + 1 or bool(np.any(loss.step != np.floor(loss.step))):
        return False
    lowest, last = float(loss.value.min()), loss.value[-MIN_RISING_EPOCHS - 1 :]
    return bool(np.all(np.diff(last) > 0)) and 0 < lowest * (1 + SHARE_BY_EPOCHS) < float(last[-1])


def _rises_smoothly(loss: Series) -> bool:
    """Say whether a short curve comes down and goes up again, record by record to its end, by most of its progress."""
    if not MIN_RISING_EPOCHS + 1 < len(loss) <= MAX_SMOOTH_RISE_RECORDS:
        return False
    lowest, end, up = float(loss.value.min()), float(loss.value[-1]), np.diff(loss.value) > 0
    if lowest <= 0 or end - lowest <= MOST_OF_PROGRESS * (float(loss.value[0]) - lowest):
        return False
    smooth = end > MIN_SMOOTH_RISE_RATIO * lowest and bool(np.all(up[-MIN_RISING_EPOCHS:]))
    return smooth or (end > STEEP_TIMES * lowest and bool(np.all(up[-MIN_STEEP_RECORDS:])))


def _is_manifold(values: Floats, lowest: float, rise: float) -> bool:
    return lowest > 0 and lowest + rise > MIN_RISE_FOR_LOGARITHM * lowest and positive(values)


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
        return min(len(values) - 1, max(after, len(values) - true_at_end(smooth >= lowest + share * rise)))

    early, late = reached(0.15), reached(0.6)
    return max(after, early - max(0, late - early) // 3)


# Where the training loss fails: where it is no longer finite, or turns up for good.


MIN_LOSS_RISE_SHARE = 0.05
"""Share above its lowest level by which a loss rises. Chosen: healthy losses hardly ever rise."""
LOSS_BLOCKS = 20
"""Blocks of records that a loss is cut into. Chosen: by hand."""
END_LEVEL_BLOCKS = 3
"""Blocks at the end that are its level. Chosen: an outlier in one moves no median."""


def fails_at(loss: Series) -> float | None:
    """Return the step from which the loss is not finite, or at which it was last near its lowest, to rise for good."""
    bad = ~np.isfinite(loss.value)
    if bad.any():
        return float(loss.step[int(np.argmax(bad))])
    cut = blocks(loss.value, LOSS_BLOCKS)
    lowest = int(np.argmin(cut.level))
    after = cut.level[lowest + 1 :]  # of a loss that falls steeply to the end, the blocks before are higher too
    risen = median(after[-END_LEVEL_BLOCKS:]) - float(cut.level[lowest]) if len(after) else 0.0
    least = max(MIN_LOSS_RISE_SHARE * abs(float(cut.level[lowest])), CLEAR_SIGMAS * cut.wobble)
    if risen < least:
        return None
    near = lowest + int(np.flatnonzero(cut.level[lowest:] < cut.level[lowest] + least)[-1])
    return float(loss.step[int(cut.first[near])])


# A loss like the teeth of a saw: it jumps up, and comes down bit by bit until it jumps again.
#
# So does the loss of rows that come in blocks of one kind: each block is learnt, and the next is another. A spike comes
# down as it went up; noise goes up as it goes down.


OF_LEVEL = 0.04
"""Share of the level that a jump is. Chosen: no noise goes so far."""
MIN_JUMP_SHARE_KEPT = 0.5
"""Share of a jump that is left a record after its top. Chosen: half separates a jump from its starting level."""
MIN_JUMP_SHARE_LOST = 0.5
"""Share of a jump that is gone before the next. Chosen: half separates a jump from its starting level."""
MAX_JUMP_RECORDS = 40
"""Records within which a jump ends. Chosen: by hand."""
MIN_SAWTOOTH_TEETH = 3
"""Teeth of a sawtooth. Chosen: two may be a change of the data."""
MIN_RECORDS_PER_TOOTH = 4
"""Records of each tooth. Chosen: by hand."""
SHARE_OF_LARGEST_CHANGES = 0.1
"""Share of the changes that are the largest. Fitted: on runs of benchmarks/faults and loops."""
MIN_LARGEST_RISES_SHARE = 0.8
"""Share of all that the loss goes up which the largest changes make. Fitted: on runs of benchmarks/faults and loops."""
MIN_RISE_FALL_RATIO = 1.3
"""Times the share of the largest changes in all that the loss goes down. Fitted: noise and spikes have 0.9 to 1.2 in
benchmarks/faults and loops, rows in blocks 1.34 and more."""
MAX_JUMP_SHARE_LEFT = 0.1
"""Share of a jump that is left where its fall is over. Chosen: an exponential fall has no other end."""


@dataclass(frozen=True, slots=True)
class Teeth:
    """The teeth.

    Args:
        first: Index of the last record before each jump, shape (n,).
        height: Median height of the jumps.
        length: Median records from one jump to the next.
        fall: Median records from a jump until no more than `MAX_JUMP_SHARE_LEFT` of it is left.
    """

    first: NDArray[np.int64]
    height: float
    length: float
    fall: float


def teeth_of(values: Floats) -> Teeth | None:
    """Return the teeth of a curve in time order, None without teeth."""
    change = np.diff(values)
    if len(change) < MIN_SAWTOOTH_TEETH * MIN_RECORDS_PER_TOOTH:
        return None
    share = _share(change)
    if share < MIN_LARGEST_RISES_SHARE or share < MIN_RISE_FALL_RATIO * _share(-change):
        return None
    least = max(CLEAR_SIGMAS * mad(change), OF_LEVEL * abs(median(values)))
    jumps = np.flatnonzero(change > least)
    starts = jumps[np.append(True, np.diff(jumps) >= MIN_RECORDS_PER_TOOTH - 1)] if len(jumps) else jumps
    ends = np.minimum(np.append(starts[1:], len(values) - 1), starts + MAX_JUMP_RECORDS)
    found = [(at, height) for at, end in zip(starts, ends, strict=True) if (height := _tooth(values, at, end)) > 0]
    if len(found) < MIN_SAWTOOTH_TEETH:
        return None
    first = np.array([at for at, _ in found])
    falls = [_records_to_fall(values[at + 1 : end + 1]) for at, end in pairwise([*first, len(values) - 1])]
    return Teeth(first, median([height for _, height in found]), median(np.diff(first)), median(falls))


def _records_to_fall(tooth: Floats) -> int:
    """Return after how many records a tooth, from its top on, is near its lowest level."""
    lowest = median(tooth[-max(1, len(tooth) // 4) :])
    return int(np.argmax(tooth <= lowest + MAX_JUMP_SHARE_LEFT * (float(tooth[0]) - lowest)))


def _share(change: Floats) -> float:
    """Return which share of all that a curve goes up its largest steps make."""
    up = change[change > 0]
    others = max(0, len(up) - max(2, int(SHARE_OF_LARGEST_CHANGES * len(change))))
    if not len(up):
        return 0.0
    up.partition(others)
    return float(up[others:].sum() / up.sum())


def _tooth(values: Floats, at: int, end: int) -> float:
    """Return the height of a jump after `at` that comes down bit by bit until `end`, 0 of any other."""
    after = values[at + 1 : end + 1]
    if len(after) < MIN_RECORDS_PER_TOOTH:
        return 0.0
    before, top = float(values[at]), float(after[:2].max())
    height = top - before
    stays, back = (
        float(after[2]) - before > MIN_JUMP_SHARE_KEPT * height,
        top - float(after[-2:].min()) > MIN_JUMP_SHARE_LOST * height,
    )
    return height if stays and back else 0.0
