"""Gradient norm rises over the run."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, median
from mldebug_mcp.symptoms.turning import fails_at
from mldebug_mcp.text import figure

FACTOR = 4.0
"""Healthy norms drift by less than this over a log once the first steps are over: chosen by hand."""
SIGMAS = 6.0
LEAST = 20
RISING = 0.6
"""Share of later blocks that stand above earlier ones: a trend, not one step."""


@symptom(needs=("grad_norm",), sources=("axolotl_stability",), points=LEAST, not_for=("rl",), background=0.03)
def grad_norm_growing(run: Run) -> Evidence | None:
    """The gradient norm grows over the run to several times its early level.

    Not this when: it jumps and comes back (`grad_norm_spike`); it is noisy without a trend; it grows within the first
    steps only. Unknown where it grows only once the loss rises: that is no more than the loss says. The factor, 4, was
    chosen by hand.
    """
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < LEAST:
        raise CannotTell(f"{len(norm)} positive gradient norms; {LEAST} are needed")
    found = _growth(run, norm)
    turn = fails_at(run["loss"]) if found is not None and "loss" in run else None
    if turn is not None and _growth(run, norm.where(norm.step <= turn)) is None:
        raise CannotTell(f"it grows only from {run.step_name} {figure(turn)} on, as the loss does")
    return found


def _growth(run: Run, norm: Series) -> Evidence | None:
    if len(norm) < LEAST:
        return None
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
