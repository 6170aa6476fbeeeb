"""Jumps of a noisy curve: what each point is compared with, and the stretches that stand far above that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.measure.statistics import MAD_TO_STD, mad, median_of_three, row_medians, sample

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
