"""How far is evaluation from training, in loss and in scores, and does the evaluation loss rise?"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    answers_of,
    by_outcome,
    first_seen,
    outcome_of,
    question,
    with_attribute,
)
from mldebug_mcp.checks.curve import (
    aligned,
    at_common_steps,
    end_level,
    finite_of,
    first_finite,
    median_of_three,
    noise,
    noise_on_slope,
    start_level,
    true_at_end,
)
from mldebug_mcp.checks.evaluation import (
    LEAST_FOR_HALVES,
    LEAST_FOR_MEDIAN,
    MIN_EXPLODED_LOSS_RATIO,
    Compared,
    all_zero,
    as_shares,
    auc_of,
    begins_late,
    beside_training,
    compared,
    evaluation_losses,
    goes_on_falling,
    is_of_a_guess,
    ranking_metrics,
    refuse_after_explosion,
    refuse_another_scale,
    refuse_other_unit,
    start_of,
)
from mldebug_mcp.checks.progress import MAX_STARTING_PASSES, epoch_at, passes_at, predicts_tokens
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
from mldebug_mcp.core.lazy import replace
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run

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
    """Return what is seen of scores of evaluation that most fall for good while the training loss falls on."""
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
