"""How far a run has come: excerpts from the middle, whose records are often only counted, and runs still young."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run

PASSES = 1.5
"""Passes over the data after which nothing is a beginning. Chosen: rows are seen for the second time."""
FIRST_STEPS = 40
"""Steps of the optimizer in which a sound run may make no progress yet, least of all while its learning rate warms up.

Fitted: healthy runs that were cut short (`python -m benchmarks.faults young`)."""

LEAST_RATES, CLIMBS = 4, 1.05
"""Records of a rate that climbs, and times that of a quarter of the log before. Chosen: a constant one is rounded."""


def is_young(run: Run) -> bool:
    """Say whether a log holds no more than the first steps of a run, or ends while its learning rate warms up.

    Where half the records or more have an evaluation, a step is no step of the optimizer but a round of many.
    """
    if warms_up(run) and not has_finished(run):
        return True
    if run.step_name != "step" or run.last_step + 1 >= FIRST_STEPS or "loss" not in run:
        return False
    evaluations = max((len(one) for name, one in run.series.items() if name.startswith("eval_")), default=0)
    return 2 * evaluations < len(run["loss"])


def warms_up(run: Run) -> bool:
    """Say whether the learning rate still climbs where the log ends: it has been lower all along, and lately, too."""
    rate = run["learning_rate"].finite.value if "learning_rate" in run else np.empty(0)
    if len(rate) < LEAST_RATES:
        return False
    return bool(rate[-1] == rate.max() and rate[-1] > CLIMBS * rate[len(rate) * 3 // 4] > CLIMBS * rate[len(rate) // 2])


def has_finished(run: Run) -> bool:
    """Say whether the log says that training has ended by itself, or has reached its plan."""
    return run.ending.how == "finished"


def epoch_at(run: Run, step: float) -> float | None:
    """Return the epoch of a step, or None if the log does not tell."""
    if run.step_name == "epoch":
        return step
    return run["epoch"].finite.at(step) if "epoch" in run else None


def is_late(run: Run, step: float, share: float, steps: float) -> bool:
    """Say whether a step lies beyond a share of what is logged, which is more than so many steps.

    Where records stand by their epoch, or are only counted and tell it, the epoch says how far the run was.
    """
    if run.step_name == "step":
        return step > max(steps, share * run.last_step)
    epoch, last = epoch_at(run, step), epoch_at(run, run.last_step)
    return epoch is not None and last is not None and epoch > share * last
