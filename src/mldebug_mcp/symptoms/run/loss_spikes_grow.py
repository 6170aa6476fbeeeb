"""Jumps of the loss that become higher."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_spike import jumps
from mldebug_mcp.symptoms.statistics import monotone
from mldebug_mcp.text import figure

LEAST = 4
RISING = 0.9
"""Rank correlation of the heights with time. Of six jumps in random order one in a hundred has that."""
FACTOR = 1.8
"""The last third of them are so many times as high as the first third. Chosen by hand."""


@symptom(needs=("loss",), sources=("stable_lowprec_clip",), points=20, not_for=("grpo", "ppo", "rl"), background=0.005)
def loss_spikes_grow(run: Run) -> Evidence | None:
    """The loss jumps again and again, each time higher: the same rows would be better known each time.

    Not this when: there are fewer than four jumps, or they are as high at first as at last; judged only where the loss
    jumps at all. The bounds were chosen by hand.
    """
    found = jumps(run)
    if len(found) < LEAST:
        raise CannotTell(f"the loss jumps {len(found)} times; {LEAST} are needed")
    height = np.array([spike.height for spike in found])
    third = max(1, len(height) // 3)
    factor = float(height[-third:].mean() / height[:third].mean())
    if monotone(height) < RISING or factor < FACTOR:
        return None
    first = float(run["loss"].finite.step[found[0].first])
    return Evidence(
        f"of {len(found)} jumps of the loss, the first of them at {run.step_name} {figure(first)}, the last are "
        f"{figure(factor)} times as high as the first: {figure(float(height[0]))} to {figure(float(height[-1]))}",
        steps=(first,),
        values={"factor": factor, "count": len(found)},
    )
