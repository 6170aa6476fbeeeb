"""Robust statistics of one curve.

They give its levels, noise and trend, means over equal stretches, and fewer points that look the same.
"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct, median, quantile
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Series

# Robust statistics that measurements share: levels, noise, trends and spikes of a noisy curve.
#
# Medians and median absolute deviations throughout, so that the outliers that are looked for do not hide themselves.


MAD_TO_STD = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation. Source: 1 / 0.6745, the standard
normal's quantile at 3/4."""
MEDIAN_ERROR = 1.25
"""Standard error of a median of n normal values, times sqrt(n). Source: sqrt(pi / 2)."""
MAX_SAMPLE = 40_000
"""Values that a median over a whole curve is taken from. Chosen: its error is below 1 % of the values' spread."""
MAX_TAIL_SAMPLE = 100_000
"""Values that a high quantile is taken from. Chosen: tails need more of them than medians."""
MAX_IN_BLOCK = 4_000
"""Values that the median of a block is taken from. Chosen: its error is 2 % of the noise."""


def sample(values: Floats, most: int = MAX_SAMPLE) -> Floats:
    """Return at most `most` of the values, evenly spaced, for medians and quantiles of a million."""
    return values[:: -(-len(values) // most)] if len(values) > most else values


def mad(values: Floats) -> float:
    """Return the standard deviation that a normal distribution with this median absolute deviation has."""
    values = sample(values)
    return MAD_TO_STD * median(np.abs(values - median(values))) if len(values) else 0.0


def noise(values: Floats) -> float:
    """Return the standard deviation of the step-to-step noise.

    It is taken from first differences, so that a trend does not count: of a long curve from `MAX_SAMPLE` of them all
    over it, which tell it to within a percent.
    """
    stride = max(1, -(-len(values) // MAX_SAMPLE))
    return _noise_between(values[:-1:stride], values[1::stride])


def noise_on_slope(values: Floats) -> float:
    """Return the `noise` of a short curve that also has a trend: of second differences, which no slope moves."""
    return mad(np.diff(values, n=2)) / math.sqrt(6) if len(values) > 2 else 0.0


def relative_noise(values: Floats) -> float:
    """Return the `noise` of the logarithm of a curve that is above zero."""
    stride = max(1, -(-len(values) // MAX_SAMPLE))
    return _noise_between(np.log(values[:-1:stride]), np.log(values[1::stride]))


def _noise_between(before: Floats, after: Floats) -> float:
    return mad(after - before) / math.sqrt(2) if len(after) > 1 else 0.0


def edge_width(count: int) -> int:
    """Return how many of a curve's `count` points stand for its beginning or its end: a twentieth, at least 3."""
    return min(count, max(3, count // 20))


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
    share = min(0.97, 1 - 4 / len(values))
    normal = NormalDist()
    expected = normal.inv_cdf((1 + share) / 2) / normal.inv_cdf(0.75)
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
    index = np.searchsorted(series.step, other.step, side="right") - 1
    keep = index >= 0
    return other.step[keep], series.value[index[keep]], other.value[keep]


def at_common_steps(series: Series, other: Series) -> tuple[Floats, Floats, Floats]:
    """Return the steps that both metrics have, and the values of both there."""
    steps, here, there = np.intersect1d(series.step, other.step, return_indices=True)
    return steps, series.value[here], other.value[there]


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a curve moves from its first point to its last.

    Args:
        change: End minus start of the straight line through it.
        error: Standard error of the change, from the noise between neighbours.
    """

    change: float
    error: float


def drift(values: Floats) -> Drift:
    """Fit a straight line by least squares and return how far it moves.

    The error of the change over n evenly spaced points with noise s is s * sqrt(12 / n).
    """
    count = len(values)
    if count < 3:
        return Drift(0.0, math.inf)
    middle = (count - 1) / 2
    position = np.arange(-middle, count - middle)
    # From the first value on: else rounding, which differs by processor, moves a curve that keeps one value.
    slope = float(position @ (values - values[0])) / (count * (count**2 - 1) / 12)
    return Drift(slope * (count - 1), noise(values) * math.sqrt(12 / count))


@dataclass(frozen=True, slots=True)
class Level:
    """A level that a curve keeps for a while.

    Args:
        value: Median over the stretch.
        at: Index of the stretch's first point.
    """

    value: float
    at: int


def highest_level(values: Floats) -> Level:
    """Return the highest median of a twentieth: what a curve reaches and keeps, however high a single point jumps."""
    cut = blocks(values, 20)
    best = int(np.argmax(cut.level))
    return Level(float(cut.level[best]), int(cut.first[best]))


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
    """Return the squared error of the best line through the values that bends at one position."""
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
    part = np.searchsorted(step[0] + place * (step[-1] - step[0]), step, side="right")
    parts = distinct(part)
    level = np.array([median(value[part == number]) for number in parts])
    first = step[np.searchsorted(part, parts)]
    return Stretches(level, first, MEDIAN_ERROR * noise(value) / math.sqrt(len(value) / len(parts)))


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
    finite = np.isfinite(value)
    low, high = np.where(finite, value, np.inf), np.where(finite, value, -np.inf)
    kept: set[int] = set()
    for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
        kept |= {first, first + int(np.argmin(low[first:end])), first + int(np.argmax(high[first:end])), end - 1}
        kept.add(first + int(np.argmin(finite[first:end])))
    return np.array(sorted(kept), dtype=np.int64)
