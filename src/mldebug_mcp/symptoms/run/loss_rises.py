"""Loss that rises from beginning to end."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.rise import rise_for_good
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, drift, end_level, median, monotone, sample, start_level
from mldebug_mcp.text import figure

LEAST = 0.005
"""The straight line through the curve rises by this share of its level ..."""
SIGMAS = 6.0
"""... and by this many times its error ..."""
ALIKE = 0.5
"""... and the medians of twenty stretches go up in order (Spearman's rank correlation).

All three were chosen so that none of 400 healthy runs of benchmarks/faults rises.
"""
MANY = 40
ALIKE_OF_FEW = 0.9
"""Fewer records go up in order one by one."""
POINTS = 10


@symptom(
    needs=("loss",),
    points=POINTS,
    not_for=("grpo", "ppo", "rl", "diffusion"),
    background=0.003,
    follows=("loss_above_start",),
)
def loss_rises(run: Run) -> Evidence | None:
    """The training loss rises slowly over the whole log: at its end it is higher than at its beginning.

    Not this when: it falls first; the rise is within the noise. Where it rises so far that it diverges or is not
    finite (`loss_divergence`, `loss_nonfinite`) this is unknown, so that one rise does not count twice.
    """
    loss = run["loss"].finite
    if len(loss) < len(run["loss"]) or rise_for_good(run) is not None:
        raise CannotTell("the loss diverges or is not finite, which says more")
    values = loss.value[len(loss) // 20 :]
    moved, level = drift(values), abs(median(sample(values)))
    rises = moved.change > SIGMAS * moved.error and moved.change > LEAST * level
    alike, stretches = (ALIKE, blocks(values, 20).level) if len(loss) >= MANY else (ALIKE_OF_FEW, values)
    if not rises or monotone(stretches) < alike or end_level(values) <= start_level(values):
        return None
    evaluation = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    beside = (
        f"; eval_loss goes from {figure(float(evaluation[0]))} to {figure(float(evaluation[-1]))}"
        if len(evaluation) > 1
        else ""
    )
    return Evidence(
        f"loss rises from a level of {figure(start_level(values))} at first to {figure(end_level(values))} at the "
        f"end, its trend by {figure(moved.change)} ± {figure(moved.error)}{beside}",
        steps=(float(loss.step[0]),),
        values={"start": start_level(values), "end": end_level(values), "rise": moved.change, "error": moved.error},
    )
