"""Loss far above what the accuracy allows."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.quality import as_share
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
MOST_CLASSES = 1000
"""Of those that the number is guessed for; ln of it bounds the loss of a fresh classifier."""


@symptom(
    needs=("loss",),
    points=6,
    not_for=("grpo", "ppo", "rl", "preference", "diffusion"),
    background=0.02,
    follows=("loss_falls_back", "train_lags_eval"),
)
def loss_above_accuracy(run: Run) -> Evidence | None:
    """The loss is higher than a calibrated classifier of this accuracy can have, and has stopped falling.

    With accuracy a over C classes a calibrated model's cross-entropy is at most H(a) + (1 - a) ln(C - 1), reached where
    its mistakes are spread evenly.

    Not this when: the loss still falls; it rises on the evaluation set (overconfidence, as in overfitting); label
    smoothing or distillation is configured. C is the configured number, else that whose logarithm the first loss is.
    The margins were chosen by hand.
    """
    if any(run.setting(name) for name in ("label_smoothing", "label_smoothing_factor", "smoothing")):
        raise CannotTell("label smoothing keeps the loss up")
    compared = [(run[one].finite, run[other].finite) for one, other in PAIRS if one in run and other in run]
    compared = [(loss, accuracy) for loss, accuracy in compared if len(loss) >= 4 and len(accuracy) >= 4]
    if not compared:
        raise CannotTell("not logged: a loss and an accuracy on the same data")
    loss, accuracy = compared[0]
    _, right, level = aligned(accuracy, loss)
    if len(level) < 4:
        raise CannotTell("loss and accuracy were not logged at the same steps")
    share, end = as_share(end_level(right)), end_level(level)
    classes = _classes(run, knows=as_share(float(right[0])) > KNOWS and float(level[0]) < FELL * end)
    if not LEAST_ACCURACY <= share < 1 or classes < 2:
        return None
    most = _calibrated(share, classes)
    falls = end_level(level[: -max(1, len(level) // 4)]) - end > LEAST_GAP * end
    rises = end > (1 + STILL) * float(level.min())
    if falls or rises or end < max(LEAST_SHARE * most, most + LEAST_GAP):
        return None
    counted = "" if run.setting("num_labels") == classes else ", as many as the first losses speak of,"
    return Evidence(
        f"{loss.name} is {figure(end)} where {accuracy.name} is {figure(share)}: a calibrated model over {classes} "
        f"classes{counted} that is right as often has at most {figure(most)}",
        steps=(float(loss.step[0]),),
        values={"loss": end, "accuracy": share, "calibrated_at_most": most, "classes": float(classes)},
    )


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
