"""No progress from the start."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.scale import LANGUAGE_MODELS, comes_trained, uniform_loss
from mldebug_mcp.measure.statistics import blocks, edge_width, end_level, median, noise, start_level
from mldebug_mcp.symptoms.answers import has_settled, nothing_right
from mldebug_mcp.symptoms.beginning import is_late
from mldebug_mcp.symptoms.evaluation import evaluation_stands
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.quality import ACCURACIES
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.slow import creeps_below
from mldebug_mcp.text import figure

LEAST_PROGRESS = 0.03
"""A run that learns lowers its loss by more than this share of the first level within the log."""
PROGRESS_OF_TRAINED = 0.015
"""... and a language model that comes trained, in tuning, by this. Chosen by hand."""
SEEMS = 2.0
"""Standard errors from which on progress is likely: then a log is no proof of the contrary."""
FIRST = 5
"""Records that stand for the very beginning of a long log."""
LEAST_POINTS = 12
LONG = 100
MIDDLE = 0.2
MOST_NOISE, MOST_NOISE_LONG = 0.12, 0.3
"""Where three standard errors of the progress are more than this share, it could hide in the noise.

In a log of a hundred records a run that learns makes more progress than that, so more noise is borne.
"""
NEAR_CHANCE = 0.02
"""Within this share of ln(classes) the model guesses uniformly."""
SETTLING = 1.5
"""The loss of a new classifier may begin this many times above ln(classes) and fall to it without any learning."""
SETTLING_GUESSED = 1.15
"""... and this many times if the number of classes is guessed: a loss that falls from far may pass by. Both chosen by
hand."""
POOR_PSNR = 15.0
"""Decibels that a picture of one colour has, or less: a model that begins and stays there has learnt nothing, however
noisy its loss. Chosen by hand: grey levels of photographs spread by a fifth to a third of their range."""
FROM_SCRATCH, STUCK = 0.1, 0.01
"""A new language model learns the frequencies of tokens at once, which is more than this share of its first loss: if it
does not, and moves by no more than a hundredth in the later half, it is stuck. Chosen by hand."""
KNOWS = 0.75
"""An accuracy from which on, at the first evaluation, a flat loss may be that of a model that is done."""
LEAST_EVALUATIONS = 4
USUAL_CLASSES = (2, 3, 4, 5, 10, 20, 100, 1000)


@symptom(
    needs=("loss",),
    sources=("axolotl_stability", "karpathy_recipe"),
    points=6,
    settled=True,
    not_for=("grpo", "ppo", "rl"),
    background=0.006,
    follows=("dpo_margin_flat", "loss_at_clip"),
    instead=NO_PROGRESS,
)
def loss_plateau(run: Run) -> Evidence | None:
    """The training loss makes no progress from the start of the log to its end, or none beyond a uniform guess.

    In pretraining from scratch a tenth of the loss is no progress, where it stands still after that.

    Not this when: it fell before the log began (a resumed run); it rises (`loss_divergence`); the first evaluation is
    right nearly always; it is exactly constant (`loss_constant`); evaluation creeps below the loss of a guess
    (`loss_slow`); the evaluation loss falls, where the training loss is too noisy to show it. The share of progress,
    3 %, was chosen so that slow pretraining logs of a few hundred records pass. Where the noise could hide such
    progress, an evaluation loss that does not move decides; without one it cannot be told, unless a PSNR stays that of
    pictures of one colour.
    """
    loss = run["loss"].finite
    cut = blocks(loss.value, 10)
    start, best = _first_level(loss.value), float(cut.level[1:].min(initial=np.inf))
    if start <= 0 or math.isinf(best) or best > start * 1.1 or float(np.ptp(loss.value)) <= 1e-9 * abs(start):
        return None
    gained = start - best
    error = math.hypot(cut.wobble, 1.25 * noise(loss.value) / math.sqrt(edge_width(len(loss))))
    chance = _chance(run, best)
    rises = end_level(loss.value) - start > max(LEAST_PROGRESS * start, 3 * error) and not evaluation_stands(run)
    if rises or (chance is not None and creeps_below(run, chance)):
        return None
    if gained > max(LEAST_PROGRESS * start, 3 * error):
        # A fall that ends at the loss of a guess is not progress.
        end, above = end_level(loss.value), SETTLING if uniform_loss(run) is not None else SETTLING_GUESSED
        at_chance = chance is not None and start <= above * chance and abs(end - chance) <= NEAR_CHANCE * chance
        if not at_chance and not _stuck_from_scratch(run, loss, start, gained):
            if nothing_right(run) is not None and has_settled(loss):
                raise CannotTell("the loss falls and comes to rest where no answer is right (`loss_at_chance`)")
            return None
    elif chance is None:
        doubt = 3 * error / start
        if doubt > LEAST_PROGRESS and _evaluation_falls(run):
            return None
        _refuse_to_judge(run, loss, doubt)
        _refuse_likely_progress(run, start, gained, error)
        if run.kind == "pretraining" and comes_trained(run, start):
            raise CannotTell(f"the loss begins at {figure(start)}, that of a model that comes trained: it may be done")
        if _right_from_the_start(run):
            raise CannotTell("the first evaluations are right already: there may be nothing left to learn")
    beside = f"; a uniform guess has {figure(chance)} = ln({math.exp(chance):.0f})" if chance is not None else ""
    return Evidence(
        f"the level of the loss is {figure(start)} at the start and {figure(best)} at its lowest after that, up to "
        f"{run.step_name} {figure(float(loss.step[-1]))}{beside}",
        steps=(float(loss.step[0]),),
        values={
            "start": start,
            "best": best,
            "gained": gained,
            "noise": error,
            **({"uniform_guess": chance} if chance is not None else {}),
        },
    )


def _first_level(values: Floats) -> float:
    """Return the level of the first twentieth, or of the first records where a long log falls clearly from there.

    A small model is done within the first twentieth of a log of thousands of records.
    """
    level, first = start_level(values), median(values[:FIRST])
    if edge_width(len(values)) < 4 * FIRST:
        return level
    doubt = 3 * 1.25 * noise(values) / math.sqrt(FIRST)
    return first if first - level > max(LEAST_PROGRESS * abs(level), doubt) else level


def _least_progress(run: Run, start: float) -> float:
    """Return the share of the first level that is progress: little is left to learn for what comes trained."""
    return PROGRESS_OF_TRAINED if run.kind in LANGUAGE_MODELS and comes_trained(run, start) else LEAST_PROGRESS


def _refuse_likely_progress(run: Run, start: float, gained: float, error: float) -> None:
    """Raise CannotTell if there is progress in all likelihood, though less than what proves it."""
    if gained > max(_least_progress(run, start) * start, SEEMS * error):
        raise CannotTell(f"progress of {gained / start:.1%} is likely, but not beyond the noise")


def _refuse_to_judge(run: Run, loss: Series, doubt: float) -> None:
    """Raise CannotTell if a flat curve proves nothing: too noisy, too short, or from the middle of a run."""
    if _pictures_stay_poor(run):
        return
    if doubt > (MOST_NOISE_LONG if len(loss) >= LONG else MOST_NOISE) and not evaluation_stands(run):
        raise CannotTell(f"the noise could hide progress by {doubt:.0%}")
    if len(loss) < LEAST_POINTS:
        raise CannotTell(f"{len(loss)} records are flat; {LEAST_POINTS} are needed")
    if _begins_late(run):
        raise CannotTell(f"the log begins at step {figure(float(loss.step[0]))}: a fall before it would not show")


def _pictures_stay_poor(run: Run) -> bool:
    """Say whether a PSNR is logged that is poor throughout and does not get better from its first third to its last."""
    for name in run.series:
        value = run[name].finite.value
        third = len(value) // 3
        if "psnr" in name.lower() and third >= LEAST_EVALUATIONS and float(np.quantile(value, 0.9)) < POOR_PSNR:
            error = 1.25 * noise(value) * math.sqrt(2 / third)
            return median(value[-third:]) - median(value[:third]) < 3 * error
    return False


def _stuck_from_scratch(run: Run, loss: Series, start: float, gained: float) -> bool:
    """Say whether a new language model has learnt less than the frequencies of tokens, and no longer learns."""
    if run.kind != "pretraining" or comes_trained(run, start) or _begins_late(run) or len(loss) < LEAST_POINTS:
        return False
    later = blocks(loss.value[len(loss) // 2 :], 5).level
    return gained < FROM_SCRATCH * start and float(np.ptp(later)) <= STUCK * start


def _begins_late(run: Run) -> bool:
    return is_late(run, float(run["loss"].finite.step[0]), MIDDLE, 0)


def _right_from_the_start(run: Run) -> bool:
    """Say whether an accuracy is high at the first evaluation, as that of a model that knows its task."""
    logged = [run[name].finite.value for name in ACCURACIES if name in run]
    return any(len(one) > 0 and KNOWS <= float(one[0]) <= 1 for one in logged)


def _evaluation_falls(run: Run) -> bool:
    """Say whether the evaluation loss has fallen by as much as a run that learns lowers its loss."""
    evaluation = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    return len(evaluation) >= LEAST_EVALUATIONS and end_level(evaluation) < (1 - LEAST_PROGRESS) * evaluation[0]


def _chance(run: Run, best: float) -> float | None:
    """Return ln(classes) if the lowest level lies near it: the configured number, else a usual one, more narrowly."""
    configured = uniform_loss(run)
    if configured is not None:
        return configured if abs(best - configured) < NEAR_CHANCE * configured else None
    if run.kind in LANGUAGE_MODELS or _begins_late(run):
        return None  # a loss may come near the logarithm of a usual number by chance
    known = (math.log(number) for number in USUAL_CLASSES)
    return next((one for one in known if abs(best - one) < (NEAR_CHANCE if one < 0.7 else NEAR_CHANCE / 3) * one), None)
