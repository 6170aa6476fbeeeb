"""Loss far above what the accuracy allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.quality import as_share, as_shares
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import aligned, end_level, start_level
from mldebug_mcp.text import figure

PAIRS = (("eval_loss", "eval_accuracy"), ("loss", "accuracy"))
LEAST_SHARE = 1.1
"""The loss stands this many times above that of a calibrated model with the same accuracy."""
LEAST_GAP = 0.05
LEAST_ACCURACY = 0.5
STILL = 0.05
"""An evaluation loss that has risen from its lowest value by more than this share suggests overconfidence."""
KNOWS, FELL = 0.75, 1.25
"""Accuracy at the first evaluation, and the most that the loss falls after it, of a model that was trained before."""
GUESSES = 1.25
"""Times the loss of a calibrated model as accurate as at first: above it the first loss is none of a classifier that
begins to learn, but of answers that are right and far from sure, as those of a contrastive model. Chosen by hand."""
SOLVED = 0.9
"""An accuracy from which on a smoothed loss stands out against a calibrated one: below it mistakes cost as much."""
SMOOTHING = 0.2
"""Label smoothing takes as much of a label at most. Most recipes take 0.1, which few logs tell."""
MOST_CLASSES = 1000
"""Of those that the number is guessed for; ln of it bounds the loss of a fresh classifier."""


@symptom(
    needs=("loss",),
    points=6,
    not_for=("grpo", "ppo", "rl", "preference", "diffusion"),
    background=0.02,
    follows=("loss_falls_back", "train_lags_eval", "loss_at_softmax_floor"),
)
def loss_above_accuracy(run: Run) -> Evidence | None:
    """The loss is higher than a calibrated classifier of this accuracy can have, and has stopped falling.

    With accuracy a over C classes a calibrated model's cross-entropy is at most H(a) + (1 - a) ln(C - 1), reached where
    its mistakes are spread evenly.

    Not this when: the loss still falls; it rises on the evaluation set (overconfidence, as in overfitting); label
    smoothing or distillation is configured. Unknown where most is right and it is no higher than label smoothing would
    keep it. C is the configured number, else that whose logarithm the first loss is. The margins were chosen by hand.
    """
    if any(run.setting(name) for name in ("label_smoothing", "label_smoothing_factor", "smoothing")):
        raise CannotTell("label smoothing keeps the loss up")
    found = judged(run)
    if not found.level_known:
        return None
    most = found.calibrated
    falls = end_level(found.level[: -max(1, len(found.level) // 4)]) - found.end > LEAST_GAP * found.end
    rises = found.end > (1 + STILL) * float(found.level.min())
    if falls or rises or not found.far_above_calibrated:
        return None
    if found.share >= SOLVED and found.end - most <= (smoothed := _smoothed(found.classes)):
        raise CannotTell(
            f"{found.loss} is {figure(found.end)} where {found.accuracy} is {figure(found.share)}, no more than "
            f"{figure(smoothed)} above that of a calibrated model, and label smoothing may leave as much"
        )
    return Evidence(
        f"{found.loss} is {figure(found.end)} where {found.accuracy} is {figure(found.share)}: a calibrated model over "
        f"{found.classes} classes{found.counted} that is right as often has at most {figure(most)}",
        steps=(found.first,),
        values={
            "loss": found.end,
            "accuracy": found.share,
            "calibrated_at_most": most,
            "classes": float(found.classes),
        },
    )


@dataclass(frozen=True, slots=True)
class Judged:
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
        return LEAST_ACCURACY <= self.share < 1 and self.classes >= 2

    @property
    def calibrated(self) -> float:
        """The highest loss of a calibrated model of this accuracy."""
        return _calibrated(self.share, self.classes)

    @property
    def far_above_calibrated(self) -> bool:
        """Whether the loss is far above that of any calibrated model of this accuracy."""
        return self.level_known and self.end >= max(LEAST_SHARE * self.calibrated, self.calibrated + LEAST_GAP)


def judged(run: Run) -> Judged:
    """Return the loss and the accuracy on the same data, that of evaluation if there is one.

    Raises CannotTell if they do not stand together often enough.
    """
    compared = [(run[one].finite, run[other].finite) for one, other in PAIRS if one in run and other in run]
    compared = [(loss, accuracy) for loss, accuracy in compared if len(loss) >= 4 and len(accuracy) >= 4]
    if not compared:
        raise CannotTell("not logged: a loss and an accuracy on the same data")
    loss, accuracy = compared[0]
    _, right, level = aligned(accuracy, loss)
    right = as_shares(right)
    if len(level) < 4:
        raise CannotTell("loss and accuracy were not logged at the same steps")
    share, end = end_level(right), end_level(level)
    classes = _classes(run, knows=float(right[0]) > KNOWS and float(level[0]) < FELL * end)
    counted = "" if run.setting("num_labels") == classes else ", as many as the first losses speak of,"
    return Judged(loss.name, accuracy.name, float(loss.step[0]), level, right, end, share, classes, counted)


def _smoothed(classes: int) -> float:
    """Return the least cross-entropy against labels that are smoothed as far as `SMOOTHING`."""
    other = SMOOTHING / classes
    right = 1 - other * (classes - 1)
    return -right * math.log(right) - (classes - 1) * other * math.log(other)


def _calibrated(share: float, classes: int) -> float:
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
    means = run.step_name == "epoch"  # of which the first holds much of the learning already
    start = float(first.value[0]) if means else start_level(first.value[: max(3, len(first) // 20)])
    count = round(math.exp(min(start, math.log(2 * MOST_CLASSES))))
    near = np.abs(math.log(max(count, 2)) - start) < 0.05 * max(start, 1e-9)
    return count if 2 <= count <= MOST_CLASSES and near and _guesses(run, start, count) else 0


def _guesses(run: Run, start: float, classes: int) -> bool:
    """Say whether the training accuracy beside the first loss, if there is one, is that of a model that guesses."""
    right = aligned(run["accuracy"].finite, run["loss"].finite)[1] if "accuracy" in run else np.empty(0)
    return not len(right) or start <= GUESSES * _calibrated(as_share(float(right[0])), classes)
