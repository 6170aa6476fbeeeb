"""Evaluation only gets worse while training gets better."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import begins_late, evaluation_losses, refuse_after_explosion
from mldebug_mcp.symptoms.quality import all_zero
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import aligned, median
from mldebug_mcp.text import figure

LEAST_EVALUATIONS = 5
EARLY = 0.15
"""The lowest evaluation loss stands within this share of the evaluations, or is the first. Chosen by hand."""
RISE = 0.05
FALL = 0.1


@symptom(needs=("loss",), sources=("slavv_37",), not_for=("grpo", "ppo", "rl"), background=0.15)
def eval_never_improves(run: Run) -> Evidence | None:
    """The evaluation loss is lowest at the very first evaluations and rises from there, while the training loss falls.

    Not this when: it improves first and rises later, as in overfitting (`eval_gap_grows`). Judged only where the
    evaluation loss rises and the training loss falls, so that one rise does not count twice.
    """
    loss = run["loss"].finite
    refuse_after_explosion(run, evaluation_losses(run)[0])
    judged = [
        (series.finite, train)
        for series in evaluation_losses(run)
        if len(series.finite) >= LEAST_EVALUATIONS
        and len(train := aligned(loss, series.finite)[1]) >= LEAST_EVALUATIONS
    ]
    if not judged:
        raise CannotTell(f"fewer than {LEAST_EVALUATIONS} evaluations stand beside the training loss")
    evaluation, train = judged[0]
    if all_zero(evaluation):
        raise CannotTell("the evaluation loss is zero at every evaluation, and tells nothing")
    if begins_late(evaluation):
        raise CannotTell(
            f"the first evaluation is at {run.step_name} {figure(float(evaluation.step[0]))}: whether it improved "
            "before does not show"
        )
    best = int(np.argmin(evaluation.value))
    lowest, last = float(evaluation.value[best]), median(evaluation.value[-2:])
    fell = median(train[-2:]) < float(train[0]) * (1 - FALL)
    if last < lowest + RISE * abs(lowest) or not fell:
        raise CannotTell("the evaluation loss does not rise while the training loss falls")
    if best > max(0.0, EARLY * len(evaluation) - 1):
        return None
    return Evidence(
        f"{evaluation.name} is lowest, {figure(lowest)}, at evaluation {best + 1} of {len(evaluation)} and "
        f"{figure(last)} at the end, while the training loss goes from {figure(float(train[0]))} to "
        f"{figure(median(train[-2:]))}",
        steps=(float(evaluation.step[best]),),
        values={"lowest": lowest, "last": last, "evaluation": best + 1},
    )
