"""Gradient norm rises over the run."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, median
from mldebug_mcp.text import figure

FACTOR = 4.0
"""Healthy norms drift by less than this over a log once the first steps are over: chosen by hand."""
SIGMAS = 6.0
RISING = 0.6
"""Share of later blocks that stand above earlier ones: a trend, not one step."""


@symptom(needs=("grad_norm",), sources=("axolotl_stability",), points=20, not_for=("rl",), background=0.03)
def grad_norm_growing(run: Run) -> Evidence | None:
    """The gradient norm grows over the run to several times its early level.

    Not this when: it jumps and comes back (`grad_norm_spike`); it is noisy without a trend; it grows within the first
    steps only. The factor, 4, was chosen by hand.
    """
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < 20:
        raise CannotTell(f"{len(norm)} positive gradient norms; 20 are needed")
    cut = blocks(np.log(norm.value), 20)
    level = cut.level[1:] if len(cut.level) > 10 else cut.level
    offset = len(cut.level) - len(level)
    lowest = int(np.argmin(level[: max(1, len(level) // 2)]))
    end = median(level[-3:])
    rise = end - float(level[lowest])
    after = level[lowest:]
    later = after[None, :] > after[:, None]
    pairs = later[np.triu_indices(len(after), 1)]
    if rise < max(np.log(FACTOR), SIGMAS * cut.wobble) or len(after) < 4 or pairs.mean() < 0.5 + RISING / 2:
        return None
    quarter = float(level[lowest]) + rise / 4
    first = int(cut.first[offset + lowest + int(np.argmax(after > quarter))])
    return Evidence(
        f"grad_norm grows from {figure(float(np.exp(level[lowest])))} to {figure(float(np.exp(end)))} from "
        f"{run.step_name} {figure(float(norm.step[first]))} on",
        steps=(float(norm.step[first]),),
        values={"from": float(np.exp(level[lowest])), "to": float(np.exp(end)), "factor": float(np.exp(rise))},
    )
