"""Whether the loss and the scores of evaluation go the same way."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.score_pairs import evaluation_scores
from mldebug_mcp.measure.statistics import median, median_of_three, noise_on_slope, start_level
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

LEAST = 6
FALLEN, LOST = 0.15, 0.08
"""Share of its first level that the loss has fallen by, and how much of the score is lost meanwhile."""
RISEN, HELD = 0.1, 0.01
"""Share by which the loss stands above its lowest, and how far below its best, at most, the score is then."""
GAINED, GOOD = 0.05, 0.6
"""A score that holds what it has learnt was gained by so much since the first evaluation, or is good."""
SIGMAS = 5.0
EXPLODED = 2.0
"""Times what training began with."""
AT_HALF = 0.5
"""Both must be lasting: over the later half most of the move is done. All numbers were chosen by hand."""

AGAINST = Outcome(
    "eval_score_falls_with_loss",
    """A score of evaluation falls while the loss of the same evaluation falls too.

    A model that gives the right answers more probability is seldom right less often. Not this when: the loss rises;
    the score scatters; the score is that of one of several classes.""",
    background=0.004,
)
HOLDS = Outcome(
    "eval_score_outlives_loss",
    """The evaluation loss ends far above its lowest, while a score of the same evaluation is at its best.

    Answers become surer than they should be, and no more of them are wrong. Not this when: the score falls as well, or
    never rose; the loss rises by little.""",
    background=0.08,
    as_chosen=True,  # so do most sound classifiers that are trained to the end
)


@question(AGAINST, HOLDS, not_for=("grpo", "ppo", "rl", "boosting"), whole_run=True)
def eval_loss_and_score(run: Run) -> Answers:
    """Compare the evaluation loss with the first score that is logged at the same steps."""
    loss = evaluation_losses(run)[0].finite
    beside = [one for one in evaluation_scores(run) if len(np.intersect1d(one.step, loss.step)) >= LEAST]
    if not beside:
        raise CannotTell(f"no score stands beside {LEAST} evaluation losses")
    step, ours, theirs = np.intersect1d(loss.step, beside[0].step, return_indices=True)
    losses, scores = loss.value[ours], beside[0].value[theirs]
    if float(losses.min()) <= 0:
        raise CannotTell("an evaluation loss is not above zero, so there are no shares of it")
    both = Series(beside[0].name, step, scores)
    for outcome, found in ((AGAINST.id, _against(run, losses, both)), (HOLDS.id, _holds(run, losses, both))):
        if found is not None:
            return {outcome: found}
    return {}


def _against(run: Run, losses: Floats, scores: Series) -> Evidence | None:
    smooth = median_of_three(scores.value)
    best = int(np.argmax(smooth))
    lost = float(smooth[best]) - median(scores.value[-3:])
    before, after = float(losses[: best + 1].min()), median(losses[-3:])
    later = float(smooth[best]) - median(scores.value[len(scores) // 2 :])
    if lost < max(LOST, SIGMAS * noise_on_slope(scores.value)) or later < AT_HALF * lost:
        return None
    if after > (1 - FALLEN) * before or best > len(scores) // 2 or before > EXPLODED * _start(run, before):
        return None
    return Evidence(
        f"{scores.name} goes from {figure(float(smooth[best]))} at {run.step_name} {figure(float(scores.step[best]))} "
        f"to {figure(median(scores.value[-3:]))}, while the evaluation loss goes from {figure(before)} to "
        f"{figure(after)}",
        steps=(float(scores.step[best]),),
        values={"lost": lost, "loss_before": before, "loss_after": after, "evaluations": float(len(scores))},
    )


def _start(run: Run, otherwise: float) -> float:
    """Return what the training loss was at first: what evaluation shows above that is what an explosion left."""
    return start_level(run["loss"].finite.value) if "loss" in run and len(run["loss"].finite) else otherwise


def _holds(run: Run, losses: Floats, scores: Series) -> Evidence | None:
    smooth = median_of_three(losses)
    lowest = int(np.argmin(smooth))
    risen = median(losses[-3:]) / float(smooth[lowest]) - 1
    if risen < max(RISEN, SIGMAS * noise_on_slope(losses) / float(smooth[lowest])):
        return None
    best, end = float(median_of_three(scores.value).max()), median(scores.value[-3:])
    if end < best - HELD or end < float(scores.value[lowest]):
        return None
    if end < min(GOOD, float(scores.value[0]) + GAINED):  # nothing was learnt that could be held
        return None
    return Evidence(
        f"the evaluation loss rises from {figure(float(smooth[lowest]))} at {run.step_name} "
        f"{figure(float(scores.step[lowest]))} to {figure(median(losses[-3:]))}, while {scores.name} goes from "
        f"{figure(float(scores.value[lowest]))} to {figure(end)}, {figure(best)} at its best",
        steps=(float(scores.step[lowest]),),
        values={"risen": risen, "score_then": float(scores.value[lowest]), "score": end},
    )
