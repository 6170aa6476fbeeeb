"""How far is evaluation from training, in loss and in scores, does its loss rise, and can its numbers be right?"""

from __future__ import annotations

import math
import re
from functools import partial

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
    with_attribute,
)
from mldebug_mcp.checks.curve import (
    aligned,
    at_common_steps,
    curves_in_turn,
    end_level,
    finite_of,
    first_finite,
    median_of_three,
    noise,
    noise_on_slope,
    sample,
    start_level,
    true_at_end,
)
from mldebug_mcp.checks.evaluation import (
    ACCURACIES,
    LEAST_AUC,
    LEAST_FOR_HALVES,
    LEAST_FOR_MEDIAN,
    LOW_AUC,
    MIN_EXPLODED_LOSS_RATIO,
    MOSTLY_RIGHT,
    SCORES_OF_A_CLASS,
    Compared,
    all_zero,
    as_share,
    as_shares,
    auc_of,
    begins_late,
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
    refuse_after_explosion,
    refuse_another_scale,
    refuse_other_unit,
    refuse_running_mean,
    refuse_sums_of_epochs,
    share_of_right_answers,
    start_of,
)
from mldebug_mcp.checks.progress import MAX_STARTING_PASSES, epoch_at, passes_at, predicts_tokens, uniform_loss
from mldebug_mcp.checks.train_eval_gap import (
    ERROR_RATES,
    FIRST_PASS,
    EvalRise,
    ScorePair,
    evaluation_scores,
    recent_means,
    refuse_known_by_heart,
    rise_of_evaluation,
    score_pairs,
)
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex, replace
from mldebug_mcp.core.text import figure, ratio
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.metrics import is_evaluation
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.run import Run, Series

# A gap between evaluation and training loss that was there at the first evaluation.


AT_ONCE = 1.5
"""Times the training loss of evaluation from the first on. Chosen: one that just got worse is some per cent off."""
MIN_GAP_NATS = 0.3
"""Nats of evaluation above training from the first on. Chosen: one that just got worse is some per cent off."""
MIN_POSITIVE_TRAINING_NATS = 0.3
"""Training loss, in nats, above which one far below zero is a gap. Chosen: near zero, noise makes large ratios."""
MIN_FAR_EVALUATION_SHARE = 0.8
"""Share of all evaluations that are so far above. Chosen: by hand."""
NATS_OF_TOKENS = 0.5
"""Nats per token at every evaluation of a language model. Chosen: held-out text of one kind differs by hundredths."""
MAX_GAP_DRIFT_SHARE = 0.35
"""Share of the gap by which its halves differ at most. Chosen: what is learnt by heart widens a gap."""
MAX_WIDENING_START_SHARE = 0.35
"""Share of its last width that a gap has at first, at most, where it widens. Chosen: most of it came later, then."""
NOT_IN_TOKENS = ("preference", "supervised", "diffusion", "boosting")


def far_at_first(train: Floats, evaluation: Floats) -> bool:
    """Say whether evaluation is far above training at the first evaluation and nearly all others, and always was."""
    far = (evaluation > AT_ONCE * np.abs(train)) & (evaluation - train > MIN_GAP_NATS)
    far |= (evaluation < -MIN_EXPLODED_LOSS_RATIO * train) & (
        train > MIN_POSITIVE_TRAINING_NATS
    )  # such as the cross-entropy of targets above 1
    gap = evaluation - train
    widens = len(gap) >= LEAST_FOR_MEDIAN and gap[-1] > 0 and gap[0] < MAX_WIDENING_START_SHARE * gap[-1]
    return bool(far[0] and far.mean() >= MIN_FAR_EVALUATION_SHARE and not widens)


def alike_in_tokens(run: Run, train: Floats, evaluation: Floats) -> bool:
    """Say whether a language model is as many nats worse at every evaluation, which is less than its training loss."""
    if len(train) < LEAST_FOR_HALVES or run.kind in NOT_IN_TOKENS or not predicts_tokens(run):
        return False
    gap, half = evaluation - train, len(train) // 2
    alike = abs(median(gap[half:]) - median(gap[:half])) <= MAX_GAP_DRIFT_SHARE * median(gap)
    return bool(gap.min() >= NATS_OF_TOKENS) and alike and median(train[half:]) >= median(gap[half:])


# How far above the training loss does the evaluation loss lie, and was it there before a row was seen twice?


MIN_GAP_NOISE_SIGMAS = 2.0
"""Standard deviations of single records of the training loss: less is noise of a small batch. Chosen: as usual."""
MAX_FIRST_GAP_SHARE = 0.65
"""Share of the late gap that the first evaluation has, at most. Chosen: a gap of about two thirds was there at once."""
OF_TRAIN = 0.3
"""Gap in the first pass over the training loss. Fitted: 87 healthy runs are below 0.19, 14 with copies above 1.6."""
EVAL_GAP_OF_START = 0.03
"""The same gap as a share of the training loss at first. Fitted: on the same 87 healthy runs of benchmarks/faults."""
MIN_GAP_STANDARD_ERRORS = 5.0
"""The same gap in standard errors of its own. Fitted: on the same 87 healthy runs of benchmarks/faults."""
MIN_WIDE_GAP_RATIO = 1.4
"""Times the training loss throughout the later half. Chosen: on small tables and pictures it ends at 1.9 and 2.5."""
FACTOR_OF_BEST = 5.0
"""The same where evaluation has improved and ends near its lowest. Chosen: what is learnt serves it too. No faulty
run of the data set stands above 2.4 there, and a healthy one at 3.1."""
AT_BEST = 1.05
"""Times its lowest within which evaluation ends near it. Chosen: by hand."""
MAX_IMPROVED_LOSS_SHARE = 0.85
"""Share of the first training loss that evaluation comes to. Chosen: no run of benchmarks/faults comes near."""
MAX_FOLLOWING_SET_GAP_SHARE = 0.2
"""Share of the training loss within which another held-out set follows it. Chosen: half of `MIN_WIDE_GAP_RATIO`."""
MAX_GENERALISING_LOSS_SHARE = 0.5
"""Share of its first value to which an evaluation loss came down that training served. Chosen: of 2,057 labelled runs
none has a gap to a training loss near zero and an evaluation so far down and at its best."""
SHARE_OF_START = 0.1
"""Share of it that is the least gap, and what is not near zero. Chosen: no run of benchmarks/faults comes near."""
MIN_RATIO_ABOVE_START = 1.25
"""Times the first training loss, for evaluation to be above it. Chosen: beyond the scatter of batches."""
MAX_VANISHED_TRAINING_SHARE = 0.05
"""Share of the first training loss below which it counts as gone. Chosen: rows known by heart come to 0.02."""
MIN_REMAINING_GAP_SHARE = 0.2
"""Share of the first training loss that evaluation keeps where training is gone. Chosen: no healthy run does both."""
LEFT_BY_FAR = 0.4
"""The same where the training loss is only near zero. Chosen: no healthy run does both."""
MIN_CONTINUED_FALL_SHARE = 0.05
"""Of itself: an evaluation loss that falls by this over the later half still improves. Chosen: twice its scatter."""
MIN_TRAINED_ACCURACY = 0.9
"""Accuracies of a model that comes trained. Chosen: one in ten is wrong."""
ACCURACIES_OF_BOTH = ("accuracy", "eval_accuracy")
"""The accuracies that are then looked at, of training and of evaluation."""
_EVAL_GAP_RUINS = (
    "loss_divergence",
    "loss_nonfinite",
    "loss_scale_suspicious",
    "loss_above_start",
    "eval_learns_nothing",
)


def _refuse_where_another_set_follows(run: Run) -> None:
    """Raise CannotTell where another held-out set has the training loss: evaluation is right, the sets differ."""
    loss = run["loss"].finite
    for series in evaluation_losses(run):
        part = series.name.startswith("eval_") and series.name.removeprefix("eval_") in run
        if series.name == "eval_loss" or part:
            continue
        _, train, held_out = beside_training(loss, series)
        halves = [slice(None, len(train) // 2), slice(len(train) // 2, None)]
        pairs = [(median(train[half]), median(held_out[half])) for half in halves if len(train) >= LEAST_FOR_HALVES]
        if pairs and all(
            abs(evaluated - trained) <= MAX_FOLLOWING_SET_GAP_SHARE * abs(trained) for trained, evaluated in pairs
        ):
            raise CannotTell(f"{series.name} is as low as the training loss: the held-out sets differ")


FOUND_FIRST = 0.5
"""Share of queries whose match comes first, or mean of its inverse rank, from which on retrieval works. Chosen."""


def _refuse_among_candidates(run: Run) -> None:
    """Raise CannotTell where evaluation finds most matches: the loss goes with how many candidates there are."""
    for series in run.with_role(Quantity.RECALL, Quantity.HIT_RATE, Quantity.MRR, phase="eval", parts=True):
        is_first = series.role is not None and (series.role.quantity is Quantity.MRR or series.role.part == "1")
        if is_first and len(series.finite) and series.finite.value[0] >= FOUND_FIRST:
            raise CannotTell(f"{series.name} finds matches among candidates, whose number the loss goes with")


def eval_bad_from_start(run: Run) -> Evidence | None:
    """The evaluation loss lies far above the training loss from the first evaluation on, or far below zero.

    Not this when: both were close at first; rows were seen twice by then, or much was learnt and the passes over the
    data are not known; both fall by the same factor all the way; matches are found among candidates.
    """
    loss = run["loss"].finite
    refuse_other_unit(run)
    pairs = [pair for pair in (beside_training(loss, series) for series in evaluation_losses(run)) if len(pair[0])]
    if not pairs:
        raise CannotTell("no training loss was logged before an evaluation")
    refuse_after_explosion(run, evaluation_losses(run)[0])
    steps, train, evaluation = max(pairs, key=lambda pair: len(pair[0]))
    refuse_another_scale(train, evaluation)
    if not (far_at_first(train, evaluation) or alike_in_tokens(run, train, evaluation)):
        return None
    if abs(median(evaluation - train)) < MIN_GAP_NOISE_SIGMAS * noise(loss.value) / math.sqrt(len(steps)):
        raise CannotTell("single records of the training loss vary as much as the evaluation loss lies above it")
    refuse_known_by_heart(run, float(steps[0]), float(train[0]), median(loss.value[:3]))
    _refuse_among_candidates(run)
    _refuse_where_another_set_follows(run)
    return Evidence(
        f"at the first evaluation ({run.place(steps[0])}) the evaluation loss is "
        f"{figure(evaluation[0])} and the training loss {figure(train[0])}; over all {len(steps)} the "
        f"medians are {figure(median(evaluation))} and {figure(median(train))}",
        steps=(float(steps[0]),),
        values={"first_eval": float(evaluation[0]), "first_train": float(train[0]), "evaluations": len(steps)},
    )


def eval_gap_in_first_pass(run: Run) -> Evidence | None:
    """The evaluation loss leaves the training loss behind before the training data were seen once.

    Rows scored before they are learnt from have the loss of held-out rows. Not this when: the gap was as wide at the
    first evaluation; rows were seen twice; how many passes were made is not known.
    """
    loss, evaluation = run["loss"].finite, finite_of(run, "eval_loss")
    passes = passes_at(run, evaluation.step)
    until = np.searchsorted(loss.step, evaluation.step, side="right")
    keep = until > 0 if passes is None else (until > 0) & (passes <= FIRST_PASS)
    if passes is None or int(keep.sum()) < LEAST_FOR_HALVES:
        raise CannotTell("no four evaluations are known to stand within the first pass over the data")
    ends, held_out = until[keep], evaluation.value[keep]
    trained, count = recent_means(loss.value, ends)
    gap = held_out - trained
    third = slice(len(gap) - max(2, len(gap) // 3), None)
    first, late, train = float(gap[0]), float(gap[third].mean()), float((held_out - gap)[third].mean())
    error = max(
        noise_on_slope(loss.value) / int(count[third].sum()) ** 0.5, noise_on_slope(gap) / len(gap[third]) ** 0.5
    )
    least = max(OF_TRAIN * abs(train), EVAL_GAP_OF_START * abs(median(loss.value[:3])), MIN_GAP_STANDARD_ERRORS * error)
    if late < least or first > MAX_FIRST_GAP_SHARE * late:
        return None
    step, made = float(evaluation.step[keep][third][0]), float(passes[keep][-1])
    return Evidence(
        f"evaluation less training loss goes from {figure(first)} to a mean of {figure(late)} "
        f"from {run.place(step)} on, over {len(gap)} evaluations up to pass "
        f"{figure(made)} over the data, where the training loss is {figure(train)}",
        steps=(step,),
        values={"first": first, "gap": late, "error": error, "train": train, "passes": made},
    )


def _later(run: Run) -> Compared:
    """Compare the later halves of evaluation and training; raise CannotTell where that says nothing."""
    if run.kind in ("preference", "boosting"):
        raise CannotTell(f"in a run of kind {run.kind} training rows are always known better")
    if "eval_loss" not in run:
        raise CannotTell("not logged: eval_loss")
    refuse_other_unit(run)
    both = compared(run, LEAST_FOR_HALVES)
    if both.start <= 0 or not (both.evaluation[both.later] > 0).all():
        raise CannotTell("a loss is not above zero, so there are no shares of it")
    return both


def _at_best(both: Compared) -> bool:
    return bool(both.evaluation[-2:].mean() <= AT_BEST * both.evaluation.min())


def eval_gap_wide(run: Run) -> Evidence | None:
    """The evaluation loss lies far above a training loss that is not near zero, throughout the later half.

    Not this when: the training loss is near zero; both fall by the same factor all the way, as sums do; evaluation has
    improved, stays at its best, and is less than three times the training loss; nearly all answers of both are right
    from the first on.
    """
    both = _later(run)
    if all(
        name in run and float(run[name].finite.value[:1].min(initial=1)) >= MIN_TRAINED_ACCURACY
        for name in ACCURACIES_OF_BOTH
    ):
        raise CannotTell("accuracies begin near 1: the model comes trained, and how it began is not known")
    refuse_another_scale(both.train, both.evaluation)
    begin = epoch_at(run, float(run["loss"].finite.step[0]))
    late = begins_late(run["loss"]) and begins_late(run["eval_loss"]) if begin is None else begin > MAX_STARTING_PASSES
    if late:
        raise CannotTell(f"the log begins at {run.place(run.first_step)}: how training began is not known")
    far = (both.evaluation > MIN_WIDE_GAP_RATIO * both.train) & (
        both.evaluation - both.train > SHARE_OF_START * both.start
    )
    if both.train_level < SHARE_OF_START * both.start or not far[both.later].all():
        return None
    if _at_best(both) and both.eval_level < min(
        MAX_IMPROVED_LOSS_SHARE * both.start, FACTOR_OF_BEST * both.train_level
    ):
        return None
    _refuse_where_another_set_follows(run)
    first = float(both.steps[len(far) - true_at_end(far)])
    return _evidence(run, both, first, "the evaluation loss is far above the training loss")


def _evidence(run: Run, both: Compared, since: float, what: str) -> Evidence:
    start, train, reached = both.start, both.train_level, both.eval_level
    return Evidence(
        f"from {run.place(since)} on {what}: {figure(reached)} and {figure(train)} in the later half of "
        f"{len(both.steps)} evaluations; training began at {figure(start)}",
        steps=(since,),
        values={"start": start, "train": train, "eval": reached, "factor": reached / train if train else float("nan")},
    )


def eval_above_start(wide: Evidence, run: Run) -> Evidence | None:
    """The evaluation loss lies far above the training loss, and above what the training loss was at first.

    Not this when: the training loss is near zero; the evaluation loss stays below where training began.
    """
    if run.kind == "sft":
        raise CannotTell("a model that is fine-tuned knows something already, and may forget it")
    return wide if wide.values["eval"] >= MIN_RATIO_ABOVE_START * wide.values["start"] else None


def eval_gap_at_zero(run: Run) -> Evidence | None:
    """The training loss is near zero, and the evaluation loss stays at a good part of what training began with.

    Not this when: both are near zero; the evaluation loss still falls, or rises, which says more; it came down to half
    of what it was first, and stays there: held-out rows are served by what is learnt.
    """
    both = _later(run)
    rise = rise_of_evaluation(run)
    if rise is not None and not rise.slight:
        raise CannotTell("the evaluation loss rises, which says more")
    left = MIN_REMAINING_GAP_SHARE if both.train_level < MAX_VANISHED_TRAINING_SHARE * both.start else LEFT_BY_FAR
    near = SHARE_OF_START * both.start
    if not 0 <= both.train_level < near or both.eval_level - both.train_level < left * both.start:
        return None
    later = both.evaluation[both.later]
    if median(later[-2:]) < (1 - MIN_CONTINUED_FALL_SHARE) * later[0]:
        raise CannotTell("the evaluation loss still falls: held-out rows are served by what is learnt")
    if _at_best(both) and both.eval_level < MAX_GENERALISING_LOSS_SHARE * both.evaluation[0]:
        return None
    since = float(both.steps[int(np.argmax(both.train < near))])
    return _evidence(run, both, since, "the training loss is near zero, and the evaluation loss is not")


@question(
    outcome_of(eval_bad_from_start, 0.015, "slavv_37", follows=_EVAL_GAP_RUINS[:4]),
    outcome_of(eval_gap_in_first_pass, 0.004, follows=("loss_divergence", "loss_nonfinite")),
    outcome_of(eval_gap_wide, 0.01, "slavv_37", follows=_EVAL_GAP_RUINS),
    outcome_of(eval_above_start, 0.1, "slavv_37", of="eval_gap_wide", follows=_EVAL_GAP_RUINS),
    outcome_of(eval_gap_at_zero, 0.01, "goodfellow_ch11", follows=("loss_divergence", "loss_nonfinite")),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl"),
    whole=True,
)
def eval_gap(run: Run) -> Answers:
    """Look at the first evaluations, then at the first pass, then at the later half."""
    judges = (eval_bad_from_start, eval_gap_in_first_pass, eval_gap_wide, eval_gap_at_zero)
    return with_attribute(first_seen(by_outcome(judges, run)), "eval_gap_wide", eval_above_start, run)


# Evaluation losses that rise: how, when, and at which pass over the data.


LEAST_EVALUATIONS = 5
"""Evaluations with a training loss. Chosen: fewer show no course."""
MAX_SHARE_BEFORE_BEST = 0.15
"""The lowest evaluation loss stands within this share of the evaluations, or is the first. Chosen: by hand."""
MIN_EVALUATION_RISE_SHARE = 0.05
"""Of its lowest by which the evaluation loss must rise. Chosen: most fine-tuning rises by less in the end."""
MIN_TRAINING_FALL_SHARE = 0.1
"""Of its first value by which the training loss must fall. Chosen: by hand."""
MIN_FAR_RISE_SHARE = 0.3
"""Share of its lowest that a rise is one by, however it scatters. Chosen: by hand."""
EVAL_RISE_OF_START = 0.1
"""The same of what training began with: rows of another kind are met with ever surer answers. Chosen: by hand."""


def eval_gap_grows(run: Run, rise: EvalRise) -> Evidence:
    """The evaluation loss rises from its minimum while the training loss goes on falling.

    Not this when: both rise; the rise is within the noise, or like those that it came back from; of several named
    evaluation sets only a minority rises; the error rate or BLEU of what is written out still gets better; nearly all
    is learnt, and nearly all answers stay right.
    """
    sets = f"{rise.rising} of {rise.sets} evaluation losses rise; " if rise.sets > 1 else ""
    train = ""
    if rise.train is not None:
        train = f", while the training loss goes from about {figure(rise.train[0])} to about {figure(rise.train[1])}"
    gains = ", yet what is written out still gets better" if rise.gains else ""
    return Evidence(
        f"{sets}{rise.name} rises from its minimum {figure(rise.minimum)} at {run.place(rise.step)} to "
        f"about {figure(rise.last)}{train}{gains}",
        steps=(rise.step,),
        values={"minimum": rise.minimum, "last": rise.last, "relative_rise": rise.relative},
        present=not rise.gains,
    )


def _has_risen_far(run: Run, never: Evidence) -> bool:
    """Say whether an evaluation that never improves has come so far up that no scatter, however wild, explains it."""
    lowest, risen = never.values["lowest"], never.values["last"] - never.values["lowest"]
    return risen > MIN_FAR_RISE_SHARE * abs(lowest) and risen > EVAL_RISE_OF_START * abs(
        start_of(run, run["loss"].finite)
    )


def eval_never_improves(run: Run) -> Evidence | None:
    """The evaluation loss is lowest at the very first evaluations and rises from there, while the training loss falls.

    Not this when: it improves first and rises later, as in overfitting. Reported only with the rise.
    """
    if "loss" not in run:
        return None
    loss = run["loss"].finite
    refuse_after_explosion(run, evaluation_losses(run)[0])
    judged = [
        (series.finite, train)
        for series in evaluation_losses(run)
        if len(series.finite) >= LEAST_EVALUATIONS
        and len(train := aligned(loss, series.finite)[1]) >= LEAST_EVALUATIONS
    ]
    if not judged:
        raise CannotTell(f"fewer than {LEAST_EVALUATIONS} evaluations have a training loss")
    evaluation, train = judged[0]
    if all_zero(evaluation):
        raise CannotTell("the evaluation loss is zero at every evaluation, and tells nothing")
    if begins_late(evaluation):
        raise CannotTell(
            f"the first evaluation is at {run.place(evaluation.step[0])}: whether it improved before does not show"
        )
    best = int(np.argmin(evaluation.value))
    lowest, last = float(evaluation.value[best]), median(evaluation.value[-2:])
    fell = median(train[-2:]) < float(train[0]) * (1 - MIN_TRAINING_FALL_SHARE)
    if last < lowest + MIN_EVALUATION_RISE_SHARE * abs(lowest) or not fell:
        raise CannotTell("the evaluation loss does not rise while the training loss falls")
    if best > max(0.0, MAX_SHARE_BEFORE_BEST * len(evaluation) - 1):
        return None
    return Evidence(
        f"{evaluation.name} is lowest, {figure(lowest)}, at evaluation {best + 1} of {len(evaluation)} and "
        f"about {figure(last)} at the end, while the training loss falls",
        steps=(float(evaluation.step[best]),),
        values={"lowest": lowest, "last": last, "evaluation": best + 1},
    )


_EVAL_RISE_RUINS = ("loss_zero", "loss_negative", "eval_learns_nothing", "loss_divergence", "loss_nonfinite")


@question(
    outcome_of(
        eval_gap_grows,
        0.02,
        "axolotl_stability",
        "goodfellow_ch11",
        follows=(*_EVAL_RISE_RUINS, "held_out_sets_part"),
        instead=("eval_gap_at_zero", "eval_gap_wide"),
    ),
    outcome_of(eval_never_improves, 0.15, "slavv_37", of="eval_gap_grows", needs=("loss",)),
    not_for=("grpo", "ppo", "rl"),
)
def eval_rise(run: Run) -> Answers:
    """Look for a lasting rise of the evaluation loss; of several sets, for that of most."""
    rise, never = rise_of_evaluation(run), answers_of(by_outcome((eval_never_improves,), run))
    if rise is not None and rise.slight:
        raise CannotTell("evaluation rises by as little as in most fine-tuning, or as few answers too sure cost")
    if rise is not None:
        return {"eval_gap_grows": eval_gap_grows(run, rise), **never}
    far = next(
        (evidence for evidence in never.values() if isinstance(evidence, Evidence) and _has_risen_far(run, evidence)),
        None,
    )
    return {} if far is None else {"eval_gap_grows": far, **never}


# The loss of evaluation beside the loss that training had when it was as accurate.
#
# Both are losses of one model on rows of one kind, so that at one accuracy they are expected to be alike. Training that
# is more accurate than evaluation by then may know its rows by heart, and is not compared.


MAX_ACCURACY_DISTANCE = 0.03
"""Of accuracy: training this near is as accurate. Chosen: a batch of some hundred rows scatters so."""
MAX_TRAINING_ACCURACY_LEAD = 0.04
"""Of accuracy: training that is better by more may know its rows. Chosen: above `MAX_ACCURACY_DISTANCE`."""
MAX_COMPARED_RECORDS = 1_000
"""Records of each phase that are compared, evenly spread over a longer log. Chosen: medians of so many agree."""


def losses_at_accuracy(run: Run) -> Floats | None:
    """Return where evaluation is compared with training as accurate, shape (evaluations, 4).

    That is its step, its loss, its accuracy, and the factor by which its loss is that of training. None where losses
    and accuracies of both are not logged together often enough.
    """
    trained = _pair(run, "train")
    evaluated = _pair(run, "eval")
    if trained is None or evaluated is None:
        return None
    steps, loss, right = trained
    rows = []
    for step, held_out, accuracy in zip(*evaluated, strict=True):
        until = int(np.searchsorted(steps, step, side="right"))
        now = right[max(0, until - LEAST_FOR_MEDIAN) : until]
        alike = loss[:until][np.abs(right[:until] - accuracy) <= MAX_ACCURACY_DISTANCE]
        if (
            len(now)
            and median(now) <= accuracy + MAX_TRAINING_ACCURACY_LEAD
            and len(alike) >= LEAST_FOR_MEDIAN
            and median(alike) > 0
        ):
            rows.append((step, held_out, accuracy, held_out / median(alike)))
    return np.array(rows) if len(rows) >= LEAST_FOR_MEDIAN else None


def _spread(values: Floats) -> Floats:
    """Return values evenly spread over a long curve, at most twice `MAX_COMPARED_RECORDS`, shape (n,)."""
    return values[:: max(1, len(values) // MAX_COMPARED_RECORDS)]


def _pair(run: Run, phase: str) -> tuple[Floats, Floats, Floats] | None:
    """Return steps, losses and accuracies where both stand, evenly spread; those of training as medians of three."""
    loss, accuracy = (
        first_finite(run.with_role(quantity, phase=phase)) for quantity in (Quantity.LOSS, Quantity.ACCURACY)
    )
    if loss is None or accuracy is None:
        return None
    common = at_common_steps(loss, replace(accuracy, value=as_shares(accuracy.value)))
    steps, level, right = map(_spread, common)
    if len(steps) < LEAST_FOR_MEDIAN:
        return None
    return (steps, level, right) if phase == "eval" else (steps, median_of_three(level), median_of_three(right))


# How the scores of evaluation stand beside the same scores of training.


MIN_SCORE_DIFFERENCE_SIGMAS = 5.0
"""Standard deviations of one gap that any difference has. Chosen: by hand."""
MIN_LEARNT_SCORE = 0.5
"""Score that training has come to. Chosen: so does a model that serves no held-out row."""
NO_GAIN = 0.04
"""What evaluation gains at most while training learns. Chosen: so does a model that serves no held-out row."""
MAX_EVALUATION_SCORE_SHARE = 0.5
"""Share of the score of training that evaluation has at most. Chosen: so does a model that serves no held-out row."""
MIN_LOST_SCORE = 0.05
"""What evaluation loses again of a score, by medians of three. Chosen: by hand."""
LOST_OF_BEST = 0.25
"""The same where training has no such score, as a share of the best. Chosen: beyond a few of few rows."""
FALLS_ON = 0.9
"""Share of its start that the training loss is below by then. Chosen: by hand."""
LEAST_TO_FALL = 6
"""Evaluations over which it does. Chosen: by hand."""
MAX_INITIAL_SCORE_GAP = 0.25
"""The gap of scores at first as a share of the later one. Chosen: by hand."""
MIN_WIDE_SCORE_GAP = 0.3
"""The later gap of scores. Chosen: by hand."""
MIN_NEAR_BEST_SCORE = 0.9
"""Score near its best: rows of training are known by heart; a first evaluation gains no more. Chosen: by hand."""
MAX_FALLEN_LOSS_SHARE = 0.2
"""Share of its first level to which the loss falls. Chosen: what gives a fifth of the loss has most answers right."""
MAX_SCORE_PROGRESS_SHARE = 0.25
"""Part of the way to its bound that the score has come. Chosen: at a fifth of the loss most answers are right."""
MIN_TYPICAL_LOSS_RATIO = 2.0
"""Times the loss of training at the same accuracy. Fitted: healthy runs with both lie between 0.75 and 1.3."""
MIN_LOWEST_LOSS_RATIO = 1.8
"""The same at least. Fitted: healthy runs with both lie between 0.75 and 1.3."""
FEW_WRONG = 0.98
"""Accuracy from which on single rows make the loss. Chosen: ten in five hundred."""


def eval_loss_above_its_accuracy(run: Run) -> Evidence | None:
    """The evaluation loss is twice what training had, and more, when it was as accurate as evaluation is.

    Not this when: training is more accurate than evaluation by then, and may know its rows by heart; so few rows are
    wrong that one of them makes the loss.
    """
    compared_at = losses_at_accuracy(run)
    if compared_at is None:
        raise CannotTell("losses and accuracies of training and evaluation are not logged together often enough")
    loss, accuracy, times = (median(column) for column in compared_at.T[1:])
    least = float(compared_at[:, 3].min())
    if times < MIN_TYPICAL_LOSS_RATIO or least < MIN_LOWEST_LOSS_RATIO or accuracy > FEW_WRONG:
        return None
    return Evidence(
        f"the evaluation loss is {figure(loss)} at an accuracy of {figure(accuracy)}, {figure(times)} "
        f"times that of training when it was as accurate (medians of {len(compared_at)} evaluations)",
        steps=(float(compared_at[0, 0]),),
        values={"times": times, "least": least, "loss": loss, "accuracy": accuracy},
    )


def eval_score_behind_loss(run: Run) -> Evidence | None:
    """A score of evaluation comes no quarter of the way to its bound while its loss falls to a fifth.

    An AUC, which knows nothing of thresholds, stays that of a guess while the loss falls on and on. Not this when: it
    stays at one number (`eval_metric_constant`), or was good at once.
    """
    auc = auc_of(run)
    if auc is not None and is_of_a_guess(auc) and goes_on_falling(run) and np.ptp(auc.value):
        return Evidence(
            f"{auc.name} is {figure(auc.value.max())} at most in {len(auc)} evaluations, where a guess has 0.5, "
            f"while the evaluation loss falls on to {figure(run['eval_loss'].finite.value[-1])}",
            steps=(float(auc.step[0]),),
            values={"first": float(auc.value[0]), "end": float(auc.value[-1])},
        )
    scores = [series for series in evaluation_scores(run) if len(series) >= LEAST_FOR_HALVES]
    loss = finite_of(run, "eval_loss").value
    if not scores or len(loss) < LEAST_FOR_HALVES:
        raise CannotTell(f"no score and loss are logged for the same {LEAST_FOR_HALVES} evaluations")
    score, began = scores[0], min([float(loss[0]), *finite_of(run, "loss").value[:1].tolist()])
    first, reached = float(score.value[0]), median(score.value[-LEAST_FOR_MEDIAN:])
    fallen = 0 <= median(loss[-LEAST_FOR_MEDIAN:]) < MAX_FALLEN_LOSS_SHARE * began
    if (
        not fallen
        or reached - first > MAX_SCORE_PROGRESS_SHARE * (1 - first)
        or first > MIN_NEAR_BEST_SCORE
        or not np.ptp(score.value)
    ):
        return None
    last = run[score.name].finite.value[-LEAST_FOR_MEDIAN:]
    shown = f"{figure(began)} to about {figure(median(loss[-LEAST_FOR_MEDIAN:]))}"
    return Evidence(
        f"{score.name} comes no nearer to its bound, the last are {', '.join(map(figure, last))}, "
        f"while the evaluation loss falls from {shown}",
        steps=(float(score.step[0]),),
        values={"first": first, "end": reached},
    )


def _eval_score_gap_evidence(run: Run, pair: ScorePair, what: str, at: int) -> Evidence:
    """Return what is seen, from an evaluation on, with both scores there and at the end."""
    passes = "" if pair.passes is None else f" (pass {figure(pair.passes[at])})"
    return Evidence(
        f"{pair.evaluated} {what}: at {run.place(pair.steps[at])}{passes} it is {figure(pair.evaluation[at])} beside "
        f"{figure(pair.train[at])} in training, over the later half of {len(pair)} evaluations "
        f"about {figure(median(pair.evaluation[pair.later]))} beside about {figure(median(pair.train[pair.later]))}",
        steps=(float(pair.steps[at]),),
        values={"first_gap": float(pair.gap[0]), "gap": median(pair.gap[pair.later]), "noise": pair.noise},
    )


def eval_score_stands(run: Run, pair: ScorePair) -> Evidence | None:
    """A score of evaluation gains nothing while the same score of training rises far above it.

    Not this when: evaluation was good at once; training has not come above one half, or had by a first evaluation
    that stands after the first pass over the data.
    """
    trained, reached = median(pair.train[pair.later]), median(pair.evaluation[pair.later])
    best = float(median_of_three(pair.evaluation).max())
    if (
        trained < MIN_LEARNT_SCORE
        or max(reached, best) > MAX_EVALUATION_SCORE_SHARE * trained
        or reached - float(pair.evaluation[0]) > NO_GAIN
    ):
        return None
    if pair.passes is not None and float(pair.passes[0]) > FIRST_PASS and float(pair.train[0]) >= MIN_LEARNT_SCORE:
        where = figure(pair.passes[0])
        raise CannotTell(f"the first evaluation is at pass {where}: rows may be known by then")
    return (
        _eval_score_gap_evidence(run, pair, "gains nothing", 0)
        if trained - reached >= MIN_SCORE_DIFFERENCE_SIGMAS * pair.noise
        else None
    )


def eval_score_falls(run: Run, pair: ScorePair) -> Evidence | None:
    """A score of evaluation ends well below its best, for good, while the same score of training does not fall.

    Not this when: it scatters; training falls as well; by no more than a few of few rows.
    """
    if len(pair) < LEAST_TO_FALL:
        return None
    best, _, lost = _best_and_lost(pair.evaluation)
    if (
        lost < max(MIN_LOST_SCORE, MIN_SCORE_DIFFERENCE_SIGMAS * pair.noise)
        or median(pair.train[-3:]) < float(pair.train[best]) - lost / 4
    ):
        return None
    return _eval_score_gap_evidence(run, pair, f"falls by {figure(lost)} from its best", best)


def _falls_beside_loss(run: Run) -> Evidence | None:
    """Return what is seen of scores of evaluation that most fall for good while the training loss falls on.

    So it is judged where neither a loss of evaluation nor the same score of training is logged, as in recommenders.
    """
    shares = [series for series in evaluation_scores(run) if series.role and series.role.quantity not in ERROR_RATES]
    logged = {series.name: series.finite for series in (*ranking_metrics(run), *shares)}
    scores = [series for series in logged.values() if len(series) >= LEAST_TO_FALL]
    if "eval_loss" in run or "loss" not in run or not scores:
        raise CannotTell(f"no score is logged for training and at {LEAST_FOR_MEDIAN} evaluations")
    fallen = [(series, best, lost) for series in scores for best, lost in _lost_since_best(series.value)]
    loss = run["loss"].finite
    if 2 * len(fallen) <= len(scores):
        return None
    series, best, lost = fallen[0]
    step = float(series.step[best])
    before = loss.where(loss.step <= step).value
    if not len(before) or end_level(loss.value) >= min(median(before[-3:]), FALLS_ON * start_level(loss.value)):
        return None
    end = median(series.value[-3:])
    trained = f"{figure(median(before[-3:]))} to {figure(end_level(loss.value))}"
    return Evidence(
        f"{series.name} falls from its best, about {figure(end + lost)} at {run.place(step)}, to about {figure(end)} "
        f"at the end, while the training loss falls on from {trained}",
        steps=(step,),
        values={"best": end + lost, "end": end},
    )


def _lost_since_best(value: Floats) -> list[tuple[int, float]]:
    """Return where a score was best and what it has lost since, nothing where that is little or noise."""
    best, level, lost = _best_and_lost(value)
    return [(best, lost)] if lost >= max(LOST_OF_BEST * level, MIN_SCORE_DIFFERENCE_SIGMAS * noise(value)) else []


def _best_and_lost(value: Floats) -> tuple[int, float, float]:
    """Return where a score was best, how good it was there, and what it has lost since."""
    smooth = median_of_three(value)
    best = int(np.argmax(smooth[1:-1])) + 1
    return best, float(smooth[best]), float(smooth[best]) - median(value[-3:])


def eval_score_gap_grows(run: Run, pair: ScorePair) -> Evidence | None:
    """A score of training leaves that of evaluation behind, to which it was close at first, by 0.3 and near its best.

    Not this when: the gap was there at once; training is still on its way.
    """
    if run.kind == "boosting":
        raise CannotTell("trees know training rows by heart, in healthy runs too")
    late = median(pair.gap[pair.later])
    opens = float(pair.gap[0]) <= MAX_INITIAL_SCORE_GAP * late and late >= max(
        MIN_WIDE_SCORE_GAP, MIN_SCORE_DIFFERENCE_SIGMAS * pair.noise
    )
    if not opens or median(pair.train[pair.later]) < MIN_NEAR_BEST_SCORE:
        return None
    return _eval_score_gap_evidence(run, pair, "is left behind", int(np.argmax(pair.gap >= late / 2)))


@question(
    outcome_of(eval_loss_above_its_accuracy, 0.003),
    outcome_of(eval_score_behind_loss, 0.003, follows=("eval_metric_zero",)),
    outcome_of(eval_score_stands, 0.003, follows=("eval_learns_nothing", "eval_metric_constant", "eval_metric_zero")),
    outcome_of(eval_score_falls, 0.01, follows=("eval_gap_grows",)),
    outcome_of(
        eval_score_gap_grows, 0.06, follows=("eval_gap_grows", "eval_gap_wide", "eval_gap_at_zero", "eval_above_start")
    ),
    not_for=("grpo", "ppo", "rl"),
    whole=True,
)
def eval_score_gap(run: Run) -> Answers:
    """Compare accuracies, F1, AUC and the like, the first that both training and evaluation log."""
    judges = by_outcome((eval_loss_above_its_accuracy, eval_score_behind_loss), run)
    of_pair = (eval_score_stands, eval_score_falls, eval_score_gap_grows)
    pair = next((score_pair for score_pair in score_pairs(run) if len(score_pair) >= LEAST_FOR_MEDIAN), None)
    if pair is None:
        why = CannotTell(f"no score is logged for training and at {LEAST_FOR_MEDIAN} evaluations")
        alone = first_seen({**judges, "eval_score_falls": partial(_falls_beside_loss, run)})
        unknown = dict.fromkeys((detector.__name__ for detector in of_pair), why)
        return alone if any(isinstance(answer, Evidence) for answer in alone.values()) else {**unknown, **alone}
    return first_seen({**judges, **by_outcome(of_pair, run, pair)})


# Can the numbers of evaluation be right?


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
GAP_SHARE_OF_START = 0.08
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
LOSSES_NOT_IN_TOKENS = ("supervised", "diffusion", "boosting")
_FOLLOWS = ("loss_falls_back", "loss_scale_suspicious")


def _level_evidence(both: Compared, what: str, since: float) -> Evidence:
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
    if not 0 <= median(ratio) < limit or gap < max(LEAST_GAP, GAP_SHARE_OF_START * both.start):
        return None
    # Where training still falls fast, what it has come to by an evaluation is below its mean since the one before.
    loss = run["loss"].finite
    nearest = loss.value[np.searchsorted(loss.step, both.steps[both.later], side="right") - 1]
    if (ratio < 1).mean() < MIN_BELOW_TRAINING_SHARE or median(both.evaluation[both.later] / nearest) >= limit:
        return None
    return _level_evidence(both, "", float(both.steps[both.later][0]))


def eval_below_grows(both: Compared) -> Evidence | None:
    """Evaluation was level with the training loss at first, and has come far below it since.

    Not this when: it was below from the first evaluation on, as with dropout or an easier set.
    """
    share = _share(both)
    comparison = f", and was {ratio(share)} times it at first"
    return _level_evidence(both, comparison, float(both.steps[0])) if share >= MIN_LEVEL_START_SHARE else None


def train_far_above_eval(run: Run, both: Compared) -> Evidence | None:
    """A language model's training loss is more than twice its evaluation loss at every evaluation.

    Both are nats per token, if they are computed alike over rows alike. Not this when: it comes about in training.
    """
    if run.kind in LOSSES_NOT_IN_TOKENS or not predicts_tokens(run):
        raise CannotTell("it is not known that this run trains a language model")
    if len(both.steps) < LEAST_FOR_MEDIAN or not (both.evaluation > 0).all():
        raise CannotTell(f"{LEAST_FOR_MEDIAN} evaluations above zero are needed")
    times = both.train / both.evaluation
    comparison = f", {ratio(times.min())} to {ratio(times.max())} times it"
    return _level_evidence(both, comparison, float(both.steps[0])) if float(times.min()) >= TIMES_OF_TOKENS else None


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
    return _level_evidence(both, ", near its start", float(both.steps[both.later][0])) if farther else None


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
MIN_FALL_AT_ALL_SHARE = 0.03
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
    if moved > 1 - MIN_FALL_AT_ALL_SHARE:
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
MAX_FALLEN_EVAL_LOSS_SHARE = 0.3
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
    if len(loss) < MIN_METRIC_EVALUATIONS or not 0 < float(loss[-1]) < MAX_FALLEN_EVAL_LOSS_SHARE * float(loss[0]):
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
    """Return the typical change as a share of the level, and how random the curve is, over its later three quarters.

    What falls by powers of ten has its trend in the logarithm.
    """
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
