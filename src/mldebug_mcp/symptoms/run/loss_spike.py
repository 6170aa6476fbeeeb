"""Sudden jump of the loss that recovers."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.statistics import Spike, baseline, noise, spikes, start_level
from mldebug_mcp.text import figure

SIGMAS = 8.0
"""A spike stands this far above the noise of the points before it."""
SHARE_OF_LEVEL = 0.15
"""... and this share of the level above it.

Axolotl speaks of jumps by a factor of 2 to 10; large models show smaller ones.
"""
SHARE_OF_PROGRESS = 0.05
"""... and this share of all the progress made: near zero loss, a factor of ten is nothing."""
TAIL_FACTOR = 2.0
"""... and this far beyond what one point in fifty does anyway: heavy-tailed noise is no spike."""


@symptom(needs=("loss",), sources=("axolotl_stability",), points=12, not_for=("grpo", "ppo", "rl"), background=0.02)
def loss_spike(run: Run) -> Evidence | None:
    """The training loss jumps far above its recent level and comes back.

    Not this when: the curve is merely noisy (many such points); it stays up (`loss_divergence`); the log ends at the
    jump. The factors were chosen on synthetic curves with normal and heavy-tailed noise.
    """
    loss = run["loss"].finite
    found = [spike for spike in _spikes(loss.value) if spike.recovered is not False]
    if not found or len(found) > max(5, len(loss) // 50):
        return None
    worst = max(found, key=lambda spike: spike.height)
    return _evidence(run, loss.step, loss.value, found, worst)


def _spikes(values: Floats) -> list[Spike]:
    width = int(np.clip(len(values) // 20, 6, 50))
    base = baseline(values, width)
    excess = values - base.level
    spread = np.maximum(base.spread, noise(values) / 2)
    progress = max(0.0, start_level(values) - float(values.min()))
    threshold = np.maximum.reduce(
        [
            SIGMAS * spread,
            SHARE_OF_LEVEL * np.abs(base.level),
            np.full(
                len(values),
                max(
                    SHARE_OF_PROGRESS * progress,
                    TAIL_FACTOR * float(np.quantile(np.abs(excess[width:]), 0.98)),
                ),
            ),
        ]
    )
    threshold = np.where(np.arange(len(values)) < min(width, 3), np.inf, threshold)
    return spikes(values, width, threshold, base)


def _evidence(run: Run, step: Floats, value: Floats, found: list[Spike], worst: Spike) -> Evidence:
    at, top = float(step[worst.first]), float(value[worst.peak])
    times = top / worst.level if worst.level > 0 else float("nan")
    back = (
        f"and is back within {worst.last - worst.first + 1} record(s)"
        if worst.recovered
        else "and the log ends before it could come back"
    )
    more = f"; {len(found)} such jumps in all" if len(found) > 1 else ""
    lr = run["learning_rate"].at(at) if "learning_rate" in run else None
    beside = f"; the learning rate there is {figure(lr)}" if lr is not None else ""
    return Evidence(
        f"loss jumps from {figure(worst.level)} to {figure(top)} at {run.step_name} {figure(at)} {back}{more}{beside}",
        steps=(at, *(float(step[spike.first]) for spike in found if spike is not worst))[:10],
        values={
            "level_before": worst.level,
            "peak": top,
            "factor": times,
            "width_records": worst.last - worst.first + 1,
            "count": len(found),
            "recovered": float(bool(worst.recovered)),
        },
    )
