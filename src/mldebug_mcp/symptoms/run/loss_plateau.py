"""No progress from the start."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.scale import uniform_loss
from mldebug_mcp.symptoms.statistics import blocks, start_level
from mldebug_mcp.text import figure

LEAST_PROGRESS = 0.03
"""A run that learns lowers its loss by more than this share of the first level within the log."""
NEAR_CHANCE = 0.02
"""Within this share of ln(classes) the model guesses uniformly."""


@symptom(
    needs=("loss",),
    sources=("axolotl_stability", "karpathy_recipe"),
    points=12,
    not_for=("grpo", "ppo", "rl"),
    background=0.03,
)
def loss_plateau(run: Run) -> Evidence | None:
    """The training loss makes no progress from the start of the log to its end.

    Not this when: it fell before the log began (a resumed run); it rises (`loss_divergence`); it is exactly constant
    (`loss_constant`). The share of progress, 3 %, was chosen so that slow pretraining logs of a few hundred records
    pass.
    """
    loss = run["loss"].finite
    level = blocks(loss.value)
    start, best = start_level(loss.value), float(level.level[1:].min(initial=np.inf))
    gained = start - best
    if start <= 0 or math.isinf(best) or gained > max(LEAST_PROGRESS * start, 3 * level.wobble) or best > start * 1.1:
        return None
    if float(np.ptp(loss.value)) <= 1e-9 * abs(start):
        return None
    chance = uniform_loss(run) or (math.log(2) if abs(start - math.log(2)) < NEAR_CHANCE * math.log(2) else None)
    beside = ""
    if chance is not None and abs(best - chance) < NEAR_CHANCE * chance:
        beside = f"; a uniform guess has {figure(chance)} = ln({math.exp(chance):.0f})"
    last = float(loss.step[-1])
    return Evidence(
        f"loss is {figure(start)} at the start and no lower than {figure(best)} at any time up to "
        f"{run.step_name} {figure(last)}{beside}",
        steps=(float(loss.step[0]),),
        values={
            "start": start,
            "best": best,
            "gained": gained,
            "noise": level.wobble,
            **({"uniform_guess": chance} if beside and chance else {}),
        },
    )
