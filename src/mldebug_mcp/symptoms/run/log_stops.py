"""The log ends before the planned end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.beginning import has_finished
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

SLACK = 0.02
"""The last records of a complete run may be missing: up to this share of the plan, or two logging intervals."""
TOTALS = ("total_steps", "max_steps", "total_iterations", "num_training_steps")
"""Metrics by which some trainers log the plan in each record."""


@dataclass(frozen=True, slots=True)
class _Plan:
    unit: str
    planned: float
    reached: float
    interval: float


@symptom(
    whole_run=True,
    background=0.3,  # a run that is still going
    as_chosen=True,
    follows=("error_message", "out_of_memory_error", "collective_timeout", "device_error"),
)
def log_stops(run: Run) -> Evidence | None:
    """The log ends before the number of steps or epochs that was planned.

    Not this when: only the last logging interval is missing; the run says that it finished, or was set to stop early
    (remarks); the log is the state saved with a checkpoint, which ends where the checkpoint was written. A run that is
    still going looks the same, hence the high background. The slack was chosen by hand.
    """
    plan = _plan(run)
    if plan is None:
        raise CannotTell("the planned number of steps or epochs is not known, or is counted in another unit")
    missing = plan.planned - plan.reached
    if missing <= max(SLACK * plan.planned, 2 * plan.interval):
        return None
    if "hf_trainer_state" in run.formats and not has_finished(run):
        raise CannotTell(
            f"the state ends at {plan.unit} {figure(plan.reached)} of {figure(plan.planned)}, but it is written with "
            "each checkpoint: where the run ended is not seen"
        )
    harmless = _harmless(run)
    last = f"; the last line that reads like an error is line {run.messages[-1].line}" if run.messages else ""
    return Evidence(
        f"the log ends at {plan.unit} {figure(plan.reached)} of {figure(plan.planned)} "
        f"({plan.reached / plan.planned:.0%}){harmless or last}",
        steps=(run.last_step,),
        values={"reached": plan.reached, "planned": plan.planned, "share": plan.reached / plan.planned},
        present=not harmless,
    )


def _plan(run: Run) -> _Plan | None:
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
    return _Plan(unit, steps, reached, interval) if 0 < reached <= 1.05 * steps else None


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


def _interval(steps: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return median(np.diff(steps)) if len(steps) > 1 else float(steps[0])


def _harmless(run: Run) -> str:
    if has_finished(run):
        return ", and the closing record of a finished run follows"
    if any("early_stop" in name.lower() or name.lower() == "patience" for name in run.config):
        return "; the configuration asks for early stopping"
    return ""
