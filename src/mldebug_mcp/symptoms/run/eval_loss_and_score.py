"""Do the loss and the scores of evaluation say the same?"""

from __future__ import annotations

from functools import partial

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.evaluation import compared, evaluation_losses
from mldebug_mcp.measure.loss_at_accuracy import loss_at_accuracy
from mldebug_mcp.measure.score_pairs import evaluation_scores, score_pairs
from mldebug_mcp.measure.statistics import median, median_of_three, noise_on_slope, start_level
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.ways import first_seen
from mldebug_mcp.text import figure

LEAST, SIGMAS = 6, 5.0
"""Evaluations, and standard deviations of one of them. Chosen: both halves then hold three."""
TIMES, ALWAYS = 2.0, 1.8
"""Times the loss of training at the same accuracy, typically and at least. Fitted: sound runs that log both lie between
0.75 and 1.3."""
ALIKE, APART = 1.25, 0.15
"""Quotient of the losses, either way, that agree, and how far scores are apart. Chosen: three errors of an accuracy
of a hundred rows."""
FALLEN, LOST, AT_HALF, EXPLODED = 0.15, 0.08, 0.5, 2.0
"""Of its level, how far the loss falls, and how much of a score is lost, half of it for good; times what training began
with, of an explosion that evaluation comes back from. Chosen: twice what sound scores wander."""
RISEN, HELD, GAINED, GOOD = 0.1, 0.01, 0.05, 0.6
"""Share by which the loss ends above its lowest; how far below its best a score then is; what it had gained, or has.
Chosen: a tenth is no scatter of a fixed set."""

AT_ACCURACY = Outcome(
    "eval_loss_above_its_accuracy",
    """The evaluation loss is twice what training had, and more, when it was as accurate as evaluation is.

    Not this when: training is more accurate than evaluation by then, and may know its rows by heart.""",
    background=0.003,
)
ALONE = Outcome(
    "eval_score_apart_alone",
    """A score of evaluation is far from that of training, while the losses of both agree.

    Not this when: the losses are apart too; the scores differ by no more than few rows do.""",
    background=0.004,
    follows=("eval_metric_constant", "one_answer_for_all"),
)
AGAINST = Outcome(
    "eval_score_falls_with_loss",
    """A score of evaluation falls while the loss of the same evaluation falls too.

    Not this when: the loss rises; the score scatters; the score is that of one of several classes.""",
    background=0.004,
)
HOLDS = Outcome(
    "eval_score_outlives_loss",
    """The evaluation loss ends far above its lowest, while a score of the same evaluation is at its best.

    Not this when: the score falls as well, or never rose; the loss rises by little.""",
    background=0.08,
    as_chosen=True,  # so do most sound classifiers that are trained to the end
)


@question(AT_ACCURACY, ALONE, AGAINST, HOLDS, not_for=("grpo", "ppo", "rl", "boosting"), whole_run=True)
def eval_loss_and_score(run: Run) -> Answers:
    """Compare them with those of training, then the evaluation loss with the first score at the same steps."""
    judges = {AT_ACCURACY.id: _at_accuracy, ALONE.id: _alone, AGAINST.id: _against, HOLDS.id: _holds}
    return first_seen({outcome: partial(judge, run) for outcome, judge in judges.items()})


def _at_accuracy(run: Run) -> Evidence | None:
    seen = loss_at_accuracy(run)
    if seen is None:
        raise CannotTell("losses and accuracies of training and evaluation do not stand beside each other often enough")
    if seen.times < TIMES or seen.least < ALWAYS:
        return None
    return Evidence(
        f"the evaluation loss is {figure(seen.loss)} at an accuracy of {figure(seen.accuracy)}, {figure(seen.times)} "
        f"times that of training when it was as accurate (medians of {seen.count} evaluations)",
        steps=(seen.step,),
        values={"times": seen.times, "least": seen.least, "loss": seen.loss, "accuracy": seen.accuracy},
    )


def _alone(run: Run) -> Evidence | None:
    pair = next((one for one in score_pairs(run) if len(one) >= LEAST), None)
    if pair is None or "eval_loss" not in run or "loss" not in run:
        raise CannotTell(f"no score and loss are logged both for training and at {LEAST} evaluations")
    both = compared(run, LEAST)
    if not min(float(both.train.min()), float(both.evaluation.min())) > 0:
        raise CannotTell("a loss is not above zero, so there is no ratio to judge")
    quotient, gap = median(both.evaluation[both.later] / both.train[both.later]), median(pair.gap[pair.later])
    apart = float(np.abs(pair.gap[pair.later]).min()) > max(APART, SIGMAS * pair.noise)
    if not 1 / ALIKE <= quotient <= ALIKE or not apart:
        return None
    return Evidence(
        f"{pair.evaluated} is {figure(median(pair.evaluation[pair.later]))} and {pair.trained} "
        f"{figure(median(pair.train[pair.later]))}, while the losses are {figure(both.eval_level)} and "
        f"{figure(both.train_level)} (medians of the later half of {len(pair)} evaluations)",
        steps=(float(pair.steps[0]),),
        values={"gap": gap, "quotient": quotient},
    )


def _beside(run: Run) -> tuple[Series, Series]:
    """Return the evaluation loss and the first score of evaluation where both stand."""
    loss = evaluation_losses(run)[0].finite
    beside = next((one for one in evaluation_scores(run) if len(np.intersect1d(one.step, loss.step)) >= LEAST), None)
    if beside is None:
        raise CannotTell(f"no score stands beside {LEAST} evaluation losses")
    step, ours, theirs = np.intersect1d(loss.step, beside.step, return_indices=True)
    if float(loss.value[ours].min()) <= 0:
        raise CannotTell("an evaluation loss is not above zero, so there are no shares of it")
    return Series(loss.name, step, loss.value[ours]), Series(beside.name, step, beside.value[theirs])


def _against(run: Run) -> Evidence | None:
    losses, scores = _beside(run)
    smooth = median_of_three(scores.value)
    best = int(np.argmax(smooth))
    lost, later = (float(smooth[best]) - median(scores.value[since:]) for since in (-3, len(scores) // 2))
    before, after = float(losses.value[: best + 1].min()), median(losses.value[-3:])
    if lost < max(LOST, SIGMAS * noise_on_slope(scores.value)) or later < AT_HALF * lost or best > len(scores) // 2:
        return None
    begun = start_level(run["loss"].finite.value) if "loss" in run and len(run["loss"].finite) else before
    if after > (1 - FALLEN) * before or before > EXPLODED * begun:
        return None
    return _evidence(run, losses, scores, best)


def _holds(run: Run) -> Evidence | None:
    losses, scores = _beside(run)
    smooth = median_of_three(losses.value)
    lowest = int(np.argmin(smooth))
    risen = median(losses.value[-3:]) - float(smooth[lowest])
    if risen < max(RISEN * float(smooth[lowest]), SIGMAS * noise_on_slope(losses.value)):
        return None
    best, end = float(median_of_three(scores.value).max()), median(scores.value[-3:])
    if end < max(best - HELD, float(scores.value[lowest]), min(GOOD, float(scores.value[0]) + GAINED)):
        return None
    return _evidence(run, losses, scores, lowest)


def _evidence(run: Run, losses: Series, scores: Series, at: int) -> Evidence:
    loss, score, ends = losses.value[at], scores.value[at], [median(one.value[-3:]) for one in (losses, scores)]
    return Evidence(
        f"from {run.step_name} {figure(float(scores.step[at]))} on the evaluation loss goes from {figure(float(loss))} "
        f"to {figure(ends[0])}, and {scores.name} from {figure(float(score))} to {figure(ends[1])}",
        steps=(float(scores.step[at]),),
        values={"loss_before": float(loss), "loss_after": ends[0], "score_then": float(score), "score": ends[1]},
    )
