"""Gradient norm exactly zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

SHARE = 0.5


@symptom(needs=("grad_norm",), sources=("axolotl_stability",), background=0.003)
def grad_norm_zero(run: Run) -> Evidence | None:
    """The gradient norm is exactly zero in most records, or in all from some step on.

    Not this when: single zeros occur in GRPO, where a group of equal rewards gives no gradient. The share, half, was
    chosen by hand.
    """
    norm = run["grad_norm"].finite
    if not len(norm):
        return None
    zero = norm.value == 0
    tail = len(zero) if zero.all() else int(np.argmin(zero[::-1]))
    if zero.mean() < SHARE and (tail < 3 or tail * 5 < len(zero)):
        return None
    first = float(norm.step[int(np.argmax(zero))])
    return Evidence(
        f"grad_norm is exactly 0 at {run.step_name} {figure(first)} and in {int(zero.sum())} of {len(zero)} records",
        steps=(first,),
        values={"share": float(zero.mean()), "records_at_end": tail},
    )
