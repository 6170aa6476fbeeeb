"""Loss below zero."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.scale import predicts_tokens, uniform_loss
from mldebug_mcp.measure.statistics import end_level, median, start_level
from mldebug_mcp.symptoms.quality import ACCURACIES
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

SHARE = 0.1
RUNAWAY = 20.0
"""Times its first size, and nats: a loss below zero beyond has no bound, though a decaying rate bends it."""
UNBENT = 0.4
"""Of the fall in the later half of the records: a curve that learns bends, one without a bound does not.

Half of a straight line is there, a quarter of an exponential or a power law (`loss_slow`).
"""
_OVERLAP = re.compile(r"dice|iou|jaccard", re.IGNORECASE)


@symptom(needs=("loss",), points=5, not_for=("grpo", "ppo", "rl", "diffusion"), background=0.01)
def loss_negative(run: Run) -> Evidence | None:
    """The training loss is negative where it must be a cross-entropy, or falls below zero without a bound.

    An accuracy beside it, a configured number of classes or a language model make it a cross-entropy, which cannot be
    negative. A Dice score or an overlap beside it makes it a loss of masks: a Dice score that is maximised takes it
    to -1 or a few times that, and no further. Not this when: the curve bends, as that of the logarithm of a density, a
    lower bound or a signal-to-noise ratio in decibels does, which may be negative in health; that is only remarked. The
    numbers were chosen by hand.
    """
    loss = run["loss"].finite
    below = loss.value < 0
    if below.mean() < SHARE:
        return None
    first = float(loss.step[int(np.argmax(below))])
    start, middle, end = start_level(loss.value), median(_middle(loss.value)), end_level(loss.value)
    unbent = end < 0 and start > end and (middle - end) > UNBENT * (start - end)
    masks = any(_OVERLAP.search(name) for name in run.series)
    endless = unbent or end < -RUNAWAY * (1.0 if masks else max(1.0, abs(float(loss.value[0]))))
    classes = uniform_loss(run) is not None or predicts_tokens(run)
    entropy = classes or any(name in run for name in ACCURACIES)
    beside = "" if entropy or endless else ": a logarithm of a density or a ratio in decibels may be"
    return Evidence(
        f"loss is below zero from {run.step_name} {figure(first)} on, in {below.mean():.0%} of the records; "
        f"the lowest is {figure(float(loss.value.min()))}{beside}",
        steps=(first,),
        values={"share": float(below.mean()), "lowest": float(loss.value.min()), "start": start, "end": end},
        present=bool(entropy or endless),
    )


def _middle(values: Floats) -> Floats:
    """Return the values about the middle of a curve, a twentieth and at least 3 of them."""
    half, width = len(values) // 2, max(3, len(values) // 20)
    return values[max(0, half - width // 2) : half + width // 2 + 1]
