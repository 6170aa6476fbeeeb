"""Gradient norm exactly zero."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import end_level, noise, start_level
from mldebug_mcp.text import figure

SHARE = 0.5


@symptom(needs=("grad_norm",), sources=("axolotl_stability",), points=2, background=0.003)
def grad_norm_zero(run: Run) -> Evidence | None:
    """The gradient norm is exactly zero in most records, or in all from some step on.

    Not this when: single zeros occur in GRPO, where a group of equal rewards gives no gradient; it is zero in all
    records although the loss moves, so that it is just not computed. The share, half, was chosen by hand.
    """
    norm = run["grad_norm"].finite
    zero = norm.value == 0
    if zero.all() and _learns(run):
        raise CannotTell("grad_norm is 0 in all records, yet the loss moves: the norm is not computed")
    tail = len(zero) if zero.all() else int(np.argmin(zero[::-1]))
    if zero.mean() < SHARE and (tail < 3 or tail * 5 < len(zero)):
        return None
    first = float(norm.step[int(np.argmax(zero))])
    return Evidence(
        f"grad_norm is exactly 0 at {run.step_name} {figure(first)} and in {int(zero.sum())} of {len(zero)} records",
        steps=(first,),
        values={"share": float(zero.mean()), "records_at_end": tail},
    )


def _learns(run: Run) -> bool:
    """Say whether the loss moved by far more than its noise from start to end."""
    loss = run["loss"].finite.value if "loss" in run else np.empty(0)
    if len(loss) < 5:
        return False
    moved = abs(end_level(loss) - start_level(loss))
    return moved > max(0.3 * abs(start_level(loss)), 6 * noise(loss))
