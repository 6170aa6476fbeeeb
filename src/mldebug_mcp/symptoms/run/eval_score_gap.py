"""How the scores of evaluation stand beside the same scores of training."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.fresh_gap import FIRST_PASS
from mldebug_mcp.measure.loss_at_accuracy import loss_at_accuracy
from mldebug_mcp.measure.quality import auc_of, goes_on_falling, is_of_a_guess
from mldebug_mcp.measure.score_pairs import ScorePair, evaluation_scores, score_pairs
from mldebug_mcp.measure.statistics import median, median_of_three
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen
from mldebug_mcp.text import figure

LEAST, SIGMAS = 3, 5.0
"""Evaluations, and standard deviations of one gap that any difference has. Chosen: fewer show no course."""
LEARNT, NO_GAIN, HALF = 0.5, 0.04, 0.5
"""Training has come to the first share and evaluation gains no more than the second, and has at most half of it.
Chosen: so does a model that serves no held-out row."""
LOST, LEAST_TO_FALL = 0.05, 6
"""Of a score that evaluation loses again, by medians of three; over so many evaluations. Chosen: by hand."""
CLOSE, WIDE, KNOWN = 0.25, 0.3, 0.9
"""The gap at first as a share of the later one; the later one, where training has come to the third number and rows are
known by heart. Chosen: by hand."""
LEAST_BESIDE, FIFTH, QUARTER = 4, 0.2, 0.25
"""Evaluations with a loss and a score, the share to which the loss falls, and that of the way to its bound which the
score should have come by then. Chosen: what gives a fifth of the loss has most answers right."""
TIMES, ALWAYS = 2.0, 1.8
"""Times the loss of training at the same accuracy, typically and at least. Fitted: sound runs that log both lie between
0.75 and 1.3."""

FEW_WRONG = 0.98
"""Accuracy from which on single rows make the loss. Chosen: ten in five hundred."""


def eval_loss_above_its_accuracy(run: Run) -> Evidence | None:
    """The evaluation loss is twice what training had, and more, when it was as accurate as evaluation is.

    Not this when: training is more accurate than evaluation by then, and may know its rows by heart; so few rows are
    wrong that one of them makes the loss.
    """
    seen = loss_at_accuracy(run)
    if seen is None:
        raise CannotTell("losses and accuracies of training and evaluation do not stand beside each other often enough")
    if seen.times < TIMES or seen.least < ALWAYS or seen.accuracy > FEW_WRONG:
        return None
    return Evidence(
        f"the evaluation loss is {figure(seen.loss)} at an accuracy of {figure(seen.accuracy)}, {figure(seen.times)} "
        f"times that of training when it was as accurate (medians of {seen.count} evaluations)",
        steps=(seen.step,),
        values={"times": seen.times, "least": seen.least, "loss": seen.loss, "accuracy": seen.accuracy},
    )


def eval_score_behind_loss(run: Run) -> Evidence | None:
    """A score of evaluation comes no quarter of the way to its bound while the loss beside it falls to a fifth.

    An AUC, which knows nothing of thresholds, stays that of a guess while the loss falls on and on. Not this when: it
    stands at one number (`eval_metric_constant`), or was good at once.
    """
    auc = auc_of(run)
    if auc is not None and is_of_a_guess(auc) and goes_on_falling(run) and np.ptp(auc.value):
        return Evidence(
            f"{auc.name} is {figure(auc.value.max())} at most in {len(auc)} evaluations, where a guess has 0.5, "
            f"while the evaluation loss falls on to {figure(run['eval_loss'].finite.value[-1])}",
            steps=(float(auc.step[0]),),
            values={"first": float(auc.value[0]), "end": float(auc.value[-1])},
        )
    scores = [one for one in evaluation_scores(run) if len(one) >= LEAST_BESIDE]
    if not scores or "eval_loss" not in run or len(run["eval_loss"].finite) < LEAST_BESIDE:
        raise CannotTell(f"no score and loss are logged for the same {LEAST_BESIDE} evaluations")
    loss, score = run["eval_loss"].finite.value, scores[0]
    began = min([float(loss[0]), *run["loss"].finite.value[:1].tolist()] if "loss" in run else [float(loss[0])])
    first, reached = float(score.value[0]), median(score.value[-LEAST:])
    fallen = 0 <= median(loss[-LEAST:]) < FIFTH * began
    if not fallen or reached - first > QUARTER * (1 - first) or first > KNOWN or not np.ptp(score.value):
        return None
    shown = f"{figure(began)} to {figure(median(loss[-LEAST:]))}"
    return Evidence(
        f"{score.name} comes no nearer to its bound, the last are {_last(run, score)}, "
        f"while the evaluation loss falls from {shown}",
        steps=(float(score.step[0]),),
        values={"first": first, "end": reached},
    )


def _last(run: Run, score: Series) -> str:
    return ", ".join(figure(value) for value in run[score.name].finite.value[-LEAST:])


def _evidence(run: Run, pair: ScorePair, what: str, at: int) -> Evidence:
    """Return what is seen, from an evaluation on, with both scores there and at the end."""
    passes = "" if pair.passes is None else f" (pass {figure(pair.passes[at])})"
    return Evidence(
        f"{pair.evaluated} {what}: at {run.place(pair.steps[at])}{passes} it is {figure(pair.evaluation[at])} beside "
        f"{figure(pair.train[at])} in training, over the later half of {len(pair)} evaluations "
        f"{figure(median(pair.evaluation[pair.later]))} beside {figure(median(pair.train[pair.later]))}",
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
    if trained < LEARNT or max(reached, best) > HALF * trained or reached - float(pair.evaluation[0]) > NO_GAIN:
        return None
    if pair.passes is not None and float(pair.passes[0]) > FIRST_PASS and float(pair.train[0]) >= LEARNT:
        where = figure(pair.passes[0])
        raise CannotTell(f"the first evaluation stands at pass {where}: rows may be known by then")
    return _evidence(run, pair, "gains nothing", 0) if trained - reached >= SIGMAS * pair.noise else None


def eval_score_falls(run: Run, pair: ScorePair) -> Evidence | None:
    """A score of evaluation ends well below its best, for good, while the same score of training does not fall.

    Not this when: it scatters; training falls as well; by no more than a few of few rows.
    """
    if len(pair) < LEAST_TO_FALL:
        return None
    smooth = median_of_three(pair.evaluation)
    best = int(np.argmax(smooth[1:-1])) + 1
    lost = float(smooth[best]) - median(pair.evaluation[-3:])
    if lost < max(LOST, SIGMAS * pair.noise) or median(pair.train[-3:]) < float(pair.train[best]) - lost / 4:
        return None
    return _evidence(run, pair, f"falls by {figure(lost)} from its best", best)


def eval_score_gap_grows(run: Run, pair: ScorePair) -> Evidence | None:
    """A score of training leaves that of evaluation behind, to which it was close at first, by 0.3 and near its best.

    Not this when: the gap was there at once; training is still on its way.
    """
    late = median(pair.gap[pair.later])
    opens = float(pair.gap[0]) <= CLOSE * late and late >= max(WIDE, SIGMAS * pair.noise)
    if not opens or median(pair.train[pair.later]) < KNOWN:
        return None
    return _evidence(run, pair, "is left behind", int(np.argmax(pair.gap >= late / 2)))


@question(
    outcome_of(eval_loss_above_its_accuracy, 0.003),
    outcome_of(eval_score_behind_loss, 0.003, follows=("eval_metric_zero",)),
    outcome_of(eval_score_stands, 0.003, follows=("eval_learns_nothing", "eval_metric_constant", "eval_metric_zero")),
    outcome_of(eval_score_falls, 0.01, follows=("eval_gap_grows",)),
    outcome_of(
        eval_score_gap_grows, 0.06, follows=("eval_gap_grows", "eval_gap_wide", "eval_gap_at_zero", "eval_above_start")
    ),
    not_for=("grpo", "ppo", "rl", "boosting"),
    whole_run=True,
)
def eval_score_gap(run: Run) -> Answers:
    """Compare accuracies, F1, AUC and the like, the first that both training and evaluation log."""
    judges = by_outcome((eval_loss_above_its_accuracy, eval_score_behind_loss), run)
    of_pair = (eval_score_stands, eval_score_falls, eval_score_gap_grows)
    pair = next((one for one in score_pairs(run) if len(one) >= LEAST), None)
    if pair is None:
        why = CannotTell(f"no score is logged for training and at {LEAST} evaluations")
        return {**first_seen(judges), **dict.fromkeys((one.__name__ for one in of_pair), why)}
    return first_seen({**judges, **by_outcome(of_pair, run, pair)})
