"""Nearly every step is clipped."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

SHARE = 0.95
FACTOR = 5.0
"""A typical norm of several times the threshold is far from the 90th percentile, where the tuning playbook clips.

Fine-tuning with norms of up to 10 and the usual threshold of 1 is called healthy by Axolotl: some runs with nothing
wrong show this.
"""


@symptom(needs=("grad_norm",), sources=("tuning_playbook",), points=10, background=0.06)
def grad_clip_saturated(run: Run) -> Evidence | None:
    """The gradient norm lies above the clipping threshold at nearly every step, typically by several times.

    Not this when: only the first steps are clipped; the norm is logged after clipping. The share and the factor were
    chosen by hand.
    """
    threshold = run.setting("max_grad_norm")
    if threshold is None:
        raise CannotTell("the clipping threshold (max_grad_norm) is not in the configuration")
    if threshold <= 0:
        return None
    norm = run["grad_norm"].finite
    clipped = norm.value > threshold
    typical = median(norm.value)
    if clipped.mean() < SHARE or typical < FACTOR * threshold:
        return None
    return Evidence(
        f"grad_norm is above the clipping threshold {figure(threshold)} in {clipped.mean():.0%} of "
        f"{len(norm)} records; its median is {figure(typical)}",
        steps=(float(norm.step[int(np.argmax(clipped))]),),
        values={"share": float(clipped.mean()), "median": typical, "threshold": threshold},
    )
