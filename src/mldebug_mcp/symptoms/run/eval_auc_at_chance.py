"""Evaluation that ranks no better than a coin, while training ranks ever better."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import end_level, median, start_level
from mldebug_mcp.symptoms.quality import is_auc
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 8
NEAR = 0.04
"""How far from 0.5 the AUC of a guess may be over some hundred rows."""
LEARNT, FALL = 0.65, 0.9
"""Training has learnt something where its AUC has come to this, or its loss to this share. All chosen by hand."""


@symptom(any_of=("eval_*auc*", "eval_*auroc*"), not_for=("grpo", "ppo", "rl"), background=0.003)
def eval_auc_at_chance(run: Run) -> Evidence | None:
    """The area under the ROC curve is about 0.5 at all later evaluations, that of a guess, while training gets better.

    Not this when: it was clearly above before; training learns nothing either (`loss_plateau`).
    """
    auc = next((one.finite for name, one in run.series.items() if name.startswith("eval_") and is_auc(one)), None)
    if auc is None or len(auc) < LEAST:
        raise CannotTell(f"no AUC of evaluation has {LEAST} finite values")
    beside = _learnt(run)
    if beside is None:
        raise CannotTell("training is not seen to learn, so that evaluation need not either")
    later = auc.value[len(auc) // 2 :]
    if abs(median(later) - 0.5) > NEAR or float(auc.value.max()) > 0.5 + 2 * NEAR:
        return None
    return Evidence(
        f"{auc.name} is {figure(median(later))} (median of the later half of {len(auc)} evaluations), and "
        f"{figure(float(auc.value.max()))} at its highest: a guess has 0.5; {beside}",
        steps=(float(auc.step[0]),),
        values={"median": median(later), "highest": float(auc.value.max())},
    )


def _learnt(run: Run) -> str | None:
    """Say in words what training has learnt, if it has."""
    trained: Series | None = next(
        (one.finite for name, one in run.series.items() if is_auc(one) and "eval_" not in name), None
    )
    if trained is not None and len(trained) and end_level(trained.value) > LEARNT:
        return f"that of training goes from {figure(float(trained.value[0]))} to {figure(end_level(trained.value))}"
    if "loss" not in run or len(loss := run["loss"].finite.value) < LEAST:
        return None
    start, end = start_level(loss), end_level(loss)
    return f"the training loss goes from {figure(start)} to {figure(end)}" if end < FALL * start else None
