"""Means over epochs of which none is as low as the first."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.beginning import PASSES
from mldebug_mcp.symptoms.quality import as_share
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

LEAST = 6
ABOVE = 1.05
"""Times the first mean: so high stands the median of the later ones, which noise alone does not explain."""
DONE = 0.85
"""An accuracy from which on training has nothing left to gain. All were chosen by hand."""


@symptom(
    needs=("loss",),
    points=LEAST,
    not_for=("grpo", "ppo", "rl", "preference", "diffusion"),
    background=0.002,
    follows=("loss_divergence", "loss_rises", "loss_at_clip", "loss_above_start", "loss_nonfinite"),
)
def loss_never_below_first(run: Run) -> Evidence | None:
    """No later epoch has a mean training loss as low as that of the first, in which the model was still untrained.

    Not this when: the records are no means over epochs; the log begins with a later epoch; the loss goes up steadily
    (`loss_divergence`, `loss_rises`); the accuracy is high already, or rises all the same.
    """
    loss = run["loss"].finite
    first, later = float(loss.value[0]), loss.value[1:]
    if run.step_name != "epoch" or bool(np.any(np.diff(loss.step) != 1)):
        raise CannotTell("the records are no means over whole epochs")
    if float(loss.step[0]) > PASSES:
        raise CannotTell(f"the log begins at epoch {figure(float(loss.step[0]))}")
    if first <= 0 or float(later.min()) < first or median(later) < ABOVE * first:
        return None
    beside = ""
    if "accuracy" in run and len(run["accuracy"].finite):
        shares = [as_share(float(one)) for one in run["accuracy"].finite.value]
        if shares[-1] > DONE or shares[-1] > 2 * shares[0]:
            return None
        beside = f"; accuracy goes from {figure(shares[0])} to {figure(shares[-1])}"
    return Evidence(
        f"loss is {figure(first)} in epoch {figure(float(loss.step[0]))}, and between {figure(float(later.min()))} and "
        f"{figure(float(later.max()))} in the {len(later)} epochs after it{beside}",
        steps=(float(loss.step[1]),),
        values={"first": first, "lowest": float(later.min()), "median": median(later)},
    )
