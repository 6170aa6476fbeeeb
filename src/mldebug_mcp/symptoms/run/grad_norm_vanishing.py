"""Gradient norm far below usual."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import edge_width, median, sample, start_level
from mldebug_mcp.text import figure

FAR_BELOW = {"sft": 0.1 / 50, "grpo": 0.001 / 50}
"""A fiftieth of the lower end of Axolotl's usual range ("Key Metrics")."""
TINY = 1e-6
"""For any other kind: with a loss that is not small itself, no averaged loss has so small a gradient."""
LEAST, NOTHING = 5, 1e-12
"""Records, but two are enough of norms that are rounding errors of float32: chosen far below its precision, 1e-7."""
FALL = 1000.0
SMALL_LOSS = 0.2
"""Where the loss fell below this share of its start, a small gradient is expected."""


@symptom(needs=("grad_norm",), sources=("axolotl_stability",), points=2, background=0.01)
def grad_norm_vanishing(run: Run) -> Evidence | None:
    """The gradient norm is tiny for this kind of run, or has fallen a thousandfold while the loss has not.

    Not this when: the loss is nearly zero, so that nothing is left to learn; the norm is exactly zero
    (`grad_norm_zero`). How far below the usual range counts was chosen by hand.
    """
    norm = run["grad_norm"].finite
    norm = norm.where(norm.value > 0)
    if len(norm) < LEAST and not (len(norm) and norm.value.max() < NOTHING):
        raise CannotTell(f"{len(norm)} positive gradient norms; {LEAST} are needed")
    loss = run["loss"].finite.value if "loss" in run else np.empty(0)
    if len(loss) and run.kind != "grpo" and _is_small(loss):
        return None
    typical = median(sample(norm.value[len(norm) // 2 :]))
    start = start_level(norm.value)
    bound = FAR_BELOW.get(run.kind, TINY)
    fell = len(norm) >= 20 and start > FALL * typical
    if typical >= bound and not fell:
        return None
    low = norm.value < (bound if typical < bound else start / FALL)
    first = float(norm.step[int(np.argmax(low))])
    return Evidence(
        f"grad_norm has a median of {figure(typical)} over the later half of {len(norm)} records; it began at "
        f"{figure(start)} and is below {figure(bound if typical < bound else start / FALL)} from {run.step_name} "
        f"{figure(first)} on",
        steps=(first,),
        values={"median": typical, "start": start, "bound": bound},
    )


def _is_small(loss: Floats) -> bool:
    """Say whether the loss has fallen so far that a small gradient is what one expects."""
    edge = edge_width(len(loss))
    start, end = (median(np.abs(sample(part))) for part in (loss[:edge], loss[-edge:]))
    return end < SMALL_LOSS * start
