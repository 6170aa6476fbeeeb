"""The loss beside what the accuracy of the same answers allows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.loss_beside_accuracy import (
    LEAST_GAP,
    PAIRS,
    LossBesideAccuracy,
    losses_beside_accuracies,
)
from mldebug_mcp.measure.quality import as_share
from mldebug_mcp.measure.statistics import aligned, median
from mldebug_mcp.measure.statistics import end_level as level_at_end
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.symptoms.telling import said_by
from mldebug_mcp.text import figure

STILL = 0.05
"""A loss above its lowest by more than this share rises. Chosen: it is then grown sure, as in overfitting."""
SOLVED, SMOOTHING = 0.9, 0.2
"""Accuracy from which on smoothing of labels by so much would show. Chosen: most recipes smooth by 0.1."""
BELOW, ABOVE = 0.03, 0.06
"""Nats off the floor. Fitted: benchmarks/faults, where softmaxes before the loss lie between -0.01 and 0.1 from it."""
MOST = 0.7
"""Of the later half of the records, so many keep to the floor. Chosen: they rise and fall with the accuracy."""
CLEAR, UNCOUNTED = 1.15, 1.2
"""Times the loss of a calibrated model, and times the classes that the first loss tells. Chosen: it may have fallen."""
LEAST = 4
"""Records with both. Chosen: the later half is two."""
SHARE = 0.05
"""Of what wrong answers cost at least. Chosen: a focal loss (alpha 0.25, gamma 2) leaves a 16th."""
WRONG = 0.3
"""Share of wrong answers. Chosen: a few rows that the loss leaves out would do."""
SMOOTHED_BY = ("label_smoothing", "label_smoothing_factor", "smoothing")


def loss_above_accuracy(run: Run) -> Evidence | None:
    """The loss is higher than a calibrated classifier of this accuracy can have, H(a) + (1 - a) ln(C - 1), and rests.

    Not this when: it still falls; it rises (overfitting); labels are smoothed, by the settings or possibly.
    """
    if any(run.setting(name) for name in SMOOTHED_BY):
        raise CannotTell("label smoothing keeps the loss up")
    return _first_of(run, _above)


def _above(found: LossBesideAccuracy) -> Evidence | None:
    if not found.level_known:
        return None
    falls = level_at_end(found.level[: -max(1, len(found.level) // 4)]) - found.end > LEAST_GAP * found.end
    rises = found.end > (1 + STILL) * float(found.level.min())
    if falls or rises or not found.far_above_calibrated:
        return None
    if found.share >= SOLVED and found.end - found.calibrated <= (smoothed := _smoothed(found.classes)):
        raise CannotTell(
            f"{found.loss} is {figure(found.end)} where {found.accuracy} is {figure(found.share)}, no more than "
            f"{figure(smoothed)} above that of a calibrated model, and label smoothing may leave as much"
        )
    return Evidence(
        f"{found.loss} is {figure(found.end)} where {found.accuracy} is {figure(found.share)}: a calibrated model over "
        f"{found.classes} classes{found.counted} that is right as often has at most {figure(found.calibrated)}",
        steps=(found.first,),
        values={
            "loss": found.end,
            "accuracy": found.share,
            "calibrated_at_most": found.calibrated,
            "classes": float(found.classes),
        },
    )


def _first_of(run: Run, judge: Callable[[LossBesideAccuracy], Evidence | None]) -> Evidence | None:
    """Return what is seen of the evaluation, else of training: a loss may be wrong in one of them alone."""
    found = losses_beside_accuracies(run)
    if not found:
        raise CannotTell("a loss and an accuracy on the same data do not stand together at 4 steps")
    answers = [said_by(partial(judge, one)) for one in found]
    seen = [one for one in answers if isinstance(one, Evidence)]
    unsure = [one for one in answers if isinstance(one, CannotTell)]
    if len(unsure) == len(answers):
        raise unsure[0]
    return seen[0] if seen else None


def _smoothed(classes: int) -> float:
    """Return the least cross-entropy against labels that are smoothed as far as `SMOOTHING`."""
    other = SMOOTHING / classes
    right = 1 - other * (classes - 1)
    return -right * math.log(right) - (classes - 1) * other * math.log(other)


def loss_at_softmax_floor(run: Run) -> Evidence | None:
    """The loss is that of an answer as often right, given in scores that lie between 0 and 1: ln(e + C - 1) - accuracy.

    Not this when: a calibrated model of that accuracy has much the same loss; the number of classes is not known.
    """
    return _first_of(run, _at_floor)


def _at_floor(found: LossBesideAccuracy) -> Evidence | None:
    if found.classes < 2:
        raise CannotTell("the number of classes is neither configured nor told by the first loss")
    low = math.log(math.e + found.classes - 1) - found.share
    high = math.log(math.e + found.classes * (UNCOUNTED if found.counted else 1.0) - 1) - found.share
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


def loss_below_accuracy(run: Run) -> Evidence | None:
    """A mean cross-entropy is at least (1 - accuracy) ln 2, for a wrong answer has half of the probability at most.

    The loss is far below. Not this when: few answers are wrong; the loss is merely a focal one.
    """
    pairs = [(run[one].finite, run[other].finite) for one, other in PAIRS if one in run and other in run]
    beside = [(loss.name, *aligned(accuracy, loss)) for loss, accuracy in pairs]
    judged = [one for one in beside if len(one[1]) >= LEAST]
    if not judged:
        raise CannotTell(f"no loss and accuracy of the same answers stand together at {LEAST} steps")
    for name, steps, accuracy, loss in judged:
        later = slice(len(loss) // 2, None)
        right, level = as_share(median(accuracy[later])), median(loss[later])
        least = (1 - right) * math.log(2)
        if 1 - right >= WRONG and 0 < level < SHARE * least:
            return Evidence(
                f"{name} is {figure(level)} and the accuracy {figure(right)} in the later half of {len(loss)} records; "
                f"a mean cross-entropy with so many wrong answers is at least {figure(least)}",
                steps=(float(steps[0]),),
                values={"loss": level, "accuracy": right, "least": least},
            )
    return None
