"""Events of the loss: how a jump begins and ends, what it leaves behind, and what the rest did before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Series
from mldebug_mcp.measure.spikes import Spike
from mldebug_mcp.measure.statistics import median, noise

AROUND = 20
"""Records before a jump whose noise it is measured in, and half as many after it whose level is compared. Chosen: by
hand."""
LEAST_AROUND = 6
"""Records on either side without which its noise, or the level behind it, is not known. Chosen: by hand."""
BAND_SIGMAS, BAND_SHARE = 3.0, 0.1
"""A loss is back where it is so many standard deviations above the level before, or this share of the height. Chosen:
by hand."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a jump ends.

    Args:
        sigma: Noise of the records before it, as a standard deviation.
        high: Records above half of its height.
        fading: Records on the way back between half of the height and the level before, with its noise.
        mark: How far the level behind the jump stands above that before it; None where too few records follow.
        mark_error: Standard error of the mark.
    """

    sigma: float
    high: int
    fading: int
    mark: float | None
    mark_error: float


def shape_of(values: Floats, spike: Spike) -> Shape | None:
    """Return how a jump ends, None where it does not, or where too few records before it tell the noise."""
    before = values[max(0, spike.first - AROUND) : spike.first]
    if len(before) < LEAST_AROUND or not spike.recovered:
        return None
    sigma = noise(before)
    half, band = spike.height / 2, max(BAND_SIGMAS * sigma, BAND_SHARE * spike.height)
    above = values[spike.peak :] - spike.level
    under = np.flatnonzero(above <= half)
    if not len(under) or band >= half:
        return None
    turn = int(under[0])
    back = np.flatnonzero(above[turn:] <= band)
    if not len(back):
        return None
    fading, end = int(back[0]), spike.peak + turn + int(back[0])
    high = int(np.count_nonzero(values[spike.first : spike.peak + turn] > spike.level + half))
    after = values[end : end + AROUND // 2]
    enough = len(after) >= LEAST_AROUND
    # A median of n values of normal noise has a standard error of 1.25 sigma / sqrt(n).
    error = 1.25 * sigma * (1 / len(before) + 1 / max(1, len(after))) ** 0.5
    return Shape(sigma, high, fading, median(after) - median(before) if enough else None, error)


def interval(series: Series) -> float:
    """Return the median number of steps from record to record, 0 for a single record."""
    return median(np.diff(series.step)) if len(series) > 1 else 0.0
