"""Loss below zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

SHARE = 0.1


@symptom(needs=("loss",), points=5, not_for=("grpo", "ppo", "rl", "diffusion"), background=0.01)
def loss_negative(run: Run) -> Evidence | None:
    """The training loss is negative, which no cross-entropy or squared error can be.

    Not this when: the loss is the logarithm of a density, a lower bound or a surrogate of reinforcement learning, which
    may be negative in health. The share of records, a tenth, was chosen by hand.
    """
    loss = run["loss"].finite
    below = loss.value < 0
    if below.mean() < SHARE:
        return None
    first = float(loss.step[int(np.argmax(below))])
    return Evidence(
        f"loss is below zero from {run.step_name} {figure(first)} on, in {below.mean():.0%} of the records; "
        f"the lowest is {figure(float(loss.value.min()))}",
        steps=(first,),
        values={"share": float(below.mean()), "lowest": float(loss.value.min())},
    )
