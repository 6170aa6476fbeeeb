"""Single steps that take far longer than those around them, and whether they come at a fixed distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Series
from mldebug_mcp.measure.statistics import blocks, median

SLOW = 3.0
"""Times the usual around it that a slow step takes. Chosen: evaluations and checkpoints aside, steps vary by less."""
LEAST, MOST_SHARE = 3, 0.25
"""Slow steps, and the share of all. Chosen: more are no exception."""
JITTER = 0.1
"""Seconds. Chosen: an operating system takes so much from a step of a few milliseconds, now and then."""
OFF, REGULAR = 0.02, 0.9
"""Distance from a multiple of a period, and the share of slow steps that keep it. Chosen: a record may be missing."""
WIDEST, TO_A_BLOCK = 40, 25
"""Blocks at most, and records in each, that the usual time is taken from. Chosen: slow steps do not move its median."""


@dataclass(frozen=True, slots=True)
class SlowSteps:
    """The steps that take far longer than those around them.

    Args:
        first: The first of them.
        worst: The slowest.
        factor: Times the usual that it takes.
        count: How many there are.
        cost: The share of all time that they take beyond the usual.
        period: Their distance, where it is a fixed one, or multiples of it.
        at: All of them, shape (count,).
        beyond: What they take beyond the usual, in the unit of the times.
    """

    first: float
    worst: float
    factor: float
    count: int
    cost: float
    period: float | None
    at: Floats
    beyond: float


def slow_steps(times: Series) -> SlowSteps | None:
    """Return the slow ones of some steps, None if there are too few, or so many that they are no exception."""
    cut = blocks(times.value, max(1, min(WIDEST, len(times) // TO_A_BLOCK)))
    usual = cut.level[np.searchsorted(cut.first, np.arange(len(times)), side="right") - 1]
    least = JITTER if times.role is not None and times.role.quantity is Quantity.STEP_TIME else 0.0
    slow = np.flatnonzero((times.value > SLOW * usual) & (times.value > usual + least))
    if len(slow) < LEAST or len(slow) > MOST_SHARE * len(times):
        return None
    worst = int(slow[np.argmax((times.value / usual)[slow])])
    return SlowSteps(
        first=float(times.step[slow[0]]),
        worst=float(times.step[worst]),
        factor=float(times.value[worst] / usual[worst]),
        count=len(slow),
        cost=float(np.sum((times.value - usual)[slow]) / np.sum(times.value)),
        period=_period(times.step[slow]),
        at=times.step[slow],
        beyond=float(np.sum((times.value - usual)[slow])),
    )


def wait_of(slow: SlowSteps, waits: Series) -> float:
    """Return the share of what slow steps take beyond the usual that is a wait beyond the usual one, 0 to 1."""
    found = np.isin(waits.step, slow.at)
    beyond = np.maximum(waits.value[found] - median(waits.value), 0)
    return min(1.0, float(np.sum(beyond)) / slow.beyond) if slow.beyond > 0 else 0.0


def _period(steps: Floats) -> float | None:
    """Return the distance of steps, if they stand at a fixed one (or multiples of it)."""
    gaps = np.diff(steps)
    period = median(gaps)
    if period <= 0:
        return None
    off = np.abs(gaps / period - np.round(gaps / period))
    return period if float((off < OFF).mean()) >= REGULAR else None
