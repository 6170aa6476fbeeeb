"""Jumps of the loss at even distances."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_spike import jumps
from mldebug_mcp.text import figure

LEAST = 3
EVEN = 0.1
"""Distances between jumps vary by less than this share. Chosen by hand."""


@symptom(needs=("loss",), sources=("bekman_mle",), points=20, not_for=("grpo", "ppo", "rl"), background=0.1)
def loss_spikes_regular(run: Run) -> Evidence | None:
    """The training loss jumps at even distances, as where the same data comes round again.

    Not this when: the distance is that of evaluations or checkpoints. Judged only where the loss jumps three times.
    """
    loss = run["loss"].finite
    found = jumps(run)
    if len(found) < LEAST:
        raise CannotTell(f"the loss jumps {len(found)} times; {LEAST} are needed to speak of a distance")
    steps = np.array([loss.step[spike.first] for spike in found])
    gaps = np.diff(steps)
    if float(gaps.std()) > EVEN * float(gaps.mean()):
        return None
    return Evidence(
        f"the {len(found)} jumps stand {figure(float(gaps.mean()))} {run.step_name}s apart, the first at "
        f"{figure(float(steps[0]))}",
        steps=tuple(float(step) for step in steps[:10]),
        values={"distance": float(gaps.mean()), "count": len(found)},
    )
