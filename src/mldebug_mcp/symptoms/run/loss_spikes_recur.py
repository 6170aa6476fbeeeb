"""Several jumps of the loss."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.spikes import Spike
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_spike import jumps
from mldebug_mcp.text import counted, figure

LEAST = 2
SHOWN = 6


@symptom(needs=("loss",), sources=("palm_2022",), points=20, not_for=("grpo", "ppo", "rl"), background=0.3)
def loss_spikes_recur(run: Run) -> Evidence | None:
    """The training loss jumps far above its recent level more than once.

    Not this when: the noise is heavy-tailed (`loss_noisy`). `loss_spike` says what counts as a jump; judged only where
    the loss jumps at all, so that one jump does not count twice.
    """
    loss = run["loss"].finite
    found = jumps(run)
    if not found:
        raise CannotTell("the loss does not jump")
    if not LEAST <= len(found) <= max(5, len(loss) // 20):
        return None
    steps = tuple(float(loss.step[spike.first]) for spike in found)
    gaps = np.diff(steps)
    return Evidence(
        f"loss jumps {len(found)} times, {figure(float(gaps.min()))} to {figure(float(gaps.max()))} {run.step_name}s "
        f"apart: {', '.join(_said(spike, loss) for spike in found[:SHOWN])}{', …' if len(found) > SHOWN else ''}",
        steps=steps[:10],
        values={
            "count": len(found),
            "closest": float(gaps.min()),
            "farthest": float(gaps.max()),
            "highest": max(spike.height for spike in found),
            "widest_records": max(spike.last - spike.first + 1 for spike in found),
        },
    )


def _said(spike: Spike, loss: Series) -> str:
    width = spike.last - spike.first + 1
    return (
        f"at {figure(float(loss.step[spike.first]))} from {figure(spike.level)} to "
        f"{figure(float(loss.value[spike.peak]))} for {counted(width, 'record')}"
    )
