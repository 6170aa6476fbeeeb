"""Most completions hit the limit."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, departure, median, start_level
from mldebug_mcp.text import figure

LIMIT = 0.8
"""Axolotl, for GRPO: below 0.3 is healthy, above 0.8 most completions hit the limit."""


@symptom(
    needs=("completions/clipped_ratio",),
    sources=("axolotl_stability",),
    points=3,
    background=0.01,
    follows=("completion_length_grows",),
)
def completions_truncated(run: Run) -> Evidence | None:
    """More than 80 % of the completions end at the length limit, for a quarter of the log or up to its end.

    Not this when: single records do; the share is high at the start and comes down for good.
    """
    share = run["completions/clipped_ratio"].finite
    cut = blocks(share.value, 12)
    high = cut.level > LIMIT
    came_down = not high[-max(1, len(high) // 4) :].any()
    if came_down or (not high[-1] and high.mean() < 0.25):
        return None
    first = int(cut.first[int(np.argmax(high))])
    onset = float(share.step[min(first, departure(share.value, 1.0)) if first else 0])
    since = median(share.value[share.step >= onset])
    return Evidence(
        f"{since:.0%} of the completions end at the limit from {run.step_name} {figure(onset)} on; "
        f"at the start {start_level(share.value):.0%}",
        steps=(onset,),
        values={
            "median": median(share.value),
            "start": start_level(share.value),
            "share_of_log": float(high.mean()),
        },
    )
