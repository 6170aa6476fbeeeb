"""How much an evaluation changes where the learning rate is high, and where the weights hardly move any more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Series
from mldebug_mcp.measure.statistics import noise_on_slope

HIGH, LOW = 0.5, 0.1
"""Shares of the highest rate: evaluations above the first from the peak on, and below the other at the end. Chosen: the
weights move by the sum of the rates, at the end a fifth at most."""
LEAST = 5
"""Evaluations of each kind. Chosen: three second differences."""


@dataclass(frozen=True, slots=True)
class NoiseByRate:
    """The noise of an evaluation at a high rate and at a low one.

    Args:
        high: Standard deviation at the high rate, without trend.
        low: Standard deviation at the low rate, without trend.
        rate_high: Median rate at the evaluations at the high rate.
        rate_low: Median rate at those at the low rate.
        level: Median of the evaluation at the low rate.
        since: Step of the first evaluation at the low rate.
        count: Evaluations at the low rate.
    """

    high: float
    low: float
    rate_high: float
    rate_low: float
    level: float
    since: float
    count: int

    @property
    def kept(self) -> float:
        """The share of the noise that is left at the low rate; infinite where there was none before."""
        return self.low / self.high if self.high > 0 else float("inf")


def noise_by_rate(evaluation: Series, rate: Series) -> NoiseByRate | None:
    """Return the noise of an evaluation by the rate, None if the rate never falls so far, or for too few evaluations.

    Whatever an evaluation of fixed rows without any randomness changes, changes of the weights bring about, and those
    shrink with the rate. What does not shrink with it is noise of the evaluation's own.
    """
    evaluation, rate = evaluation.finite, rate.finite
    if len(evaluation) < 2 * LEAST or len(rate) < 2 or float(rate.value.max()) <= 0:
        return None
    at_peak = float(rate.step[int(np.argmax(rate.value))])
    there = rate.interpolated(evaluation.step) / float(rate.value.max())
    low = there < LOW
    # The end of the run alone: a cycle that begins anew moves the weights again.
    first_low = len(low) - int(np.argmin(low[::-1])) if not low.all() else 0
    tail = slice(first_low, None)
    high = (there > HIGH) & (evaluation.step >= at_peak)
    if len(evaluation.value[tail]) < LEAST or int(high.sum()) < LEAST:
        return None
    peak = float(rate.value.max())
    return NoiseByRate(
        high=noise_on_slope(evaluation.value[high]),
        low=noise_on_slope(evaluation.value[tail]),
        rate_high=peak * float(np.median(there[high])),
        rate_low=peak * float(np.median(there[tail])),
        level=float(np.median(evaluation.value[tail])),
        since=float(evaluation.step[first_low]),
        count=len(low) - first_low,
    )
