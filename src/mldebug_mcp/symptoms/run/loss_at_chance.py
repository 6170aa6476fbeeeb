"""Loss ends at that of a uniform guess."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.scale import MAX_LN_VOCABULARY, uniform_loss
from mldebug_mcp.measure.statistics import end_level, median, start_level
from mldebug_mcp.symptoms.answers import has_settled, nothing_right
from mldebug_mcp.symptoms.beginning import PASSES, epoch_at
from mldebug_mcp.symptoms.forms import NO_PROGRESS
from mldebug_mcp.symptoms.levels.loss_scale_suspicious import loss_scale_suspicious
from mldebug_mcp.symptoms.quality import ACCURACIES, as_shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.slow import creeps_below
from mldebug_mcp.text import figure

NEAR = 0.03
"""Within this share of ln(n) the loss is that of a guess. Chosen by hand: unigram statistics of text lie far below."""

FROM_TWO = 0.2
"""Where the number of classes is not known, a loss at ln 2 must have begun within this share of it: one that falls from
far may come by. Chosen by hand."""
NEAR_BY_ACCURACY = 0.08
"""An accuracy of a few per cent is known to no more than that."""
LEAST_ACCURACY, MOST_ACCURACY = math.exp(-MAX_LN_VOCABULARY), 0.3
"""Accuracies that tell among how many it guesses: none has more classes than the largest vocabulary has tokens."""
KNOWS = 0.2
"""A model whose evaluation loss is this share below that of a guess does not guess, whatever dropout adds in
training."""
LEAST_ACCURACIES = 4
MOST_ABOVE = 1.5
"""Times its start: a loss that ends higher has risen. Chosen by hand."""
MOST_OF_GUESS = 3.0
"""Times the loss of a uniform guess: a loss above that is no guess but sure of what is wrong. Chosen by hand."""
BY_CHANCE = 0.05
"""So much more than a guess may be right on a small set. Chosen by hand."""
HALF = 0.02
"""So far from a half is the accuracy of a guess between two classes over some thousand rows."""
LEAST_RECORDS, STANDS = 10, 0.01
"""Fewer records tell only if each is the mean of an epoch and nearly all stand at the loss of a guess, or if the log
begins after some passes over the data and the loss stands still."""


@symptom(
    needs=("loss",),
    sources=("karpathy_recipe",),
    points=4,
    settled=True,
    not_for=("grpo", "ppo", "rl", "preference"),
    background=0.002,
    instead=NO_PROGRESS,
)
def loss_at_chance(run: Run) -> Evidence | None:
    """The training loss ends at ln(number of classes or tokens), that of a uniform guess, or within three times that.

    Or it falls and comes to rest while no answer of evaluation is ever right: it is that of a guess by frequency, as of
    a recogniser of speech that learns to say nothing.
    Not this when: the log ends after a few steps; the loss is not a cross-entropy, is summed (`loss_scale_suspicious`)
    or has risen to where it is (`loss_divergence`); evaluation is clearly better than a guess, or
    creeps below it all along (`loss_slow`). Unknown where neither
    the number of classes nor that of tokens is known, unless it stands at ln 2 or at -ln(accuracy), as only a uniform
    guess does, or near ln 2 while the accuracy keeps to a half.
    """
    loss = run["loss"].finite
    start, end, uniform = start_level(loss.value), end_level(loss.value), uniform_loss(run)
    wrong = nothing_right(run)
    if wrong is not None and has_settled(loss):
        return Evidence(
            f"loss is {figure(end)} at the end, {run.step_name} {figure(float(loss.step[-1]))}, and has hardly moved "
            f"for three quarters of the log; {wrong.name} shows no right answer in {len(wrong)} evaluations",
            steps=(float(wrong.step[0]),),
            values={"end": end},
        )
    near = NEAR
    worse = (
        uniform is not None
        and uniform < end < MOST_OF_GUESS * uniform
        and (end < start * (1 + NEAR) or (end < MOST_ABOVE * start and _guesses(run, uniform)))
    )
    if uniform is None:
        of_two = abs(end - math.log(2)) <= 0.01 and abs(start - math.log(2)) <= FROM_TWO * math.log(2)
        of_two = of_two or (_halves(run) and abs(start - end) <= STANDS * end)
        uniform = math.log(2) if of_two else _by_accuracy(run, end)
        near = NEAR_BY_ACCURACY
    of_epochs = run.step_name == "epoch" and bool(np.all(loss.step == np.floor(loss.step)))
    late = (epoch_at(run, float(loss.step[0])) or 0.0) > PASSES and float(np.ptp(loss.value)) <= STANDS * end
    if len(loss) < LEAST_RECORDS and not late and not (of_epochs and _stands(loss.value[1:], uniform)):
        raise CannotTell(f"fewer than {LEAST_RECORDS} records, which do not stand at the loss of a guess")
    if abs(end - uniform) > near * uniform and not (worse and loss_scale_suspicious(run) is None):
        return None
    if _evaluation_knows_more(run, uniform) or creeps_below(run, uniform):
        return None
    return Evidence(
        f"loss is {figure(end)} at the end, {run.step_name} {figure(float(loss.step[-1]))}; a uniform guess has "
        f"{figure(uniform)} = ln({math.exp(uniform):.0f})",
        steps=(float(loss.step[0]),),
        values={"end": end, "uniform_guess": uniform},
    )


def _halves(run: Run) -> bool:
    """Say whether the accuracy keeps to a half: that of a guess between two classes of equal size."""
    right = _accuracies(run)
    return len(right) >= LEAST_ACCURACIES and float(np.abs(as_shares(right) - 0.5).max()) <= HALF


def _accuracies(run: Run) -> Floats:
    """Return the accuracies that are logged, those of evaluation if there are enough of them."""
    found = [run[name].finite.value for name in ACCURACIES if name in run]
    return next((one for one in found if len(one) >= LEAST_ACCURACIES), np.empty(0))


def _guesses(run: Run, uniform: float) -> bool:
    """Say whether the accuracy stays that of a guess, however rough the loss."""
    right = _accuracies(run)
    guess = math.exp(-uniform)
    return len(right) >= LEAST_ACCURACIES and float(as_shares(right).max()) <= guess + BY_CHANCE * (1 - guess)


def _stands(loss: Floats, uniform: float) -> bool:
    return bool(np.all(np.abs(loss - uniform) <= STANDS * uniform))


def _evaluation_knows_more(run: Run, uniform: float) -> bool:
    """Say whether the last evaluation loss lies clearly below that of a guess: then the model does not guess."""
    evaluation = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    return len(evaluation) > 0 and float(evaluation[-1]) < (1 - KNOWS) * uniform


def _by_accuracy(run: Run, end: float) -> float:
    """Return the loss of a uniform guess that is right as often as the log says: it guesses 1 / accuracy classes.

    Of the whole numbers of classes that the accuracy allows, that whose guess is nearest to the loss is taken.
    """
    right = _accuracies(run)
    accuracy = median(as_shares(right)) if len(right) >= LEAST_ACCURACIES else 0.0
    if not LEAST_ACCURACY < accuracy <= MOST_ACCURACY:
        raise CannotTell("the number of classes or tokens is not known")
    fewest, most = (accuracy ** -(1 + sign * NEAR_BY_ACCURACY) for sign in (-1, 1))
    classes = min(max(math.exp(min(end, 20.0)), fewest), most)
    whole = [one for one in (math.floor(classes), round(classes), math.ceil(classes)) if fewest <= one <= most]
    return min((math.log(one) for one in whole), key=lambda one: abs(one - end), default=-math.log(accuracy))
