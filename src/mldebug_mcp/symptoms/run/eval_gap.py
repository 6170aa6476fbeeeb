"""How far above the training loss does the evaluation loss lie, and was it there before a row was seen twice?"""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.beginning import PASSES, epoch_at
from mldebug_mcp.measure.eval_rise import rise_of_evaluation
from mldebug_mcp.measure.evaluation import (
    Compared,
    begins_late,
    beside_training,
    compared,
    evaluation_losses,
    refuse_after_explosion,
    refuse_another_scale,
)
from mldebug_mcp.measure.fresh_gap import fresh_gap, refuse_known_by_heart
from mldebug_mcp.measure.gap_at_once import OPENED, alike_in_tokens, far_at_first
from mldebug_mcp.measure.statistics import median, noise
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen, with_attribute
from mldebug_mcp.text import figure

LEAST = 4
"""Evaluations. Chosen: both halves then hold two."""
NOISES = 2.0
"""Standard deviations of single records of the training loss: less is noise of a small batch. Chosen: as usual."""
OF_TRAIN, OF_START, ERRORS = 0.3, 0.03, 5.0
"""A gap within the first pass: of the training loss, of that at first, and in standard errors of its own. Fitted: 87
healthy runs of benchmarks/faults stay below 0.19 of the training loss, 14 with copied rows are above 1.6."""
FACTOR, FACTOR_OF_BEST, AT_BEST = 1.4, 3.0, 1.05
"""Times the training loss throughout the later half; the second where evaluation has improved and ends within the third
times its lowest, as what is learnt serves it too. Chosen: networks on small tables and pictures end at 1.9 and 2.5."""
IMPROVED, SHARE_OF_START = 0.85, 0.1
"""Of the first training loss: what evaluation has improved to; the least gap, and what is not near zero.
Chosen: no healthy run of benchmarks/faults comes near."""
ABOVE = 1.25
"""Times the first training loss, for evaluation to be above it. Chosen: beyond the scatter of batches."""
GONE, LEFT, LEFT_BY_FAR = 0.05, 0.2, 0.4
"""Of the first training loss: what counts as gone, and how far above it evaluation stays; by the third where the
training loss is no more than near zero. Chosen: rows known by heart come to 0.02, and no healthy run does both."""
FALLS = 0.05
"""Of itself: an evaluation loss that falls by this over the later half still improves. Chosen: twice its scatter."""
GOOD, ACCURACIES_OF_BOTH = 0.9, ("accuracy", "eval_accuracy")
"""Accuracies of a model that comes trained. Chosen: one in ten is wrong."""
_RUINS = ("loss_divergence", "loss_nonfinite", "loss_scale_suspicious", "loss_above_start", "eval_learns_nothing")


def eval_bad_from_start(run: Run) -> Evidence | None:
    """The evaluation loss lies far above the training loss from the first evaluation on, or far below zero.

    Not this when: both were close at first; rows were seen twice by then, or much was learnt and the passes over the
    data are not known; both fall by the same factor all the way.
    """
    loss = run["loss"].finite
    pairs = [pair for pair in (beside_training(loss, one) for one in evaluation_losses(run)) if len(pair[0])]
    if not pairs:
        raise CannotTell("no training loss was logged before an evaluation")
    refuse_after_explosion(run, evaluation_losses(run)[0])
    steps, train, evaluation = max(pairs, key=lambda pair: len(pair[0]))
    refuse_another_scale(train, evaluation)
    if not (far_at_first(train, evaluation) or alike_in_tokens(run, train, evaluation)):
        return None
    if abs(median(evaluation - train)) < NOISES * noise(loss.value) / math.sqrt(len(steps)):
        raise CannotTell("single records of the training loss vary as much as the evaluation loss lies above it")
    refuse_known_by_heart(run, float(steps[0]), float(train[0]), median(loss.value[:3]))
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
    gap = fresh_gap(run)
    if gap is None:
        raise CannotTell("no four evaluations are known to stand within the first pass over the data")
    least = max(OF_TRAIN * abs(gap.train), OF_START * abs(gap.start), ERRORS * gap.error)
    if gap.last < least or gap.first > OPENED * gap.last:
        return None
    return Evidence(
        f"evaluation less training loss goes from {figure(gap.first)} to {figure(gap.last)} by {run.place(gap.step)}, "
        f"over {gap.count} evaluations up to pass {figure(gap.passes)} over the data, where the training loss is "
        f"{figure(gap.train)}",
        steps=(gap.step,),
        values={"first": gap.first, "gap": gap.last, "error": gap.error, "train": gap.train, "passes": gap.passes},
    )


def _later(run: Run) -> Compared:
    """Compare the later halves of evaluation and training; raise CannotTell where that says nothing."""
    if run.kind in ("preference", "boosting"):
        raise CannotTell(f"in a run of kind {run.kind} training rows are always known better")
    if "eval_loss" not in run:
        raise CannotTell("not logged: eval_loss")
    both = compared(run, LEAST)
    if both.start <= 0 or not (both.evaluation[both.later] > 0).all():
        raise CannotTell("a loss is not above zero, so there are no shares of it")
    return both


def eval_gap_wide(run: Run) -> Evidence | None:
    """The evaluation loss lies far above a training loss that is not near zero, throughout the later half.

    Not this when: the training loss is near zero; both fall by the same factor all the way, as sums do; evaluation has
    improved, stays at its best, and is less than three times the training loss; nearly all answers of both are right
    from the first on.
    """
    both = _later(run)
    if all(name in run and float(run[name].finite.value[:1].min(initial=1)) >= GOOD for name in ACCURACIES_OF_BOTH):
        raise CannotTell("accuracies begin near 1: the model comes trained, and how it began is not known")
    refuse_another_scale(both.train, both.evaluation)
    begin = epoch_at(run, float(run["loss"].finite.step[0]))
    late = begins_late(run["loss"]) and begins_late(run["eval_loss"]) if begin is None else begin > PASSES
    if late:
        raise CannotTell(f"the log begins at {run.place(run.first_step)}: how training began is not known")
    at_best = both.evaluation[-2:].mean() <= AT_BEST * both.evaluation.min()
    far = (both.evaluation > FACTOR * both.train) & (both.evaluation - both.train > SHARE_OF_START * both.start)
    if both.train_level < SHARE_OF_START * both.start or not far[both.later].all():
        return None
    if at_best and both.eval_level < min(IMPROVED * both.start, FACTOR_OF_BEST * both.train_level):
        return None
    first = float(both.steps[len(far) - int(np.argmin(far[::-1])) if not far.all() else 0])
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
    return wide if wide.values["eval"] >= ABOVE * wide.values["start"] else None


def eval_gap_at_zero(run: Run) -> Evidence | None:
    """The training loss is near zero, and the evaluation loss stays at a good part of what training began with.

    Not this when: both are near zero; the evaluation loss still falls, or rises, which says more.
    """
    both = _later(run)
    rise = rise_of_evaluation(run)
    if rise is not None and not rise.slight:
        raise CannotTell("the evaluation loss rises, which says more")
    left = LEFT if both.train_level < GONE * both.start else LEFT_BY_FAR
    near = SHARE_OF_START * both.start
    if not 0 <= both.train_level < near or both.eval_level - both.train_level < left * both.start:
        return None
    later = both.evaluation[both.later]
    if median(later[-2:]) < (1 - FALLS) * later[0]:
        raise CannotTell("the evaluation loss still falls: held-out rows are served by what is learnt")
    since = float(both.steps[int(np.argmax(both.train < near))])
    return _evidence(run, both, since, "the training loss is near zero, and the evaluation loss is not")


@question(
    outcome_of(eval_bad_from_start, 0.015, "slavv_37", follows=_RUINS[:4]),
    outcome_of(eval_gap_in_first_pass, 0.004, follows=("loss_divergence", "loss_nonfinite")),
    outcome_of(eval_gap_wide, 0.01, "slavv_37", follows=_RUINS),
    outcome_of(eval_above_start, 0.1, "slavv_37", of="eval_gap_wide", follows=_RUINS),
    outcome_of(eval_gap_at_zero, 0.01, "goodfellow_ch11", follows=("loss_divergence", "loss_nonfinite")),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
)
def eval_gap(run: Run) -> Answers:
    """Look at the first evaluations, then at the first pass, then at the later half."""
    judges = (eval_bad_from_start, eval_gap_in_first_pass, eval_gap_wide, eval_gap_at_zero)
    return with_attribute(first_seen(by_outcome(judges, run)), "eval_gap_wide", eval_above_start, run)
