"""Can the numbers of evaluation be right?

They may stand still, be as good as a guess, lie far below training, vary much, or disagree.
"""

from __future__ import annotations

import math
import re

import numpy as np

from mldebug_mcp.checks.check import (
    NO_PROGRESS,
    Answers,
    CannotTell,
    Evidence,
    all_known,
    answers_of,
    by_outcome,
    first_seen,
    outcome_of,
    question,
    symptom,
)
from mldebug_mcp.checks.curve import curves_in_turn, end_level, finite_of, noise, sample, start_level
from mldebug_mcp.checks.evaluation import (
    ACCURACIES,
    LEAST_AUC,
    LEAST_FOR_HALVES,
    LEAST_FOR_MEDIAN,
    LOW_AUC,
    MOSTLY_RIGHT,
    SCORES_OF_A_CLASS,
    Compared,
    all_zero,
    as_share,
    as_shares,
    auc_of,
    beside_training,
    compared,
    evaluation_losses,
    goes_on_falling,
    harder_in_training,
    has_fallen_far,
    has_settled,
    held_out_losses,
    is_auc,
    is_beyond_one,
    is_error_rate,
    is_of_a_guess,
    mixes_labels,
    next_token_known,
    nothing_right,
    quality_metrics,
    ranking_metrics,
    refuse_running_mean,
    refuse_sums_of_epochs,
    share_of_right_answers,
)
from mldebug_mcp.checks.progress import predicts_tokens, uniform_loss
from mldebug_mcp.checks.train_eval_gap import evaluation_scores, score_pairs
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, ratio
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.metrics import is_evaluation
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.run import Run, Series

# Does the evaluation loss lie far below the training loss, and did it come there as rows were seen again?


FAR_BELOW = 0.65
"""Share of the training loss below which evaluation lies. Chosen: dropout and augmentation cost a third."""
FROM_THE_START = 0.35
"""The same in any case, however the run began. Chosen: dropout and augmentation cost a third from the start."""
MAX_FIRST_SHARE_RATIO = 0.7
"""Times its share at the first evaluation that the later one is at most. Chosen: by hand."""
MIN_BELOW_TRAINING_SHARE = 0.9
"""Share of the later evaluations that lie below training. Chosen: by hand."""
FAR_BELOW_OF_TOKENS = 0.85
"""The same of language models. Chosen: they train with little dropout."""
GAP_OF_TOKENS = 0.5
"""Nats of that gap. Chosen: they train with little dropout."""
LEAST_GAP = 0.05
"""Nats of a gap: of a loss near zero half is nothing. Chosen: by hand."""
SHARE_OF_START = 0.08
"""Share of the first training loss that a gap has. Chosen: by hand."""
MIN_LEVEL_START_SHARE = 0.95
"""Of the training loss: within it an evaluation starts level with training. Chosen: within the scatter of batches."""
TIMES_OF_TOKENS = 2.0
"""Times the evaluation loss, at every evaluation of a language model. Chosen: dropout moves the two by tenths."""
MIN_KEPT_TRAINING_SHARE = 0.75
"""Share of its first level that training keeps. Fitted: on label noise in benchmarks/faults, no healthy run has it."""
MIN_TRAIN_EVAL_RATIO = 1.17
"""Times the evaluation loss that training has. Fitted: on label noise in benchmarks/faults, no healthy run has it."""
LAGS_ALWAYS = 1.12
"""The same at every evaluation. Fitted: on label noise in benchmarks/faults, no healthy run has it."""
EVAL_BELOW_APART = 0.08
"""Share of the first loss that parts both. Fitted: on label noise in benchmarks/faults, no healthy run has it."""
MIN_GAP_GROWTH_RATIO = 1.2
"""Times as far apart as at first. Fitted: on label noise in benchmarks/faults, no healthy run has it."""
LEAST_LAGGING = 8
"""Evaluations that show a lag. Chosen: healthy detectors lag for five."""
NOT_IN_TOKENS = ("supervised", "diffusion", "boosting")
_FOLLOWS = ("loss_falls_back", "loss_scale_suspicious")


def _evidence(both: Compared, what: str, since: float) -> Evidence:
    return Evidence(
        f"eval_loss is {figure(both.eval_level)} where the training loss is {figure(both.train_level)} (medians of the "
        f"later half of {len(both.steps)} evaluations){what}; training began at {figure(both.start)}",
        steps=(since,),
        values={"start": both.start, "train": both.train_level, "eval": both.eval_level},
    )


def _share(both: Compared) -> float:
    """Return the evaluation loss as a share of the training loss at the first evaluation, 0 where that has no sense."""
    return float(both.evaluation[0] / both.train[0]) if both.train[0] > 0 else 0.0


def _refuse_mixed_labels(run: Run) -> None:
    if mixes_labels(run):
        raise CannotTell("labels are mixed or smoothed, which keeps the training loss up")


def eval_below_train(run: Run, both: Compared) -> Evidence | None:
    """The evaluation loss falls far below the training loss, and stays there.

    Not this when: dropout, augmentation or an easier set put it there from the first evaluation on; labels are mixed or
    smoothed, as configured; the training loss is a sum, over micro-batches (`loss_scale_suspicious`) or over the
    batches of an epoch; it is a running mean, which lags behind.
    """
    refuse_sums_of_epochs(run)
    refuse_running_mean(run)
    _refuse_mixed_labels(run)
    if makes_harder := harder_in_training(run):
        raise CannotTell(f"by the settings training has {makes_harder[0]}, which evaluation goes without")
    ratio = both.evaluation[both.later] / both.train[both.later]
    gap = median((both.train - both.evaluation)[both.later])
    limit = max(min(FAR_BELOW, MAX_FIRST_SHARE_RATIO * _share(both)), FROM_THE_START)
    if predicts_tokens(run) and gap >= GAP_OF_TOKENS:
        limit = FAR_BELOW_OF_TOKENS
    if not 0 <= median(ratio) < limit or gap < max(LEAST_GAP, SHARE_OF_START * both.start):
        return None
    # Where training still falls fast, what it has come to by an evaluation is below its mean since the one before.
    loss = run["loss"].finite
    nearest = loss.value[np.searchsorted(loss.step, both.steps[both.later], side="right") - 1]
    if (ratio < 1).mean() < MIN_BELOW_TRAINING_SHARE or median(both.evaluation[both.later] / nearest) >= limit:
        return None
    return _evidence(both, "", float(both.steps[both.later][0]))


def eval_below_grows(both: Compared) -> Evidence | None:
    """Evaluation was level with the training loss at first, and has come far below it since.

    Not this when: it was below from the first evaluation on, as with dropout or an easier set.
    """
    share = _share(both)
    comparison = f", and was {ratio(share)} times it at first"
    return _evidence(both, comparison, float(both.steps[0])) if share >= MIN_LEVEL_START_SHARE else None


def train_far_above_eval(run: Run, both: Compared) -> Evidence | None:
    """A language model's training loss is more than twice its evaluation loss at every evaluation.

    Both are nats per token, if they are computed alike over rows alike. Not this when: it comes about in training.
    """
    if run.kind in NOT_IN_TOKENS or not predicts_tokens(run):
        raise CannotTell("it is not known that this run trains a language model")
    if len(both.steps) < LEAST_FOR_MEDIAN or not (both.evaluation > 0).all():
        raise CannotTell(f"{LEAST_FOR_MEDIAN} evaluations above zero are needed")
    times = both.train / both.evaluation
    comparison = f", {ratio(times.min())} to {ratio(times.max())} times it"
    return _evidence(both, comparison, float(both.steps[0])) if float(times.min()) >= TIMES_OF_TOKENS else None


def train_lags_eval(run: Run, both: Compared) -> Evidence | None:
    """The training loss stays near where it began, while the evaluation loss falls well below it.

    Not this when: the training loss falls too (`eval_below_train`); labels are mixed or smoothed, or training is made
    harder, as configured; the evaluation set is easier from the first evaluation on.
    """
    _refuse_mixed_labels(run)
    if len(both.steps) < LEAST_LAGGING or not (both.evaluation > 0).all():
        raise CannotTell(f"{LEAST_LAGGING} evaluations above zero are needed")
    times = both.train / both.evaluation
    typical = median(times[both.later])
    apart = (
        both.train_level - both.eval_level > EVAL_BELOW_APART * both.start
        and both.train_level >= MIN_KEPT_TRAINING_SHARE * both.start
    )
    if not apart or typical <= MIN_TRAIN_EVAL_RATIO or float(times[both.later].min()) <= LAGS_ALWAYS:
        return None
    if harder := harder_in_training(run):
        raise CannotTell(f"training has {' and '.join(harder)}, which keeps its loss up")
    farther = typical - 1 >= MIN_GAP_GROWTH_RATIO * (float(times[0]) - 1)
    return _evidence(both, ", near its start", float(both.steps[both.later][0])) if farther else None


@question(
    outcome_of(eval_below_train, 0.05, "kapoor_leakage", as_chosen=True, follows=_FOLLOWS),
    outcome_of(eval_below_grows, 0.15, "kapoor_leakage", of="eval_below_train", as_chosen=True, follows=_FOLLOWS),
    outcome_of(
        train_far_above_eval,
        0.02,
        "hf_gradacc_blog",
        of="eval_below_train",
        as_chosen=True,
        follows=("loss_scale_suspicious", "loss_divergence", "loss_nonfinite"),
    ),
    outcome_of(train_lags_eval, 0.01, follows=_FOLLOWS),
    needs=("eval_loss", "loss"),
    not_for=("grpo", "ppo", "rl", "preference"),
    points=2,
    whole=True,
)
def eval_below(run: Run) -> Answers:
    """Tell a training loss that cannot be fitted from an evaluation that is too good."""
    if all_zero(run["eval_loss"]):
        raise CannotTell("the evaluation loss is zero at every evaluation, and tells nothing")
    both = compared(run, 1)
    times = answers_of(by_outcome((train_far_above_eval,), run, both))
    if isinstance(far_above := times.get("train_far_above_eval"), Evidence):
        return {"eval_below_train": far_above, **times}
    answers = first_seen(by_outcome((train_lags_eval, eval_below_train), run, both))
    return {**answers, **times, **answers_of(by_outcome((eval_below_grows,), both))}


# Is evaluation as good as a guess, or worse, while training learns?


MORE_CLASSES = 1.3
"""Times the first level of the loss: the logarithm of more classes than there can be. Chosen: a first record may be a
mean over the first epoch, in which much is learnt."""
BELOW_CHANCE = 0.6
"""Of 1 / classes, below which a model is wrong more often than a guess. Chosen: hundreds of rows bring it nearer."""
MAX_LEARNT_LOSS_SHARE = 0.7
"""Share of its first level to which the training loss has fallen. Chosen: by hand."""
MIN_TRAINING_FALL_SHARE = 0.03
"""Share by which it falls at all. Chosen: by hand."""
MAX_EVALUATION_FALL_SHARE = 0.02
"""Share by which evaluation does not fall. Chosen: by hand."""
MIN_BARELY_LEARNT_SHARE = 0.9
"""Share of its start above which training has only begun to learn. Chosen: evaluation may be as slow."""
MIN_UNTRAINED_LOSS_SHARE = 0.9
"""Share of the first training loss that it begins with: nothing was learnt before it. Chosen: by hand."""
MAX_POOR_ACCURACY = 0.6
"""The most that a poor accuracy is. Chosen: by hand."""
MAX_ACCURACY_GAIN = 0.05
"""The most that a poor accuracy gains. Chosen: by hand."""
TIMES_GUESS = 1.5
"""Times the accuracy of a guess that a poor one is at most. Chosen: by hand."""
OF_FEW_ROWS = 0.03
"""What an accuracy has by chance beyond that. Chosen: by hand."""


def _learnt(run: Run) -> tuple[float, str]:
    """Return what training has gained, by its loss or by a score of it, also in words; CannotTell of neither."""
    if len(loss := finite_of(run, "loss").value) >= LEAST_FOR_HALVES:
        start, end = start_level(loss), median(loss[-3:])
        share = end / start if start > 0 else float(end >= start)
        return share, f"the training loss goes from {figure(start)} to {figure(end_level(loss))}"
    pair = next((score_pair for score_pair in score_pairs(run) if len(score_pair) >= LEAST_FOR_HALVES), None)
    if pair is None:
        raise CannotTell("not logged: the training loss or a score of training, often enough")
    first, reached = float(pair.train[0]), median(pair.train[pair.later])
    share = (1 - reached) / (1 - first) if first < 1 else 0.0
    return share, f"{pair.trained} goes from {figure(first)} to {figure(reached)}"


def eval_below_chance(run: Run) -> Evidence | None:
    """Evaluation is far worse than a uniform guess, though training has got better.

    Not this when: evaluation is about that of a guess; it goes just above 1. An accuracy needs the number of classes.
    """
    uniform, name, auc = (
        _uniform(run),
        next((accuracy for accuracy in ACCURACIES if accuracy in run), None),
        auc_of(run),
    )
    judged: list[tuple[Series, float, float]] = [] if auc is None else [(auc, 0.5, LOW_AUC)]
    if name is not None and uniform is not None:
        judged.append((run[name].finite, math.exp(-uniform), BELOW_CHANCE * math.exp(-uniform)))
    judged = [candidate for candidate in judged if len(candidate[0]) >= LEAST_FOR_HALVES]
    if not judged:
        raise CannotTell("not logged: an accuracy with the number of classes, or an AUC, often enough")
    for series, guess, limit in judged:
        if is_beyond_one(run, series):
            raise CannotTell(f"{series.name} goes above 1, and that of training is a share of one")
        half = len(series) // 2
        reached = median(as_shares(series.value)[half:])
        if reached < limit and (learnt := _learnt(run))[0] <= MAX_LEARNT_LOSS_SHARE:
            least = "at least " if series is not auc and uniform_loss(run) is None else ""
            return Evidence(
                f"{series.name} is {figure(reached)} in the later half of {len(series)} records, a guess has "
                f"{least}{figure(guess)}, and {learnt[1]}",
                steps=(float(series.step[half]),),
                values={"reached": reached, "guess": guess},
            )
    return None


def _uniform(run: Run) -> float | None:
    """Return the loss of a uniform guess; where classes are unknown, that of more than the first losses speak of."""
    known = uniform_loss(run)
    if known is not None or run.kind != "supervised" or "accuracy" not in run or "loss" not in run:
        return known
    estimated = MORE_CLASSES * start_level(run["loss"].finite.value)
    return estimated if estimated >= math.log(2) else None


def eval_learns_nothing(run: Run) -> Evidence | None:
    """Loss and accuracy of evaluation, or its AUC, get no better than a guess, while training gets better.

    Not this when: evaluation improves first (`eval_gap_grows`); it begins better than training, like a model that
    comes trained.
    """
    if run.kind == "sft":
        raise CannotTell("what is fine-tuned on text begins where it may well stay")
    moved, learnt = _learnt(run)
    if moved > 1 - MIN_TRAINING_FALL_SHARE:
        raise CannotTell("training does not get better, so that evaluation need not either")
    auc = auc_of(run)
    if auc is not None and auc.name.startswith("eval_") and len(auc) >= LEAST_AUC:
        if not is_of_a_guess(auc) or goes_on_falling(run):
            return None
        later, highest = median(auc.value[len(auc) // 2 :]), float(auc.value.max())
        return Evidence(
            f"{auc.name} is {figure(later)} (median of the later half of {len(auc)} evaluations), and "
            f"{figure(highest)} at its highest, while {learnt}",
            steps=(float(auc.step[0]),),
            values={"late": later, "highest": highest, "guess": 0.5},
        )
    right = _right(run)
    if "eval_loss" not in run or right is None or len(right) < LEAST_FOR_HALVES:
        raise CannotTell(f"no loss and accuracy, or AUC, of {LEAST_FOR_HALVES} evaluations")
    return _no_better(run, right)


def _right(run: Run) -> Series | None:
    """Return the share of right answers at evaluation, by its accuracy or its rate of errors."""
    names = ("eval_accuracy", *(series.name for series in run.with_role(Quantity.ERROR_RATE, phase="eval")))
    scores = {score.name: score for score in evaluation_scores(run)}
    return next((scores[name] for name in names if name in scores), None)


def _no_better(run: Run, right: Series) -> Evidence | None:
    both = compared(run, LEAST_FOR_HALVES)
    loss, shares = both.evaluation, right.value
    falls_each_time = bool(np.all(np.diff(loss) <= 0)) and loss[-1] < loss[len(loss) // 2]
    if both.train_level > MIN_BARELY_LEARNT_SHARE * both.start and falls_each_time:
        return None
    half = len(shares) // 2
    early, late = median(shares[:half]), median(shares[half:])
    if (
        both.start <= 0
        or float(loss.min()) < (1 - MAX_EVALUATION_FALL_SHARE) * loss[0]
        or loss[0] < MIN_UNTRAINED_LOSS_SHARE * both.start
    ):
        return None
    uniform = uniform_loss(run)
    guess = math.exp(-(min(float(loss[0]), both.start) if uniform is None else uniform))
    if late > min(MAX_POOR_ACCURACY, early + MAX_ACCURACY_GAIN, TIMES_GUESS * guess + OF_FEW_ROWS):
        return None
    return Evidence(
        f"eval_loss is {figure(loss[0])} at first and never below {figure(loss.min())} in "
        f"{len(loss)} evaluations, the share of right answers {figure(early)} and {figure(late)} by {right.name}, "
        f"while the training loss goes from {figure(both.start)} to {figure(both.train_level)}",
        steps=(float(both.steps[0]),),
        values={"first": float(loss[0]), "lowest": float(loss.min()), "early": early, "late": late, "guess": guess},
    )


@question(
    outcome_of(eval_below_chance, 0.004, "slavv_37", follows=("loss_constant", "loss_nonfinite", "loss_zero")),
    outcome_of(
        eval_learns_nothing, 0.004, follows=("loss_plateau", "loss_nonfinite", "loss_divergence"), instead=NO_PROGRESS
    ),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole=True,
)
def eval_chance(run: Run) -> Answers:
    """Far below a guess, no better than a guess."""
    return first_seen(by_outcome((eval_below_chance, eval_learns_nothing), run))


# Scores of evaluation that do not move, or are zero where something must be right.


MIN_METRIC_EVALUATIONS = 5
"""Evaluations of a loss or a metric, without which neither is judged as frozen. Chosen: by hand."""
MAX_ROUNDING_OF_LOSS = 1e-6
"""Share of a loss that rounding leaves of one model. Chosen: float32 has seven digits."""
MIN_SATURATED_ACCURACY = 0.85
"""An accuracy of evaluation that is near its best. Chosen: by hand."""
BY_HEART = 0.999
"""An accuracy that is near its best in training throughout. Chosen: by hand."""
MIN_ACCURACY_EVALUATIONS = 10
"""Evaluations of an accuracy that hardly moves. Chosen: by hand."""
MIN_COMMONEST_VALUE_SHARE = 0.6
"""Share of them that have one accuracy. Chosen: by hand."""
MAX_ACCURACY_DEPARTURE = 0.005
"""How far any other evaluation is from it. Chosen: by hand."""
MAX_ACCURACY_LEAD = 0.05
"""How far training ends above it at most. Chosen: by hand."""
MEASURES = ("eval_accuracy", "eval_acc", "eval_exact_match", "eval_em")
"""Shares of all answers that are right. The recall or F1 of a rare class may well be zero."""
MAX_FALLEN_LOSS_SHARE = 0.3
"""Of the first evaluation loss, to which it falls where no score of all there is can be zero. Chosen: by hand."""
_OF_A_CLASS = regex(r"\d|class|cat(?:egory)?|small|medium|large|rare|minority", re.IGNORECASE)


def is_one_number(series: Series) -> bool:
    """Say whether all values of a loss, or its score, are those of an unchanged model."""
    return float(np.ptp(series.value)) <= MAX_ROUNDING_OF_LOSS * abs(float(series.value[0]))


def digits_of(value: float) -> int:
    """Return how many digits a number was logged with, without zeros at either end."""
    return len(f"{abs(value):.12g}".replace(".", "").lstrip("0"))


def stands_still(series: Series) -> bool:
    """Say whether a score is one number throughout, and none that is near its best."""
    value = float(series.value[0])
    if not is_error_rate(series) and MIN_SATURATED_ACCURACY <= as_share(value) <= 1:
        return False
    return bool(np.ptp(series.value) <= 1e-9 * max(abs(value), 1e-30)) or not series.value.any()


def _hardly_moves(run: Run, series: Series) -> bool:
    """Say whether an accuracy of evaluation keeps to one value, which that of training does not leave behind."""
    if series.name != MEASURES[0] or len(series) < MIN_ACCURACY_EVALUATIONS or "accuracy" not in run:
        return False
    share, trained = as_shares(series.value), as_shares(run["accuracy"].finite.value)
    value, times = most_often(Series(series.name, series.step, share))
    near = (
        float(np.abs(share - value).max()) <= MAX_ACCURACY_DEPARTURE
        and len(trained) > 0
        and end_level(trained) <= value + MAX_ACCURACY_LEAD
    )
    return near and times >= MIN_COMMONEST_VALUE_SHARE * len(share) and value < MIN_SATURATED_ACCURACY


def most_often(series: Series) -> tuple[float, int]:
    """Return the value that comes most often, and how often that is."""
    values, counts = np.unique(series.value, return_counts=True)
    return float(values[int(np.argmax(counts))]), int(counts.max())


def _by_heart(run: Run, series: Series) -> bool:
    """Say whether training had the best of such a score from its first record: it is done, and changes nothing."""
    name = series.name.removeprefix("eval_")
    trained = run[name].finite.value if name in run and name != series.name else np.empty(0)
    return bool(len(trained)) and bool(series.value.any()) and as_share(float(trained.min())) >= BY_HEART


def beside_a_loss_that_falls(run: Run) -> list[Series]:
    """Return the scores of all there is, whatever they are called, where the evaluation loss has fallen far."""
    loss = finite_of(run, "eval_loss").value
    if len(loss) < MIN_METRIC_EVALUATIONS or not 0 < float(loss[-1]) < MAX_FALLEN_LOSS_SHARE * float(loss[0]):
        return []
    # Where most answers are right, those of a rare class may all be missed.
    of_a_class = SCORES_OF_A_CLASS if share_of_right_answers(run) > MOSTLY_RIGHT else ()
    better = (quantity for quantity in Quantity if quantity.higher_is_better and quantity not in of_a_class)
    scores = run.with_role(*better, parts=True)
    return [
        score.finite
        for score in scores
        if len(score.finite) >= MIN_METRIC_EVALUATIONS and not _OF_A_CLASS.search(score.name)
    ]


# Do the numbers of evaluation change at all, and can they be what they are said to be?


FROZEN_LEAST = 3
"""Evaluations of a loss or an accuracy. Chosen: by hand."""
MIN_DETECTOR_EVALUATIONS = 10
"""Evaluations of a detector until its first hit. Chosen: by hand."""
FEWEST_DIGITS = 4
"""Digits of a loss that are enough where more evaluations than `FROZEN_LEAST` have it. Chosen: a plateau has three."""
MIN_DIGITS_OF_LOSS = 5
"""Digits of a loss; fewer may hide a change. Chosen: float32 has seven."""
NOT_GONE = 0.1
"""A training loss above this is not so small that an evaluation loss of zero could be its like. Chosen: by hand."""
MIN_PERFECT_SCORE = 0.9999
"""A score at its bound. Chosen: it cannot get better while answers do."""
MAX_IMPERFECT_SCORE = 0.9
"""The score of training at the first evaluation at most. Chosen: by hand."""
MAX_IMPROVING_LOSS_SHARE = 0.8
"""Share of its first level below which the loss of evaluation still falls. Chosen: answers get better."""
OF_NONE = -1.0
"""What COCO's evaluation says of objects of a size that there are none of."""
OF_BOXES = (
    "metrics/mAP50(B)", "metrics/mAP_0.5", "eval_bbox_map_50", "eval_coco/bbox_map_50", "coco/bbox_mAP_50", "bbox/AP50",
)  # fmt: skip
_STOPPED_EARLY = regex(r"(?<!not meet )early[ _-]?stop", re.IGNORECASE, needs="early")
"""The words by which a log ends that early stopping ended, and not LightGBM's "Did not meet early stopping"."""
_RUINS = ("loss_constant", "loss_negative", "loss_nonfinite", "loss_zero", "units_dead")


def _frozen_evidence(run: Run, series: Series, what: str, *, and_so: str = "") -> Evidence:
    first, last = float(series.step[0]), float(series.step[-1])
    summary = f"{series.name} is {what} of {len(series)} evaluations, {run.place(first)} to {figure(last)}"
    summary += f"; {and_so}" if and_so else ""
    return Evidence(
        summary, steps=(first,), values={"value": float(series.value[0]), "evaluations": float(len(series))}
    )


def eval_nonfinite(run: Run) -> Evidence | None:
    """The evaluation loss is NaN or infinite.

    Not this when: a metric is NaN by definition, such as the average precision of a class without samples.
    """
    bad = [loss for loss in evaluation_losses(run) if not np.isfinite(loss.value).all()]
    if not bad:
        return None
    at = [int(np.argmax(~np.isfinite(evaluation.value))) for evaluation in bad]
    first, series = min(zip(at, bad, strict=True), key=lambda pair: float(pair[1].step[pair[0]]))
    train = run["loss"].at(float(series.step[first])) if "loss" in run else None
    train_clause = "" if train is None else f" (the training loss there is {figure(train)})"
    kind = "NaN" if np.isnan(series.value[first]) else "infinite"
    lost = np.flatnonzero(~np.isfinite(series.value))
    since, last = float(series.step[first]), int(lost[-1])
    until = f" to {figure(series.step[last])}" if last > first else ""
    again = f"; it is finite from {run.place(series.step[last + 1])} on" if last + 1 < len(series) else ""
    return Evidence(
        f"{series.name} is {kind} first{train_clause}, and not finite at {len(lost)} of {len(series)} evaluations, "
        f"{run.place(since)}{until}{again}",
        steps=(since,),
        values={"value": float(series.value[0]), "evaluations": float(len(series))},
    )


def eval_loss_constant(run: Run) -> Evidence | None:
    """The evaluation loss is the same number at every evaluation, to all its digits, as that of an unchanged model.

    Not this when: it changes however little; it is logged with too few digits to tell.
    """
    evaluation = next(
        (series for series in (each.finite for each in evaluation_losses(run)) if len(series) >= FROZEN_LEAST), None
    )
    if evaluation is None:
        raise CannotTell(f"no evaluation loss has {FROZEN_LEAST} finite values")
    level = float(evaluation.value[0])
    if not is_one_number(evaluation) or all_zero(evaluation):
        return None
    others = [
        metric
        for metric in (series.finite for series in all_known(quality_metrics, run))
        if len(metric) >= FROZEN_LEAST
    ]
    still = all(is_one_number(other) for other in others)
    digits = sum(digits_of(float(metric.value[0])) for metric in (evaluation, *(others if still else ())))
    if digits < max(
        FEWEST_DIGITS, MIN_DIGITS_OF_LOSS + FROZEN_LEAST - len(evaluation)
    ):  # each further evaluation is a witness
        raise CannotTell(f"{evaluation.name} is always {figure(level)}, and so few digits may hide a change")
    return _frozen_evidence(run, evaluation, f"{level:.8g} at all")


def eval_metric_zero(run: Run) -> Evidence | None:
    """No answer of evaluation is right, ever: an accuracy, BLEU or a ranking is zero, or an error rate stays at 100 %.

    So is a loss of zero where the training loss is not. So is a metric that is always NaN and stopped a run whose loss
    still falls. Not this when: it is constant but above zero; another class is found (`minority_missed`); the training
    loss is still on its way, for scores of whole texts.
    """
    stopper = _nan_that_stopped(run)
    if stopper is not None:
        return _frozen_evidence(
            run, stopper, "NaN at all", and_so="early stopping ended the run while eval_loss still fell"
        )
    least = dict.fromkeys((*MEASURES, "eval_loss"), FROZEN_LEAST) | dict.fromkeys(OF_BOXES, MIN_DETECTOR_EVALUATIONS)
    shares = [series.finite for series in all_known(quality_metrics, run) if series.name in least]
    if "eval_loss" in run and "loss" in run and median(run["loss"].finite.value) > NOT_GONE:
        shares.append(run["eval_loss"].finite)
    shares = [share for share in shares if len(share) >= least[share.name]]
    ranked = [metric.finite for metric in ranking_metrics(run) if len(metric.finite) >= MIN_METRIC_EVALUATIONS]
    if ranked and not any(series.value[1:].any() for series in ranked):  # the first may hold a hit by chance
        shares = [series.where(series.step > series.step[0]) for series in ranked]
    nothing = (series for series in (*shares, *beside_a_loss_that_falls(run)) if all_zero(series))
    zero = next((series for series in nothing if not _another_class_is_found(run, series)), None)
    if zero is not None:
        return _frozen_evidence(run, zero, "0 at all")
    wrong, loss = nothing_right(run), finite_of(run, "loss")
    if wrong is None:
        if not shares and not ranked:
            raise CannotTell(f"no accuracy or loss of evaluation has {FROZEN_LEAST} values")
        return None
    is_learnt = next_token_known(run) is not None
    if not is_learnt and not (len(loss) and (has_settled(loss) or has_fallen_far(loss, float(wrong.step[0])))):
        raise CannotTell(f"{wrong.name} shows no right answer yet, and the training loss may still be on its way")
    return _frozen_evidence(run, wrong, "100 % in most" if is_error_rate(wrong) else "0 at all")


def _another_class_is_found(run: Run, series: Series) -> bool:
    """Say whether a score is of one class, and the same score of another class is above zero."""
    role = run[series.name].role
    if role is None or not role.part:
        return False
    others = run.with_role(role.quantity, parts=True)
    return any(other.role is not None and other.role.part and not all_zero(other) for other in others)


def _nan_that_stopped(run: Run) -> Series | None:
    """Return a metric that is NaN at every evaluation of a run that early stopping ended at its lowest loss.

    LightGBM's and XGBoost's early stopping watches every metric, and NaN never improves.
    """
    loss = finite_of(run, "eval_loss").value
    if not _STOPPED_EARLY.search(run.ending.text) or len(loss) < FROZEN_LEAST or np.argmin(loss) != len(loss) - 1:
        return None
    lost = (
        series for series in run.series.values() if len(series) >= FROZEN_LEAST and bool(np.isnan(series.value).all())
    )
    return next((series for series in lost if is_evaluation(series.name)), None)


def eval_score_perfect(run: Run) -> Evidence | None:
    """A score of evaluation is at its bound from the first evaluation on, while what it measures still gets better.

    Not this when: training is as good at the first evaluation; the losses do not fall any more.
    """
    perfect = [
        series
        for series in evaluation_scores(run)
        if len(series) >= FROZEN_LEAST and float(series.value.min()) >= MIN_PERFECT_SCORE
    ]
    if not perfect:
        return None
    loss, score = finite_of(run, "eval_loss").value, perfect[0]
    trained = next((pair for pair in score_pairs(run) if pair.evaluated == score.name), None)
    imperfect = trained is not None and float(trained.train[0]) < MAX_IMPERFECT_SCORE
    falls = len(loss) >= FROZEN_LEAST and float(loss[-1]) < MAX_IMPROVING_LOSS_SHARE * float(loss[0])
    return _frozen_evidence(run, score, "as good as can be at all") if imperfect and falls else None


def _is_coarse(run: Run, metric: Series) -> bool:
    """Say whether an error has one digit in all records, which rounding keeps, while the evaluation loss moves."""
    role, value = metric.role, float(metric.value[0])
    is_error = role is not None and not role.quantity.higher_is_better and not is_error_rate(metric)
    if not is_error or not np.isfinite(value) or float(f"{value:.0e}") != value or not stands_still(metric):
        return False
    return "eval_loss" in run and float(np.ptp(run["eval_loss"].finite.value)) > 0


def eval_metric_constant(run: Run) -> Evidence | None:
    """A metric of evaluation is the same number at every evaluation, or next to it at nearly all of many.

    Not this when: it is near its best, or that of training is throughout; most other metrics move, and it is none that
    any change of the scores moves, as an AUC is (a remark).
    """
    metrics = [
        metric for metric in (series.finite for series in quality_metrics(run)) if len(metric) >= MIN_METRIC_EVALUATIONS
    ]
    metrics = [metric for metric in metrics if bool(np.any(metric.value != OF_NONE))]
    metrics = [metric for metric in metrics if not _is_coarse(run, metric)]
    if not metrics:
        raise CannotTell(f"no metric of evaluation has {MIN_METRIC_EVALUATIONS} finite values")
    still = [metric for metric in metrics if stands_still(metric) or _hardly_moves(run, metric)]
    still = [metric for metric in still if not _by_heart(run, metric)]
    if not still:
        return None
    value, times = most_often(still[0])
    evidence = _frozen_evidence(run, still[0], f"{figure(value)} at {'all' if times == len(still[0]) else times}")
    summary = f"{evidence.summary}; of {len(metrics)} metrics {len(still)} do not move"
    more = {"value": value, "constant": len(still), "of": len(metrics)}
    ranks = any(is_auc(series) and stands_still(series) for series in still)
    return Evidence(
        summary, evidence.steps, {**evidence.values, **more}, present=ranks or 2 * len(still) >= len(metrics)
    )


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
    whole=True,
)
def eval_frozen(run: Run) -> Answers:
    """Not a number, an unchanged model, all answers wrong, all answers right, a constant."""
    judges = (eval_nonfinite, eval_loss_constant, eval_metric_zero, eval_score_perfect, eval_metric_constant)
    return first_seen(by_outcome(judges, run))


# Do two held-out sets say the same of the model?


MAX_FOLLOWING_LOSS_RATIO = 1.5
"""Times the training loss up to which a set follows it. Chosen: by hand."""
HELD_OUT_SETS_PART_APART = 3.0
"""Times the loss of that set which another has. Chosen: sets that are drawn alike differ by some per cent."""
EVEN_SHARE = 0.05
"""By how much the share of a set in a mean over two varies. Chosen: rounding of the losses, and no more."""
MIN_SETS_PARTING_RATIO = 2.0
"""Times what the two sets were apart at first. Chosen: by hand."""


@symptom(needs=("loss",), not_for=("grpo", "ppo", "rl", "preference"), whole=True, background=0.003)
def held_out_sets_part(run: Run) -> Evidence | None:
    """One held-out set follows the training loss down, and another, which began level with it, lags or gets worse.

    Not this when: they lay as far apart at first, as sets of different kinds do; none follows the training loss;
    one never moves, or is of averaged weights; rows of training of the kind that lags are hardly known better.
    """
    sets = [loss for loss in held_out_losses(run, LEAST_FOR_HALVES) if not _is_of_some_tokens(loss)]
    if len(sets) < 2:
        raise CannotTell(f"no two held-out sets have {LEAST_FOR_HALVES} losses")
    parts = [series.name.removeprefix("eval_") for series in sets if series.name.startswith("eval_")]
    if any(part != "loss" and part in run for part in parts):
        raise CannotTell("the losses of evaluation are parts of one loss, as those of training are")
    best, worst = (key(sets, key=lambda series: median(series.value[-2:])) for key in (min, max))
    steps, train, low = beside_training(run["loss"].finite, best)
    if len(low) < LEAST_FOR_HALVES or train[-1] <= 0 or not np.array_equal(best.step, worst.step):
        return None
    if _is_as_bad_in_training(run, worst):
        return None
    first, last = _times(best, worst, slice(None, 2)), _times(best, worst, slice(-2, None))
    if any(_is_mixture(other, best, worst) for other in sets):
        raise CannotTell("the losses of evaluation are parts of one loss, whose mean over both is logged as well")
    if median(low[-2:]) > MAX_FOLLOWING_LOSS_RATIO * median(train[-2:]) or last < max(
        HELD_OUT_SETS_PART_APART, MIN_SETS_PARTING_RATIO * first
    ):
        return None
    return Evidence(
        f"{best.name} follows the training loss to about {figure(median(best.value[-2:]))}, and {worst.name} is about "
        f"{figure(median(worst.value[-2:]))}: {ratio(last)} times as much; at first it was {ratio(first)} times",
        steps=(float(steps[0]),),
        values={"first": first, "last": last},
    )


_TOKENS_OF_ROWS = frozenset({"prompt", "completion", "answer", "response", "reply", "assistant"})
"""Words of the loss on some tokens of each row, which are not rows of their own."""


def _is_of_some_tokens(loss: Series) -> bool:
    return loss.role is not None and not _TOKENS_OF_ROWS.isdisjoint(loss.role.part.split())


def _is_as_bad_in_training(run: Run, held_out: Series) -> bool:
    """Say whether the same loss of training rows of the same kind is logged, and lies hardly lower."""
    words = set(pieces_of(held_out.name)) - PHASES.keys()
    alike = [
        loss.finite
        for loss in run.with_role(Quantity.LOSS, phase="train", parts=True)
        if set(pieces_of(loss.name)) - PHASES.keys() == words and loss.name != "loss"
    ]
    late = end_level(held_out.value)
    return any(len(loss) and MAX_FOLLOWING_LOSS_RATIO * end_level(loss.value) >= late for loss in alike)


def _is_mixture(whole: Series, best: Series, worst: Series) -> bool:
    """Say whether a loss is at every evaluation the mean of two others, with the same share of each."""
    apart = worst.value - best.value
    if not np.array_equal(whole.step, best.step) or not (apart > 0).all():
        return False
    share = (worst.value - whole.value) / apart
    return bool((share > 0).all() and (share < 1).all() and np.ptp(share) < EVEN_SHARE)


def _times(best: Series, worst: Series, part: slice) -> float:
    return median(worst.value[part]) / max(median(best.value[part]), 1e-12)


# Evaluations that jump: by how much.


EVAL_METRIC_FLICKERS_LEAST = 8
"""Evaluations. Chosen: fewer show no typical change."""
EVAL_METRIC_FLICKERS_SHARE = 0.25
"""Typical change from one evaluation to the next, as a share of the level. Chosen: by hand."""
SHARE_OF_TOKENS = 0.08
"""The same of the loss of a language model. Chosen: means over thousands of random tokens move by 1 or 2 %."""
SHARE_LEVEL = 0.3
"""The least level that such a share is taken of, for a metric up to 1. Chosen: by hand."""
MIN_RANDOM_CHANGE_RATIO = 0.5
"""Half the mean squared change over the variance. Chosen: half way between a trend and pure chance."""


@symptom(
    not_for=("grpo", "ppo", "rl"),
    whole=True,
    background=0.03,
    as_chosen=True,
    follows=("loss_above_start", "loss_divergence", "loss_nonfinite"),
)
def eval_metric_flickers(run: Run) -> Evidence | None:
    """A metric or loss of evaluation jumps up and down from one evaluation to the next without a trend.

    By a quarter of its level, a language model's loss by 8 %. Not this when: it has a trend, however noisy; the jumps
    are small against its level. Small evaluation sets make healthy runs flicker.
    """
    measured = (*all_known(evaluation_losses, run), *all_known(quality_metrics, run))
    series = [measurement.finite for measurement in measured if len(measurement.finite) >= EVAL_METRIC_FLICKERS_LEAST]
    if not series:
        raise CannotTell(f"no evaluation loss or metric has {EVAL_METRIC_FLICKERS_LEAST} finite values")
    limits = {"eval_loss": SHARE_OF_TOKENS} if predicts_tokens(run) else {}
    found = [(metric, *_flicker(metric)) for metric in series]
    found = [
        flicker
        for flicker in found
        if flicker[1] > limits.get(flicker[0].name, EVAL_METRIC_FLICKERS_SHARE) and flicker[2] > MIN_RANDOM_CHANGE_RATIO
    ]
    if not found or (2 * len(found) < len(series) and not any(flicker[0].name == "eval_loss" for flicker in found)):
        return None
    worst, typical, chance = max(found, key=lambda item: item[1])
    return Evidence(
        f"{worst.name} changes by {typical:.0%} of its level from one evaluation to the next (median of "
        f"{len(worst) - 1}; between {figure(worst.value.min())} and {figure(worst.value.max())}) without a trend",
        steps=(float(worst.step[0]),),
        values={"typical_change": typical, "randomness": chance, "metrics": len(found)},
    )


def _flicker(series: Series) -> tuple[float, float]:
    """Return the typical change as a share of the level, and how random the curve is, over its later three quarters."""
    values = series.value[len(series) // 4 :]
    level = median(np.abs(values))
    if float(np.abs(values).max()) <= 1:
        level = max(level, SHARE_LEVEL)
    if not level:
        return 0.0, 0.0
    scales = (values, np.log(values)) if (values > 0).all() else (values,)
    return median(np.abs(np.diff(values))) / level, min(map(_randomness, scales))


def _randomness(values: Floats) -> float:
    """Return the mean square of the changes over twice the variance: 1 of noise, near 0 of a trend."""
    variance = float(np.var(values))
    return float(np.mean(np.diff(values) ** 2)) / (2 * variance) if variance else 0.0


# Large step-to-step variation of the loss.


LOSS_NOISY_SHARE = 0.5
"""Standard deviation of the noise over the level. Chosen: batches of one have 0.1 to 0.35 in fine-tuning."""
MIN_COUNTED_LEVEL_SHARE = 0.2
"""Share of the first level that the level counts as at least. Chosen: near zero loss large relative noise is
nothing."""


@symptom(
    needs=("loss",),
    sources=("mccandlish_2018",),
    points=20,
    not_for=("grpo", "ppo", "rl", "diffusion"),
    background=0.3,
    follows=("loss_climbs_to_nan", "loss_huge"),
)
def loss_noisy(run: Run) -> Evidence | None:
    """The training loss varies from record to record by half of its level or more.

    Not this when: the loss is nearly zero already; each record is a sample of a wide distribution, as in diffusion; the
    records lie on two smooth curves in turn.
    """
    loss = run["loss"].finite
    if curves_in_turn(loss.value) is not None:
        raise CannotTell("the records lie on two curves in turn: the noise of either is unknown")
    start = abs(start_level(loss.value))
    late = loss.value[len(loss) // 4 :]
    level = max(median(np.abs(sample(late))), MIN_COUNTED_LEVEL_SHARE * start)
    size = noise(late)
    if level <= 0 or size < LOSS_NOISY_SHARE * level:
        return None
    return Evidence(
        f"loss varies from record to record by {figure(size)} (standard deviation) around a level of "
        f"{figure(median(late))}: {size / level:.0%}",
        steps=(float(loss.step[len(loss) // 4]),),
        values={"noise": size, "level": median(late), "share": size / level},
    )
