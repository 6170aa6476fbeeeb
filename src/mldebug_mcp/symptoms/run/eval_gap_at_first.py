"""Evaluation losses that lie far above the training loss at once, before any row can be known by heart."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.fresh_gap import fresh_gap
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.beginning import PASSES, epoch_at
from mldebug_mcp.symptoms.evaluation import (
    EXPLODED,
    beside_training,
    compared,
    evaluation_losses,
    refuse_after_explosion,
    refuse_another_scale,
)
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.ways import first_seen
from mldebug_mcp.text import figure

FACTOR = 1.5
GAP = 0.3
"""Nats, and half of the training loss: far more than the gap of a model that has just begun to generalise worse."""
LEARNT, SHARE_OF_IT = 0.3, 0.4
"""An accuracy of training at the first evaluation, and the most of it that held-out rows ever have. Chosen by hand."""
SMALL = 10.0
"""Times the training loss at first: a gap that is wider at once is no small beginning. Chosen by hand."""
NATS = 0.5
"""Nats per token at every evaluation. Held-out rows of the same data differ by hundredths from rows of a first pass."""
FEWEST_TOKENS, MOST_TOKENS = 5_000, 1_000_000
"""Sizes of a vocabulary of which a first loss may be that of a guess, where neither kind nor settings tell. Chosen."""
STEADY = 0.35
"""Of the median gap: how far the gaps of both halves may lie apart. What is learnt by heart widens it. By hand."""
LEAST_EVALUATIONS = 4
OF_TRAIN, OF_START, ERRORS, OPENED = 0.3, 0.03, 5.0, 0.65
"""A gap within the first pass: of the training loss there, of that at first, in standard errors of its own; and the
most of it that was there at the first evaluation. Of 87 healthy runs of benchmarks/faults whose passes are known none
comes above 0.19 of the training loss, and of 14 with copied rows all are above 1.6."""
NOT_IN_TOKENS = ("preference", "supervised", "diffusion", "boosting")

AT_ONCE = Outcome(
    "eval_bad_from_start",
    """The evaluation loss lies far above the training loss from the first evaluation on, or far below zero.

    Not this when: both were close at first (`eval_gap_grows`), unless the accuracies were not; the first evaluation
    comes so late that the training loss has long been near zero; the evaluation precedes training; both fall by the
    same factor all the way. Factor and gap were chosen by hand.""",
    background=0.015,
    sources=("slavv_37",),
    follows=("loss_divergence", "loss_nonfinite", "loss_scale_suspicious", "loss_above_start"),
)
ALIKE = Outcome(
    "eval_gap_steady",
    """A language model's evaluation loss is half a nat or more above its training loss, at every evaluation alike.

    Not this when: the gap begins small and widens (`eval_gap_grows`); the training loss is the smaller part, as of rows
    that are learnt by heart (`eval_gap_wide`); evaluation is on another kind of text on purpose, which looks the same.
    The bounds were chosen by hand.""",
    background=0.006,
    sources=("slavv_37",),
    as_chosen=True,
    follows=("eval_gap_wide", "loss_divergence", "loss_nonfinite"),
)


OPENS = Outcome(
    "eval_gap_in_first_pass",
    """The evaluation loss leaves the training loss behind before the training data were seen once.

    Rows that are scored before they are learnt from have the loss of held-out rows, so that no gap is to be expected.
    Not this when: the gap was as wide at the first evaluation; rows were seen twice by then; how many passes were made
    is not known. Text of another kind at evaluation may be left behind so as well.""",
    background=0.004,
    follows=("loss_divergence", "loss_nonfinite"),
)


@question(AT_ONCE, ALIKE, OPENS, needs=("loss",), not_for=("grpo", "ppo", "rl"), whole_run=True)
def eval_gap_at_first(run: Run) -> Answers:
    """Compare the losses at the first evaluations: by a factor, or of language models in nats."""
    judges = {AT_ONCE.id: _at_once, ALIKE.id: _alike, OPENS.id: _opens}
    return first_seen({outcome: partial(judge, run) for outcome, judge in judges.items()})


def _at_once(run: Run) -> Evidence | None:
    loss = run["loss"].finite
    compared = [one for one in (beside_training(loss, series) for series in evaluation_losses(run)) if len(one[0])]
    if not compared:
        raise CannotTell("no training loss was logged before an evaluation")
    refuse_after_explosion(run, evaluation_losses(run)[0])
    step, train, evaluation = compared[0] if len(compared) == 1 else max(compared, key=lambda one: len(one[0]))
    refuse_another_scale(train, evaluation)
    far = (evaluation > FACTOR * np.abs(train)) & (evaluation - train > GAP)
    far |= (evaluation < -EXPLODED * train) & (train > GAP)  # such as the cross-entropy of targets above 1
    if not far[0] or far.mean() < 0.8:
        return None
    epoch = epoch_at(run, float(step[0]))
    if epoch is not None and epoch > PASSES:
        raise CannotTell(
            f"the first evaluation stands at epoch {figure(epoch)}: by then rows may be memorised, and whether "
            "both losses were ever close is not known"
        )
    if run.kind == "boosting" and step[0] > 1:
        raise CannotTell(
            f"the first evaluation stands after {figure(float(step[0]))} rounds: by then trees may know rows by heart"
        )
    start = median(loss.value[:3])
    if train[0] < 0.5 * start and len(loss.between(0, float(step[0]))) > 20:
        raise CannotTell(
            f"at the first evaluation ({run.step_name} {figure(float(step[0]))}) the training loss had already gone "
            f"from {figure(start)} to {figure(float(train[0]))}: whether they ever were close is not known"
        )
    # What grows from a small beginning is another symptom.
    small = evaluation[0] - train[0] < SMALL * abs(start) and not _wrong_at_once(run)
    if small and len(train) > 2 and (evaluation[0] - train[0]) < 0.4 * (evaluation[-1] - train[-1]):
        return None
    return Evidence(
        f"at the first evaluation ({run.step_name} {figure(float(step[0]))}) the evaluation loss is "
        f"{figure(float(evaluation[0]))} and the training loss {figure(float(train[0]))}; over all {len(step)} the "
        f"medians are {figure(median(evaluation))} and {figure(median(train))}",
        steps=(float(step[0]),),
        values={
            "first_eval": float(evaluation[0]),
            "first_train": float(train[0]),
            "factor": median(evaluation / train) if np.all(train) else float("nan"),
        },
    )


def _wrong_at_once(run: Run) -> bool:
    """Say whether training had learnt much at the first evaluation, of which evaluation has little, then and later."""
    if "accuracy" not in run or "eval_accuracy" not in run:
        return False
    evaluated = run["eval_accuracy"].finite
    trained = run["accuracy"].finite
    trained = trained.where(trained.step <= (evaluated.step[0] if len(evaluated) else -np.inf))
    if not len(trained):
        return False
    scale = 100 if max(float(trained.value.max()), float(evaluated.value.max())) > 1 else 1
    learnt = float(trained.value[-1]) / scale
    return learnt > LEARNT and float(evaluated.value.max()) / scale < SHARE_OF_IT * learnt


def _alike(run: Run) -> Evidence | None:
    if run.kind in NOT_IN_TOKENS or not (predicts_tokens(run) or _starts_at_a_vocabulary(run)):
        raise CannotTell("it is not known that this run trains a language model")
    if "eval_loss" not in run:
        raise CannotTell("not logged: eval_loss")
    both = compared(run, LEAST_EVALUATIONS)
    epoch = epoch_at(run, float(both.steps[0]))
    if epoch is not None and epoch > PASSES:
        raise CannotTell(f"the first evaluation stands at epoch {figure(epoch)}: by then rows may be memorised")
    gap = both.evaluation - both.train
    if not np.isfinite(gap).all():
        raise CannotTell("a loss is not finite")
    middle = len(gap) // 2
    early, late = median(gap[:middle]), median(gap[middle:])
    if float(gap.min()) < NATS or abs(late - early) > STEADY * median(gap) or both.train_level < late:
        return None
    first = float(both.steps[0])
    return Evidence(
        f"the evaluation loss is {figure(float(gap.min()))} to {figure(float(gap.max()))} nats above the training loss "
        f"at all {len(gap)} evaluations, from {run.step_name} {figure(first)} on",
        steps=(first,),
        values={"least": float(gap.min()), "most": float(gap.max()), "evaluations": len(gap)},
    )


def _opens(run: Run) -> Evidence | None:
    gap = fresh_gap(run)
    if gap is None:
        raise CannotTell("no four evaluations are known to stand within the first pass over the data")
    least = max(OF_TRAIN * abs(gap.train), OF_START * abs(gap.start), ERRORS * gap.error)
    if gap.last < least or gap.first > OPENED * gap.last:
        return None
    return Evidence(
        f"evaluation less training loss goes from {figure(gap.first)} to {figure(gap.last)} by {run.step_name} "
        f"{figure(gap.step)}, over {gap.count} evaluations up to pass {figure(gap.passes)} over the data, where the "
        f"training loss is {figure(gap.train)}",
        steps=(gap.step,),
        values={"first": gap.first, "gap": gap.last, "error": gap.error, "train": gap.train, "passes": gap.passes},
    )


def _starts_at_a_vocabulary(run: Run) -> bool:
    """Say whether the first loss is that of a uniform guess among so many answers that they must be tokens."""
    first = run["loss"].finite.between(0, run.last_step / 20).value[:1]
    return len(first) > 0 and math.log(FEWEST_TOKENS) <= float(first[0]) <= math.log(MOST_TOKENS)
