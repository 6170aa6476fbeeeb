"""Loss where a cross-entropy over scores between 0 and 1 comes to rest."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.loss_beside_accuracy import LossBesideAccuracy, loss_beside_accuracy
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

BELOW, ABOVE = 0.03, 0.06
"""How far off it may be: probabilities that are not quite 0 and 1 leave a little more. Chosen by hand, on
benchmarks/faults: with the number of classes known, softmaxes before the loss lie between -0.01 and 0.1 from it."""
MOST = 0.7
"""Of the later half of the records, so many must keep to it: they rise and fall with the accuracy. Chosen by hand."""
CLEAR = 1.15
"""Times the loss of a calibrated model, which comes near where half is wrong. Chosen by hand."""
UNCOUNTED = 1.2
"""Times the number of classes that the first loss speaks of: a mean over the first epoch holds some learning."""


@symptom(
    needs=("loss",),
    points=6,
    not_for=("grpo", "ppo", "rl", "preference", "diffusion", "boosting"),
    background=0.003,
    follows=("loss_falls_back", "loss_nonfinite"),
)
def loss_at_softmax_floor(run: Run) -> Evidence | None:
    """The loss is just that of an answer as often right, given in scores that lie between 0 and 1.

    Scores of 1 for one class and 0 for the others cost ln(e + C - 1) - 1 where they are right and ln(e + C - 1) where
    they are wrong, so that a model with accuracy a comes to ln(e + C - 1) - a, and no loss is ever below
    ln(e + C - 1) - 1. Not this when: a calibrated model of that accuracy has much the same loss. C is the configured
    number of classes, else that whose logarithm the first loss is.
    """
    found = loss_beside_accuracy(run)
    if found is None:
        raise CannotTell("a loss and an accuracy on the same data do not stand together at 4 steps")
    if found.classes < 2:
        raise CannotTell("the number of classes is neither configured nor told by the first loss")
    low = math.log(math.e + found.classes - 1) - found.share
    high = math.log(math.e + found.classes * _margin(found) - 1) - found.share
    if not found.far_above_calibrated or found.end < CLEAR * found.calibrated:
        return None
    off = (found.level + found.shares - found.share)[len(found.level) // 2 :]
    holds = float(np.mean((low - BELOW <= off) & (off <= high + ABOVE)))
    if not low - BELOW <= found.end <= high + ABOVE or holds < MOST:
        return None
    return Evidence(
        f"{found.loss} is {figure(found.end)} where {found.accuracy} is {figure(found.share)}: scores between 0 and 1 "
        f"over {found.classes} classes{found.counted} have {figure(low)} at that accuracy, ln(e + "
        f"{found.classes - 1}) - {figure(found.share)}",
        steps=(found.first,),
        values={"loss": found.end, "accuracy": found.share, "floor": low, "classes": float(found.classes)},
    )


def _margin(found: LossBesideAccuracy) -> float:
    """Return how many times more classes there may be than were found."""
    return UNCOUNTED if found.counted else 1.0
