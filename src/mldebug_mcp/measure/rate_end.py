"""Where a learning rate comes to its end: a lowest value, next to nothing, or zero."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rounding import ends_by_rounding
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import CannotTell

LEAST = 5
"""Records at the lowest rate. Chosen: fewer show no course."""
STRETCH, RECORDS = 0.03, 3
"""Share of the log, and records, that a rate of zero lasts. Chosen: the first and last records may be zero."""
DIGITS, EXACT = 5, 1e-9
"""Decimals of a rate that may have been rounded to zero, and how near to such a number it is then. Chosen: "%.4f" makes
0.0000 of 2e-5."""
LEARNT, LEAST_LOSSES = 0.1, 6
"""Share by which a loss falls, in so many records, that is not one of a rate of zero. Chosen: beyond its noise."""
SHARE = 0.1
"""Of the log, at the lowest rate. Chosen: a cosine is within a thousandth of its end for its last 2 %."""
STILL_LEARNS = 0.15
"""Share of the peak of a rate that was meant to stay. Chosen: floors are a tenth at most."""
NEAR = 0.001
"""Share of the peak that is the lowest rate. Chosen: what a cosine changes by in its last 2 %."""
SMOOTH, BETWEEN = 5, 0.01
"""Rates, this far from peak and floor, that make a decay gradual. Chosen: the last stage of steps may be long."""
WAY_LEFT, REST = 0.001, 0.75
"""Share of the way, the sum of the rates, that is left to go in so large a share of the run. Chosen: a rate that waits
for a plateau, and comes to nothing on one, stays at its peak for longer than a quarter."""


@dataclass(frozen=True, slots=True)
class RateEnd:
    """Where a rate has come to its end before the log does.

    Args:
        step: The first record there.
        last: The last one there.
        records: How many there are.
        share: Their share of the log.
        rate: The rate there.
        peak: The highest rate of all.
    """

    step: float
    last: float
    records: int
    share: float
    rate: float
    peak: float


def _end(rate: Series, first: int, last: int) -> RateEnd:
    count, step = last - first + 1, rate.step
    at, peak = float(rate.value[first]), float(rate.value.max())
    return RateEnd(float(step[first]), float(step[last]), count, count / len(rate), at, peak)


def _refuse_rounded(rate: Series, end: RateEnd, why: str) -> None:
    if ends_by_rounding(rate.value, end.share):
        raise CannotTell(f"the learning rate is printed with {why}")


def comes_to_nothing(rate: Series) -> RateEnd | None:
    """Return from where on hardly any of the way is left that all rates together can carry the weights."""
    way = np.cumsum(np.maximum(rate.value, 0) * np.maximum(np.gradient(rate.step), 0))
    if not way[-1] > 0:
        return None
    first = int(np.argmax(way >= (1 - WAY_LEFT) * way[-1]))
    end = replace(_end(rate, first, len(rate) - 1), share=1 - first / len(rate))
    if end.share < REST:
        return None
    _refuse_rounded(rate, end, "too few decimals to tell where its schedule ends")
    return end


def stays_low(rate: Series) -> RateEnd | None:
    """Return from where on a rate that fell gradually stays at its lowest value."""
    top = int(np.argmax(rate.value))
    peak, floor, after = float(rate.value[top]), float(rate.value[-1]), rate.value[top:]
    low = after <= floor + NEAR * peak
    rest = int(np.argmin(low[::-1])) if not low.all() else 0
    if peak <= 0 or floor > STILL_LEARNS * peak or rest < max(LEAST, SHARE * len(rate)):
        return None
    if len(np.unique(after[(after > floor + BETWEEN * peak) & (after < (1 - BETWEEN) * peak)])) < SMOOTH:
        return None
    end = _end(rate, len(rate) - rest, len(rate) - 1)
    _refuse_rounded(rate, end, "too few decimals to tell where its schedule ends")
    return end


def zero_for_long(run: Run, rate: Series) -> RateEnd | None:
    """Return the first stretch of records in which a rate is zero, None where there is none.

    Raises:
        CannotTell: the rate has too few decimals, as where a loss is learnt meanwhile.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (rate.value == 0).astype(np.int8), [0]])))
    long = np.flatnonzero(edges[1::2] - edges[::2] >= max(RECORDS, STRETCH * len(rate)))
    if not len(long):
        return None
    last = int(edges[2 * long[0] + 1]) - 1
    end = _end(rate, int(edges[2 * long[0]]), last)
    rounded = bool(np.all(np.abs(rate.value - np.round(rate.value, DIGITS)) < EXACT))
    if rounded and _learns(run, end):
        raise CannotTell("the learning rate is printed as 0 while the loss is learnt: it has too few digits")
    if last == len(rate) - 1:
        _refuse_rounded(rate, end, "so few decimals that the end of a schedule reads 0")
    return end


def _learns(run: Run, end: RateEnd) -> bool:
    """Say whether a loss falls there as it cannot without updates."""
    inside = [run[name].finite.between(end.step, end.last).value for name in ("eval_loss", "loss") if name in run]
    long = [one for one in inside if len(one) >= LEAST_LOSSES]
    return any(median(one[-(len(one) // 3) :]) < (1 - LEARNT) * median(one[: len(one) // 3]) for one in long)
