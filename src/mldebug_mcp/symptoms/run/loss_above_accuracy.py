"""Loss far above what the accuracy allows."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.loss_beside_accuracy import LEAST_GAP, loss_beside_accuracy
from mldebug_mcp.measure.statistics import end_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

STILL = 0.05
"""An evaluation loss that has risen from its lowest value by more than this share suggests overconfidence."""
SOLVED = 0.9
"""An accuracy from which on a smoothed loss stands out against a calibrated one: below it mistakes cost as much."""
SMOOTHING = 0.2
"""Label smoothing takes as much of a label at most. Most recipes take 0.1, which few logs tell."""


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
    found = loss_beside_accuracy(run)
    if found is None:
        raise CannotTell("a loss and an accuracy on the same data do not stand together at 4 steps")
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


def _smoothed(classes: int) -> float:
    """Return the least cross-entropy against labels that are smoothed as far as `SMOOTHING`."""
    other = SMOOTHING / classes
    right = 1 - other * (classes - 1)
    return -right * math.log(right) - (classes - 1) * other * math.log(other)
