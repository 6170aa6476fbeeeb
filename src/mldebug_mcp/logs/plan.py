"""How far a run was to go, in the unit of its log, and what follows from that and all else that is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mldebug_mcp.logs.attempt import Ending
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.kinds import kind_of_run
from mldebug_mcp.logs.run import Run
from mldebug_mcp.text import figure

ROUNDING = 1e-3
"""Share of an interval that rounding makes."""
TOTALS = ("total_steps", "max_steps", "total_iterations", "num_training_steps")
"""Metrics by which some trainers log the plan in each record."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan and what of it was reached.

    Args:
        unit: "step" or "epoch".
        planned: How many of them.
        reached: Where the log ends.
        interval: Distance between records.
        from_zero: The log counts from 0, so that the last of N is N-1.
    """

    unit: str
    planned: float
    reached: float
    interval: float
    from_zero: bool = False

    @property
    def is_done(self) -> bool:
        """Whether the next record would lie beyond the plan."""
        missing = self.planned - self.reached
        last = self.interval * (1 + ROUNDING)
        return missing <= last if self.from_zero else missing < self.interval * (1 - ROUNDING)


def plan_of(run: Run) -> Plan | None:
    """Return the plan in the unit in which the log counts; None if there is none, or the log goes far beyond it."""
    steps = run.setting("max_steps")
    logged = next((run[name].finite for name in TOTALS if name in run and len(run[name].finite)), None)
    if logged is not None:
        steps = float(logged.value[-1])
    epochs = run.setting("num_train_epochs")
    counted = _counted_steps(run) if steps is not None and steps > 0 else None
    if counted is None and epochs is not None and epochs > 0:
        steps, counted = epochs, _counted_epochs(run)
    if counted is None or steps is None:
        return None
    unit, counter = counted
    reached = float(counter[-1])
    if not 0 < reached <= 1.05 * steps:
        return None
    return Plan(unit, steps, reached, _interval(counter), from_zero=float(counter[0]) == 0)


def _counted_steps(run: Run) -> tuple[str, Floats] | None:
    if run.step_name != "step" or not run.series:
        return None
    longest = max(run.series.values(), key=len).step
    return "step", longest if longest[-1] == run.last_step else np.append(longest, run.last_step)


def _counted_epochs(run: Run) -> tuple[str, Floats] | None:
    if run.step_name == "epoch" and run.series:
        counter = np.unique(max(run.series.values(), key=len).step)
    elif "epoch" in run and len(run["epoch"].finite):
        counter = np.unique(run["epoch"].finite.value)
    else:
        return None
    return "epoch", counter


def _interval(steps: Floats) -> float:
    return float(np.median(np.diff(steps))) if len(steps) > 1 else float(steps[0])


def concluded(run: Run) -> Run:
    """Return a run, once all of its metrics and settings are known, with what follows from them together.

    That is the kind of run, and, where nothing else tells how it ends, that it finished if its plan is reached.
    """
    losses = run["loss"].finite.value[:1].tolist() if "loss" in run else []
    run = replace(run, kind=kind_of_run(run.series, run.settings, next(iter(losses), None)))
    plan = plan_of(run) if run.ending.how in ("open", "cut", "silence") else None
    if plan is None or not plan.is_done:
        return run
    return replace(run, ending=Ending("finished", f"{plan.unit} {figure(plan.reached)} of {figure(plan.planned)}"))
