"""How far a run was to go, in the unit of its log, and what follows from that and all else that is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mldebug_mcp.logs.attempt import Ending
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.kinds import kind_of_run
from mldebug_mcp.logs.run import Run
from mldebug_mcp.text import figure

SLACK = 0.02
"""The last records of a complete run may be missing: up to this share of the plan, or two logging intervals."""
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
    """

    unit: str
    planned: float
    reached: float
    interval: float

    @property
    def is_done(self) -> bool:
        """Whether no more is missing than the last records of a complete run."""
        return self.planned - self.reached <= max(SLACK * self.planned, 2 * self.interval)


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
    unit, reached, interval = counted
    return Plan(unit, steps, reached, interval) if 0 < reached <= 1.05 * steps else None


def _counted_steps(run: Run) -> tuple[str, float, float] | None:
    if run.step_name != "step" or not run.series:
        return None
    longest = max(run.series.values(), key=len)
    return "step", run.last_step, _interval(longest.step)


def _counted_epochs(run: Run) -> tuple[str, float, float] | None:
    if run.step_name == "epoch" and run.series:
        counter = np.unique(max(run.series.values(), key=len).step)
    elif "epoch" in run and len(run["epoch"].finite):
        counter = np.unique(run["epoch"].finite.value)
    else:
        return None
    whole = bool(np.all(counter == np.round(counter)))
    # Whole epochs may be counted from 0: then the last of N is N-1. One missing is never told from that.
    return "epoch", float(counter[-1]), max(1.0, _interval(counter) / 2) if whole else _interval(counter)


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
