"""Accuracy of evaluation that is zero throughout."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.evaluation import quality_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 3
MEASURES = ("eval_accuracy", "eval_acc", "eval_exact_match", "eval_em")
"""Shares of all answers that are right. The recall or F1 of a rare class may well be zero."""
OF_BOXES, LEAST_OF_BOXES = ("metrics/mAP50(B)", "metrics/mAP_0.5"), 10
"""A detector may need some epochs for its first hit. Chosen by hand."""


@symptom(
    sources=("slavv_37",),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
    background=0.004,
    follows=("loss_at_chance", "loss_constant", "loss_plateau", "loss_slow", "loss_stall"),
)
def eval_metric_zero(run: Run) -> Evidence | None:
    """The accuracy, as a share of all answers, is exactly zero at every evaluation.

    Even a guess is right sometimes: nothing is right if nothing is learnt among very many classes, or if answers and
    labels are compared wrongly. Not this when: it is constant but above zero (`eval_metric_constant`).
    """
    least = dict.fromkeys(MEASURES, LEAST) | dict.fromkeys(OF_BOXES, LEAST_OF_BOXES)
    shares = [one.finite for one in quality_metrics(run) if one.name in least]
    shares = [one for one in shares if len(one) >= least[one.name]]
    if not shares:
        raise CannotTell(f"no accuracy of evaluation has {LEAST} values")
    zero = [one for one in shares if not one.value.any()]
    if not zero:
        return None
    first, last = float(zero[0].step[0]), float(zero[0].step[-1])
    return Evidence(
        f"{zero[0].name} is 0 at all {len(zero[0])} evaluations from {run.step_name} {figure(first)} to {figure(last)}",
        steps=(first,),
        values={"evaluations": float(len(zero[0])), "metrics": float(len(zero))},
    )
