"""Does the loss agree with the accuracy of the same answers?"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, answer_of
from mldebug_mcp.checks.curve import aligned, end_level, start_level
from mldebug_mcp.checks.evaluation import as_share, as_shares
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Run, Series

# A loss beside an accuracy of the same answers, and the highest loss that a calibrated model so often right has.
#
# With accuracy a over C classes a calibrated model's cross-entropy is at most H(a) + (1 - a) ln(C - 1), reached where
# its mistakes are spread evenly.


PAIRS = (("eval_loss", "eval_accuracy"), ("loss", "accuracy"))
LOSS_BESIDE_ACCURACY_LEAST = 4
"""Records of both without which they are not compared. Chosen: by hand."""
LEAST_SHARE = 1.1
"""Times the loss of a calibrated model with the same accuracy: far above it from here on. Chosen: by hand."""
LEAST_GAP = 0.05
"""... and this much more, in nats. Chosen: near an accuracy of 1 a tenth of the loss is nothing."""
RIGHT = 0.98
"""Accuracy of answers that are as good as all right. Chosen: such losses come within 0.01 of the floor."""
AT_REST = 0.02
"""Share of its level by which a loss at rest moves. Chosen: by hand."""
WHOLE = 0.05
"""How far a number of classes worked out from a loss is from a whole one. Chosen: such losses come within 0.01 of the
floor."""
LEAST_ACCURACY = 0.5
KNOWS = 0.75
"""Accuracy at the first evaluation of a model that was trained before. Chosen: by hand."""
FELL = 1.25
"""First loss of such a model as a multiple of the last. Chosen: by hand."""
GUESSES = 1.25
"""Times the loss of a calibrated model as accurate as at first. Chosen: above it first answers are right and far from
sure, as those of a contrastive model, and no guesses of a classifier."""
MOST_CLASSES = 1000
"""Classes up to which their number is read from the first loss. Chosen: ImageNet's, which few classifiers exceed."""


@dataclass(frozen=True, slots=True)
class LossBesideAccuracy:
    """A loss and an accuracy on the same data.

    Args:
        loss, accuracy: Their names.
        first: The first step at which both stand.
        level: The loss wherever both stand, shape (n,).
        shares: The accuracy there, as a share, shape (n,).
        end: Where the loss has come to.
        share: Where the accuracy has come to, as a share.
        classes: How many there are; 0 where nothing tells.
        counted: Words for the number of classes, if it is not the configured one.
    """

    loss: str
    accuracy: str
    first: float
    level: Floats
    shares: Floats
    end: float
    share: float
    classes: int
    counted: str

    @property
    def level_known(self) -> bool:
        """Whether the accuracy and the number of classes bound the loss."""
        return LEAST_ACCURACY <= self.share <= 1 and self.classes >= 2

    @property
    def calibrated(self) -> float:
        """The highest loss of a calibrated model of this accuracy."""
        return calibrated_loss(self.share, self.classes)

    @property
    def far_above_calibrated(self) -> bool:
        """Whether the loss is far above that of any calibrated model of this accuracy."""
        return self.level_known and self.end >= max(LEAST_SHARE * self.calibrated, self.calibrated + LEAST_GAP)


def losses_beside_accuracies(run: Run) -> list[LossBesideAccuracy]:
    """Return the losses and accuracies on the same data that stand together often enough, those of evaluation first."""
    pairs = [(run[of_loss].finite, run[other].finite) for of_loss, other in PAIRS if of_loss in run and other in run]
    compared = (_compared(run, loss, accuracy) for loss, accuracy in pairs)
    return [loss_beside_accuracy for loss_beside_accuracy in compared if loss_beside_accuracy is not None]


def _compared(run: Run, loss: Series, accuracy: Series) -> LossBesideAccuracy | None:
    if len(loss) < LOSS_BESIDE_ACCURACY_LEAST or len(accuracy) < LOSS_BESIDE_ACCURACY_LEAST:
        return None
    _, right, level = aligned(accuracy, loss)
    right = as_shares(right)
    if len(level) < LOSS_BESIDE_ACCURACY_LEAST:
        return None
    share, end = end_level(right), end_level(level)
    classes = _classes(run, knows=float(right[0]) > KNOWS and float(level[0]) < FELL * end)
    configured = run.setting("num_labels") == classes
    if not configured:
        classes = _at_least(classes, _classes_at_floor(level, right))
    counted = "" if configured else ", estimated from the losses,"
    return LossBesideAccuracy(loss.name, accuracy.name, float(loss.step[0]), level, right, end, share, classes, counted)


def _classes_at_floor(level: Floats, right: Floats) -> float:
    """Return of how many classes a loss at rest is that of right answers in scores between 0 and 1, not rounded.

    That is ln(e + C - 1) - accuracy; 0 where the loss does not rest or answers are wrong.
    """
    later = level[len(level) // 2 :]
    end = end_level(level)
    if float(right[len(right) // 2 :].min()) < RIGHT or float(np.ptp(later)) > AT_REST * end:
        return 0.0
    return math.exp(min(end + end_level(right), math.log(MOST_CLASSES))) - math.e + 1


def _at_least(classes: int, at_floor: float) -> int:
    """Return the number of classes from the first loss and from the floor; 0 where neither tells.

    The first loss may be that of a model that has learnt already, and then counts too few. The floor alone tells only
    by a whole number.
    """
    nearest = round(at_floor)
    if classes:
        return nearest if classes < nearest <= math.ceil(UNCOUNTED * classes) else classes
    return nearest if nearest >= 2 and abs(at_floor - nearest) <= WHOLE else 0


def calibrated_loss(share: float, classes: int) -> float:
    """Return the highest cross-entropy of a calibrated model that is right so often."""
    wrong = 1 - share
    return -sum(value * math.log(value) for value in (share, wrong) if value > 0) + wrong * math.log(
        max(classes - 1, 1)
    )


def _classes(run: Run, *, knows: bool) -> int:
    """Return the number of classes: configured, or where a guess has the first loss; 0 where neither tells.

    A model that knows its task from the first evaluation on did not begin by guessing.
    """
    configured = run.setting("num_labels")
    if configured is not None and configured >= 2:
        return int(configured)
    if knows:
        return 0
    first: Series = run["loss"].finite
    # The first step teaches much already, and so does a first epoch: what was before may be more, and is no less.
    means = run.step_name == "epoch"
    start = max(float(first.value[0]), 0.0 if means else start_level(first.value[: max(3, len(first) // 20)]))
    count = round(math.exp(min(start, math.log(2 * MOST_CLASSES))))
    near = np.abs(math.log(max(count, 2)) - start) < 0.05 * max(start, 1e-9)
    return count if 2 <= count <= MOST_CLASSES and near and _guesses(run, start, count) else 0


def _guesses(run: Run, start: float, classes: int) -> bool:
    """Say whether the training accuracy at the first loss, if any, is that of a model that guesses."""
    right = aligned(run["accuracy"].finite, run["loss"].finite)[1] if "accuracy" in run else np.empty(0)
    return not len(right) or start <= GUESSES * calibrated_loss(as_share(float(right[0])), classes)


# The loss beside what the accuracy of the same answers allows.


STILL = 0.05
"""A loss above its lowest by more than this share rises. Chosen: it is then grown sure, as in overfitting."""
SOLVED = 0.9
"""Accuracy from which on smoothing of labels would show. Chosen: by hand."""
SMOOTHING = 0.2
"""What labels are smoothed by. Chosen: most recipes smooth by 0.1."""
BELOW = 0.03
"""Nats below the floor. Fitted: benchmarks/faults, where softmaxes before the loss lie between -0.01 and 0.1 from
it."""
ABOVE = 0.06
"""Nats above the floor. Fitted: benchmarks/faults, where softmaxes before the loss lie between -0.01 and 0.1 from
it."""
MOST = 0.7
"""Of the later half of the records, so many keep to the floor. Chosen: they rise and fall with the accuracy."""
CLEAR = 1.15
"""Times the loss of a calibrated model. Chosen: by hand."""
UNCOUNTED = 1.2
"""Times the classes that the first loss tells. Chosen: it may have fallen."""
LOSS_BY_ACCURACY_LEAST = 4
"""Records with both. Chosen: the later half is two."""
MIN_SHARE_OF_COST = 0.05
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
    falls = end_level(found.level[: -max(1, len(found.level) // 4)]) - found.end > LEAST_GAP * found.end
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
    answers = [answer_of(partial(judge, loss_beside_accuracy)) for loss_beside_accuracy in found]
    judged = [answer for answer in answers if isinstance(answer, Evidence)]
    unsure = [answer for answer in answers if isinstance(answer, CannotTell)]
    if len(unsure) == len(answers):
        raise unsure[0]
    return judged[0] if judged else None


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
        raise CannotTell("the number of classes is not configured")
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
    pairs = [(run[of_loss].finite, run[other].finite) for of_loss, other in PAIRS if of_loss in run and other in run]
    beside = [(loss.name, *aligned(accuracy, loss)) for loss, accuracy in pairs]
    judged = [joined for joined in beside if len(joined[1]) >= LOSS_BY_ACCURACY_LEAST]
    if not judged:
        raise CannotTell(f"no loss and accuracy of the same answers stand together at {LOSS_BY_ACCURACY_LEAST} steps")
    for name, steps, accuracy, loss in judged:
        later = slice(len(loss) // 2, None)
        right, level = as_share(median(accuracy[later])), median(loss[later])
        least = (1 - right) * math.log(2)
        if 1 - right >= WRONG and 0 < level < MIN_SHARE_OF_COST * least:
            return Evidence(
                f"{name} is {figure(level)} and the accuracy {figure(right)} in the later half of {len(loss)} records; "
                f"a mean cross-entropy with so many wrong answers is at least {figure(least)}",
                steps=(float(steps[0]),),
                values={"loss": level, "accuracy": right, "least": least},
            )
    return None
