"""Evaluation in which no answer is right, or the loss is zero, throughout."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.answers import has_fallen_far, has_settled, is_error_rate, nothing_right
from mldebug_mcp.symptoms.quality import all_zero, quality_metrics, ranking_metrics
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LEAST = 3
MEASURES = ("eval_accuracy", "eval_acc", "eval_exact_match", "eval_em")
"""Shares of all answers that are right. The recall or F1 of a rare class may well be zero."""
OF_BOXES = (
    "metrics/mAP50(B)",
    "metrics/mAP_0.5",
    "eval_bbox_map_50",
    "eval_coco/bbox_map_50",
    "coco/bbox_mAP_50",
    "bbox/AP50",
)
LEAST_OF_BOXES = 10
"""A detector may need some epochs for its first hit. Chosen by hand."""
LEAST_RANKED = 5
"""Of rankings (recall@20, nDCG) the first may hold a hit by chance, as that of an untrained model."""
NOT_GONE = 0.1
"""A training loss above this is not so small that an evaluation loss of zero could be its like. Chosen by hand."""


@symptom(
    sources=("slavv_37",),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
    background=0.004,
    follows=("loss_at_chance", "loss_constant", "loss_plateau", "loss_slow", "loss_stall"),
)
def eval_metric_zero(run: Run) -> Evidence | None:
    """The accuracy of all answers is exactly zero at every evaluation; or the loss is, while that of training is not.

    So is BLEU, or an error rate of characters or words stands at 100 %, though the training loss has come to rest, or
    has fallen by half since the first evaluation; or a ranking (recall@20, nDCG) finds nothing after the first. Even a
    guess is right sometimes: nothing is right if nothing is learnt among very many classes, or if answers and labels
    are compared wrongly. A loss of zero is that of no rows, or was never added up. Not this when: it is constant but
    above zero (`eval_metric_constant`).
    """
    least = dict.fromkeys((*MEASURES, "eval_loss"), LEAST) | dict.fromkeys(OF_BOXES, LEAST_OF_BOXES)
    shares = [one.finite for one in _metrics(run) if one.name in least]
    shares = [one for one in shares if len(one) >= least[one.name]]
    wrong = nothing_right(run)
    if wrong is not None and not any(all_zero(one) for one in shares):
        return _all_wrong(run, wrong)
    if not shares and not ranking_metrics(run):
        raise CannotTell(f"no accuracy or loss of evaluation has {LEAST} values")
    zero = [one for one in shares if all_zero(one)]
    ranked = [one.finite for one in ranking_metrics(run) if len(one.finite) >= LEAST_RANKED]
    if ranked and all(not one.value[1:].any() for one in ranked):
        zero += [one.where(one.step > one.step[0]) for one in ranked]
    if not zero:
        return None
    first, last = float(zero[0].step[0]), float(zero[0].step[-1])
    return Evidence(
        f"{zero[0].name} is 0 at all {len(zero[0])} evaluations from {run.step_name} {figure(first)} to {figure(last)}",
        steps=(first,),
        values={"evaluations": float(len(zero[0])), "metrics": float(len(zero))},
    )


def _all_wrong(run: Run, wrong: Series) -> Evidence:
    loss = run["loss"].finite if "loss" in run else None
    first, last = float(wrong.step[0]), float(wrong.step[-1])
    if loss is None or not (has_settled(loss) or has_fallen_far(loss, first)):
        raise CannotTell(f"{wrong.name} shows no right answer yet, and the training loss may still be on its way")
    stands = "stands at 100 %" if is_error_rate(wrong) else "is 0"
    return Evidence(
        f"{wrong.name} {stands} in {len(wrong)} evaluations from {run.step_name} {figure(first)} to {figure(last)}, "
        f"while the training loss goes from {figure(float(loss.value[0]))} to {figure(float(loss.value[-1]))}",
        steps=(first,),
        values={"evaluations": float(len(wrong)), "metrics": 1.0},
    )


def _metrics(run: Run) -> list[Series]:
    """Return the metrics of evaluation, and its loss where that cannot be as small as zero."""
    try:
        metrics = quality_metrics(run)
    except CannotTell:
        metrics = []
    if "eval_loss" in run and "loss" in run and median(run["loss"].finite.value) > NOT_GONE:
        metrics = [*metrics, run["eval_loss"]]
    return metrics
