"""The share of each step that is spent waiting for data."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import aligned, median

PERCENT = "time_metrics/data_loading(%)"
"""torchtitan's name for the share itself, in per cent."""


def data_wait(run: Run) -> Series | None:
    """Return the share of each recorded step that waits for data, between 0 and 1; None where it cannot be told.

    The step is as long as its own time says, else, where each step has a record, as a rate of steps or the clock does:
    of several steps to a record, none tells whether the wait is that of one of them or of all. A step time that is
    shorter than the wait does not hold it.
    """
    if PERCENT in run:
        percent = run[PERCENT].finite
        return Series("share", percent.step, percent.value / 100)
    data = next(run.with_role(Quantity.DATA_TIME, phase="train", parts=True), None)
    whole = _step_time(run, data.finite) if data is not None else None
    if data is None or whole is None:
        return None
    step, waited, total = aligned(data.finite, whole)
    keep = (total > 0) & (waited >= 0)
    parts = np.where(waited > total, waited + total, total)
    return Series("share", step[keep], waited[keep] / parts[keep])


def _step_time(run: Run, data: Series) -> Series | None:
    """Return the seconds that a step takes, from a rate or clock only where the wait is logged at each step."""
    named = next(run.with_role(Quantity.STEP_TIME, phase="train"), run.series.get("time"))
    if named is not None:
        return named.finite
    if run.step_name != "step" or len(data) < 2 or median(np.diff(data.step)) != 1:
        return None
    rate = next(run.with_role(Quantity.STEPS_PER_SECOND, phase="train"), None)
    if rate is not None:
        moving = rate.finite.where(rate.finite.value > 0)
        return Series("step_time", moving.step, 1 / moving.value)
    clock = next(run.with_role(Quantity.ELAPSED, Quantity.TIMESTAMP), None)
    return None if clock is None else _between(clock.finite.step, clock.finite.value)


def _between(steps: Floats, seconds: Floats) -> Series:
    """Return the seconds per step between the records of a clock."""
    made, took = np.diff(steps), np.diff(seconds)
    told = (made > 0) & (took > 0)
    return Series("step_time", steps[1:][told], took[told] / made[told])
