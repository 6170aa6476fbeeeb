"""Do the numbers of evaluation change at all, and can they be what they are said to be?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.answers import has_fallen_far, has_settled, is_error_rate, nothing_right
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.frozen import (
    MEASURES,
    MORE,
    beside_a_loss_that_falls,
    digits_of,
    does_not_move,
    is_one_number,
    most_often,
    stands_still,
)
from mldebug_mcp.measure.quality import all_zero, is_auc, quality_metrics, ranking_metrics
from mldebug_mcp.measure.score_pairs import evaluation_scores, score_pairs
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import all_known
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen
from mldebug_mcp.text import figure

LEAST, BOXES = 3, 10
"""Evaluations of a loss or an accuracy, and of a detector until its first hit. Chosen: by hand."""
FEWEST_DIGITS = 4
"""Digits of a loss that are enough where more evaluations than `LEAST` have it. Chosen: a plateau has three."""
DIGITS = 5
"""Digits of a loss; fewer may hide a change. Chosen: float32 has seven."""
NOT_GONE = 0.1
"""A training loss above this is not so small that an evaluation loss of zero could be its like. Chosen: by hand."""
PERFECT, IMPERFECT, FALLS = 0.9999, 0.9, 0.8
"""A score at its bound, that of training at the first evaluation, and the share to which the loss still falls. Chosen:
a score that cannot get better beside answers that do."""
OF_NONE = -1.0
"""What COCO's evaluation says of objects of a size that there are none of."""
OF_BOXES = (
    "metrics/mAP50(B)", "metrics/mAP_0.5", "eval_bbox_map_50", "eval_coco/bbox_map_50", "coco/bbox_mAP_50", "bbox/AP50",
)  # fmt: skip
_RUINS = ("loss_constant", "loss_negative", "loss_nonfinite", "loss_zero")


def _evidence(run: Run, series: Series, what: str, since: float | None = None) -> Evidence:
    first, last = float(series.step[0]) if since is None else since, float(series.step[-1])
    said = f"{series.name} is {what} of {len(series)} evaluations, {run.place(first)} to {figure(last)}"
    return Evidence(said, steps=(first,), values={"value": float(series.value[0]), "evaluations": float(len(series))})


def eval_nonfinite(run: Run) -> Evidence | None:
    """The evaluation loss is NaN or infinite.

    Not this when: a metric is NaN by definition, such as the average precision of a class without samples.
    """
    bad = [one for one in evaluation_losses(run) if not np.isfinite(one.value).all()]
    if not bad:
        return None
    at = [int(np.argmax(~np.isfinite(one.value))) for one in bad]
    first, series = min(zip(at, bad, strict=True), key=lambda pair: float(pair[1].step[pair[0]]))
    train = run["loss"].at(float(series.step[first])) if "loss" in run else None
    beside = "" if train is None else f" (the training loss there is {figure(train)})"
    kind = "NaN" if np.isnan(series.value[first]) else "infinite"
    count = int((~np.isfinite(series.value)).sum())
    return _evidence(run, series, f"{kind} first{beside}, and not finite at {count}", float(series.step[first]))


def eval_loss_constant(run: Run) -> Evidence | None:
    """The evaluation loss is the same number at every evaluation, to all its digits, as that of one and the same model.

    Not this when: it changes however little; it is logged with too few digits to tell.
    """
    evaluation = next((one for one in (each.finite for each in evaluation_losses(run)) if len(one) >= LEAST), None)
    if evaluation is None:
        raise CannotTell(f"no evaluation loss has {LEAST} finite values")
    level = float(evaluation.value[0])
    if not is_one_number(evaluation) or all_zero(evaluation):
        return None
    others = [one for one in (series.finite for series in all_known(quality_metrics, run)) if len(one) >= LEAST]
    still = all(is_one_number(one) for one in others)
    digits = sum(digits_of(float(one.value[0])) for one in (evaluation, *(others if still else ())))
    if digits < max(FEWEST_DIGITS, DIGITS + LEAST - len(evaluation)):  # each further evaluation is a witness
        raise CannotTell(f"{evaluation.name} is always {figure(level)}, and so few digits may hide a change")
    return _evidence(run, evaluation, f"{level:.8g} at all")


def eval_metric_zero(run: Run) -> Evidence | None:
    """No answer of evaluation is right, ever: an accuracy, BLEU or a ranking is zero, or an error rate stands at 100 %.

    So is a loss of zero beside one of training that is not. Not this when: it is constant but above zero; the training
    loss is still on its way, for scores of whole texts.
    """
    least = dict.fromkeys((*MEASURES, "eval_loss"), LEAST) | dict.fromkeys(OF_BOXES, BOXES)
    shares = [one.finite for one in all_known(quality_metrics, run) if one.name in least]
    if "eval_loss" in run and "loss" in run and median(run["loss"].finite.value) > NOT_GONE:
        shares.append(run["eval_loss"].finite)
    shares = [one for one in shares if len(one) >= least[one.name]]
    ranked = [one.finite for one in ranking_metrics(run) if len(one.finite) >= MORE]
    if ranked and not any(one.value[1:].any() for one in ranked):  # the first may hold a hit by chance
        shares = [one.where(one.step > one.step[0]) for one in ranked]
    zero = next((one for one in (*shares, *beside_a_loss_that_falls(run)) if all_zero(one)), None)
    if zero is not None:
        return _evidence(run, zero, "0 at all")
    wrong, loss = nothing_right(run), run["loss"].finite if "loss" in run else None
    if wrong is None:
        if not shares and not ranked:
            raise CannotTell(f"no accuracy or loss of evaluation has {LEAST} values")
        return None
    if loss is None or not (has_settled(loss) or has_fallen_far(loss, float(wrong.step[0]))):
        raise CannotTell(f"{wrong.name} shows no right answer yet, and the training loss may still be on its way")
    return _evidence(run, wrong, "100 % in most" if is_error_rate(wrong) else "0 at all")


def eval_score_perfect(run: Run) -> Evidence | None:
    """A score of evaluation is at its bound from the first evaluation on, while what it measures still gets better.

    Not this when: training is as good at the first evaluation; the losses do not fall any more.
    """
    perfect = [one for one in evaluation_scores(run) if len(one) >= LEAST and float(one.value.min()) >= PERFECT]
    if not perfect or "eval_loss" not in run:
        return None
    loss, score = run["eval_loss"].finite.value, perfect[0]
    trained = next((one for one in score_pairs(run) if one.evaluated == score.name), None)
    imperfect = trained is not None and float(trained.train[0]) < IMPERFECT
    falls = len(loss) >= LEAST and float(loss[-1]) < FALLS * float(loss[0])
    return _evidence(run, score, "as good as can be at all") if imperfect and falls else None


def eval_metric_constant(run: Run) -> Evidence | None:
    """A metric of evaluation is the same number at every evaluation, or next to it at nearly all of many.

    Not this when: it is near its best, or that of training is throughout; most other metrics move, and it is none that
    any change of the scores moves, as an AUC is (a remark).
    """
    metrics = [one for one in (series.finite for series in quality_metrics(run)) if len(one) >= MORE]
    metrics = [one for one in metrics if bool(np.any(one.value != OF_NONE))]
    if not metrics:
        raise CannotTell(f"no metric of evaluation has {MORE} finite values")
    still = [one for one in metrics if does_not_move(run, one)]
    if not still:
        return None
    value, times = most_often(still[0])
    seen = _evidence(run, still[0], f"{figure(value)} at {'all' if times == len(still[0]) else times}")
    said = f"{seen.summary}; of {len(metrics)} metrics {len(still)} do not move"
    more = {"value": value, "constant": len(still), "of": len(metrics)}
    ranks = any(is_auc(one) and stands_still(one) for one in still)
    return Evidence(said, seen.steps, {**seen.values, **more}, present=ranks or 2 * len(still) >= len(metrics))


@question(
    outcome_of(eval_nonfinite, 0.003, "axolotl_stability", follows=("loss_nonfinite", "loss_drops_to_zero")),
    outcome_of(eval_loss_constant, 0.002, "karpathy_recipe", follows=_RUINS),
    outcome_of(
        eval_metric_zero,
        0.004,
        "slavv_37",
        follows=("loss_at_chance", "loss_constant", "loss_plateau", "loss_slow", "loss_stall"),
    ),
    outcome_of(eval_score_perfect, 0.002),
    outcome_of(eval_metric_constant, 0.02, "remote_gpu_trainer", follows=("loss_plateau", *_RUINS)),
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
)
def eval_frozen(run: Run) -> Answers:
    """No number, one and the same model, no right answer, no wrong one, one number."""
    judges = (eval_nonfinite, eval_loss_constant, eval_metric_zero, eval_score_perfect, eval_metric_constant)
    return first_seen(by_outcome(judges, run))
