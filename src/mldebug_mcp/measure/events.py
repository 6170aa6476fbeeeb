"""Events of the loss: how a jump begins and ends, what it leaves behind, and what the rest did before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.spikes import Spike
from mldebug_mcp.measure.statistics import median, noise

AROUND = 20
"""Records before a jump whose noise it is measured in, and half as many after it whose level is compared."""
LEAST_AROUND = 6
BAND_SIGMAS, BAND_SHARE = 3.0, 0.1
"""A loss is back where it is so many standard deviations above the level before, or this share of the height."""
BEFORE = 8
"""Records before a jump in which a rate that rises at once is looked for."""
AT_ONCE = 1.5
"""Times the rate of the record before, after records in which it did not rise: no smooth schedule does so."""


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


@dataclass(frozen=True, slots=True)
class RateJump:
    """A learning rate that rises from one record to the next after it had not.

    Args:
        step: Where it is up.
        before: The rate before.
        after: The rate there.
    """

    step: float
    before: float
    after: float


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


def rate_jump(run: Run, step: float) -> RateJump | None:
    """Return where the learning rate rises at once in the records before a step, or there; None where it does not."""
    if "learning_rate" not in run:
        return None
    rate = run["learning_rate"].finite
    rate = rate.where(rate.step <= step)
    value = rate.value[-2 * BEFORE :]
    for at in range(max(3, len(value) - BEFORE), len(value)):
        still = bool(np.all(np.diff(value[at - 3 : at]) <= 0))
        if still and value[at] > AT_ONCE * value[at - 1] > 0:
            return RateJump(float(rate.step[len(rate) - len(value) + at]), float(value[at - 1]), float(value[at]))
    return None


def passes_at(run: Run, steps: Floats) -> Floats | None:
    """Return how many passes over the data were made at some steps, shape (n,); None where it is not known."""
    if run.step_name != "step":
        return None
    epoch = run["epoch"].finite if "epoch" in run else None
    if epoch is not None and len(epoch) > 1 and bool(np.any(epoch.value % 1 != 0)):
        return epoch.interpolated(steps)
    per_pass = run.facts.steps_per_pass
    return None if not per_pass else steps / per_pass


def interval(series: Series) -> float:
    """Return the median number of steps from record to record, 0 for a single record."""
    return median(np.diff(series.step)) if len(series) > 1 else 0.0
