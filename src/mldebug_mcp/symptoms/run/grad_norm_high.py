"""Gradient norm far above usual."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import figure

UNSTABLE = {"sft": 100.0, "grpo": 10.0}
"""Axolotl, "Key Metrics": SFT 0.1 to 10, above 100 unstable; GRPO 0.001 to 1, above 10 unstable."""
USUAL = {"sft": (0.1, 10.0), "grpo": (0.001, 1.0)}
SHARE = 0.1
"""Of the records after the first twentieth: fewer are spikes (`grad_norm_spike`). Chosen by hand."""


@symptom(needs=("grad_norm",), sources=("axolotl_stability",), points=5, background=0.02)
def grad_norm_high(run: Run) -> Evidence | None:
    """The gradient norm lies above what is stable for this kind of run in a good part of the records.

    Not this when: single records do (`grad_norm_spike`); the run is of a kind without a known range. Healthy runs of
    classic RL, diffusion and fp16 Megatron have norms of 1e4 to 1e6: their bands are not known, and not judged.
    """
    bound = UNSTABLE.get(run.kind)
    if bound is None:
        raise CannotTell("no usual gradient norm is known for this kind of run")
    norm = run["grad_norm"].finite
    late = norm.where(np.arange(len(norm)) >= len(norm) // 20)
    high = late.value > bound
    if high.mean() < SHARE or high.sum() < 3:
        return None
    low, top = USUAL[run.kind]
    first = float(late.step[int(np.argmax(high))])
    return Evidence(
        f"grad_norm is above {figure(bound)} in {high.mean():.0%} of {len(late)} records, first at {run.step_name} "
        f"{figure(first)}; its median is {figure(median(late.value))}; usual are {figure(low)} to "
        f"{figure(top)}",
        steps=(first,),
        values={"share": float(high.mean()), "median": median(late.value), "bound": bound},
    )
