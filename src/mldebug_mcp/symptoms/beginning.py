"""Where a log begins: excerpts from the middle of a run, whose records are often only counted."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run

PASSES = 1.5
"""Passes over the data after which nothing is a beginning: rows are seen for the second time. Chosen by hand."""


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
