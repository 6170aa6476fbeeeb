"""The result of a run: the metric by which runs of one kind are compared, where it ended and where it was best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.roles.quantities import LOSSES, Quantity
from mldebug_mcp.measure.named import named

END = 10
"""The end of a run is its last tenth: one value of many. Chosen: as where a run is compared with a good one."""

_REWARDS = frozenset({Quantity.REWARD, Quantity.REWARD_ACCURACY})


@dataclass(frozen=True, slots=True)
class Result:
    """A result.

    Args:
        metric: Its name.
        last: The median of the last tenth of its values.
        best: The best single value.
        best_step: Where that was logged.
        higher_is_better: Which way is better.
    """

    metric: str
    last: float
    best: float
    best_step: float
    higher_is_better: bool


def result_of(run: Run, metric: str = "") -> Result | None:
    """Return the result of a run, or None if it logged none.

    Args:
        run: The run.
        metric: Which metric, by its name as read or as logged, or by its role; by default the evaluation's loss, then a
            reward, then a score of evaluation, then the training loss.
    """
    series = next(iter(named(run, metric)), None) if metric else _usual(run)
    if series is None or not len(series.finite):
        return None
    finite, higher = series.finite, improves_upwards(series)
    at = int(np.argmax(finite.value) if higher else np.argmin(finite.value))
    end = finite.value[-max(1, len(finite) // END) :]
    return Result(series.name, float(np.median(end)), float(finite.value[at]), float(finite.step[at]), higher)


def improves_upwards(series: Series) -> bool:
    """Say whether higher values of a metric are better."""
    role = series.role
    return role is not None and (role.quantity.higher_is_better or role.quantity in _REWARDS)


def _usual(run: Run) -> Series | None:
    wanted = (
        run.with_role(Quantity.LOSS, phase="eval"),
        run.with_role(Quantity.REWARD),
        run.with_role(*(one for one in Quantity if one.higher_is_better), phase="eval"),
        run.with_role(Quantity.LOSS, phase="train"),
        run.with_role(*LOSSES),
    )
    return next((one for found in wanted for one in found if len(one.finite)), None)
