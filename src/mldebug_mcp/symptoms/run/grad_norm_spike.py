"""Sudden gradient norm."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.spikes import baseline, spikes
from mldebug_mcp.measure.statistics import mad, start_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

FACTOR = 10.0
"""Ten times the recent level: Axolotl puts healthy norms of fine-tuning at 0.1 to 10 and calls 100 instability."""
SIGMAS = 8.0
POLICIES = ("rl", "ppo", "grpo")


@symptom(
    needs=("grad_norm",),
    sources=("axolotl_stability",),
    points=12,
    background=0.02,  # one outlier in a log of thousands of steps is usual, and clipped
    as_chosen=True,
    follows=("loss_spike",),
    instead=("grad_norm_growing",),
)
def grad_norm_spike(run: Run) -> Evidence | None:
    """The gradient norm jumps to many times its recent level.

    Not this when: norms vary by that much all the time (heavy tails, small batches); the first steps of a run; a policy
    with little left to learn meets a surprise, and its norm is still no larger than in the first records. The number of
    standard deviations, on the logarithm, was chosen by hand.
    """
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < 12:
        raise CannotTell(f"{len(norm)} positive gradient norms; 12 are needed")
    log = np.log(norm.value)
    width = int(np.clip(len(log) // 20, 6, 50))
    base = baseline(log, width)
    overall = mad(base.rest(log))
    spread = np.clip(base.spread, overall / 2, overall)  # a window may happen to be loud or quiet
    threshold = np.maximum(SIGMAS * spread, np.log(FACTOR))
    if not base.is_exceeded(log, threshold):
        return None
    found = spikes(log, width, threshold, base, skip=width)
    if run.kind in POLICIES:
        found = [spike for spike in found if norm.value[spike.peak] > start_level(norm.value)]
    if not found or len(found) > max(5, len(log) // 50):
        return None
    worst = max(found, key=lambda spike: spike.height)
    at, top = float(norm.step[worst.first]), float(norm.value[worst.peak])
    more = f"; {len(found)} such jumps in all" if len(found) > 1 else ""
    return Evidence(
        f"grad_norm jumps from {figure(float(np.exp(worst.level)))} to {figure(top)} "
        f"at {run.step_name} {figure(at)}{more}",
        steps=(at, *(float(norm.step[spike.first]) for spike in found if spike is not worst))[:10],
        values={
            "level_before": float(np.exp(worst.level)),
            "peak": top,
            "factor": float(np.exp(worst.height)),
            "count": len(found),
        },
    )
