"""Too many ratios are clipped."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import NOT_POLICY
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.statistics import highest_level, median
from mldebug_mcp.text import figure

LIMIT = 0.3
"""Axolotl, for GRPO: below 0.1 is healthy, above 0.3 too much."""
LIMIT_RL = 0.5
"""Agents in small environments learn with a clip fraction of 0.3 to 0.4; chosen by hand."""


@symptom(needs=("clip_ratio",), sources=("axolotl_stability",), points=5, not_for=NOT_POLICY, background=0.008)
def clip_ratio_high(run: Run) -> Evidence | None:
    """A large share of the probability ratios is clipped, for a stretch of records.

    Not this when: single records jump; all ratios are one because each sample is used once (then it is zero).
    """
    ratio = run["clip_ratio"].finite
    limit = LIMIT_RL if run.kind == "rl" else LIMIT
    kept = highest_level(ratio.value)
    if kept.value <= limit:
        return None
    onset, typical = float(ratio.step[kept.at]), median(ratio.value)
    return Evidence(
        f"clip_ratio keeps a level of {figure(kept.value)} from {run.step_name} {figure(onset)} on; its median over "
        f"the log is {figure(typical)}",
        steps=(onset,),
        values={"level": kept.value, "median": typical, "limit": limit},
    )
