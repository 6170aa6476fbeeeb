"""A loss beside an accuracy of the same answers, and the highest loss that a calibrated model so often right has.

With accuracy a over C classes a calibrated model's cross-entropy is at most H(a) + (1 - a) ln(C - 1), reached where its
mistakes are spread evenly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.shares import as_share, as_shares
from mldebug_mcp.measure.statistics import aligned, end_level, start_level

PAIRS = (("eval_loss", "eval_accuracy"), ("loss", "accuracy"))
LEAST = 4
"""Records of both without which they are not compared. Chosen: by hand."""
LEAST_SHARE = 1.1
"""Times the loss of a calibrated model with the same accuracy: far above it from here on. Chosen: by hand."""
LEAST_GAP = 0.05
"""... and this much more, in nats. Chosen: near an accuracy of 1 a tenth of the loss is nothing."""
RIGHT, AT_REST, WHOLE = 0.98, 0.02, 0.05
"""Accuracy of answers that are as good as all right, share of its level by which a loss at rest moves, and how far a
number of classes worked out from it is from a whole one. Chosen: such losses come within 0.01 of the floor."""
LEAST_ACCURACY = 0.5
KNOWS, FELL = 0.75, 1.25
"""Accuracy at the first evaluation, and first loss as a multiple of the last, of a model that was trained before.
Chosen: by hand."""
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
    pairs = [(run[one].finite, run[other].finite) for one, other in PAIRS if one in run and other in run]
    compared = (_compared(run, loss, accuracy) for loss, accuracy in pairs)
    return [one for one in compared if one is not None]


def _compared(run: Run, loss: Series, accuracy: Series) -> LossBesideAccuracy | None:
    if len(loss) < LEAST or len(accuracy) < LEAST:
        return None
    _, right, level = aligned(accuracy, loss)
    right = as_shares(right)
    if len(level) < LEAST:
        return None
    share, end = end_level(right), end_level(level)
    classes = _classes(run, knows=float(right[0]) > KNOWS and float(level[0]) < FELL * end)
    classes = classes or _of_the_floor(level, right)
    counted = "" if run.setting("num_labels") == classes else ", as many as the losses speak of,"
    return LossBesideAccuracy(loss.name, accuracy.name, float(loss.step[0]), level, right, end, share, classes, counted)


def _of_the_floor(level: Floats, right: Floats) -> int:
    """Return of how many classes a loss at rest is just that of sure and right answers in scores between 0 and 1.

    That is ln(e + C - 1) - 1; 0 where it does not rest, answers are wrong, or no whole number has that loss.
    """
    later = level[len(level) // 2 :]
    end = end_level(level)
    if float(right[len(right) // 2 :].min()) < RIGHT or float(np.ptp(later)) > AT_REST * end:
        return 0
    classes = math.exp(min(end + 1, math.log(MOST_CLASSES))) - math.e + 1
    return round(classes) if round(classes) >= 2 and abs(classes - round(classes)) <= WHOLE else 0


def calibrated_loss(share: float, classes: int) -> float:
    """Return the highest cross-entropy of a calibrated model that is right so often."""
    wrong = 1 - share
    return -sum(one * math.log(one) for one in (share, wrong) if one > 0) + wrong * math.log(max(classes - 1, 1))


def _classes(run: Run, *, knows: bool) -> int:
    """Return the number of classes: configured, or that of which a guess has the first loss; 0 where neither tells.

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
    """Say whether the training accuracy beside the first loss, if there is one, is that of a model that guesses."""
    right = aligned(run["accuracy"].finite, run["loss"].finite)[1] if "accuracy" in run else np.empty(0)
    return not len(right) or start <= GUESSES * calibrated_loss(as_share(float(right[0])), classes)
