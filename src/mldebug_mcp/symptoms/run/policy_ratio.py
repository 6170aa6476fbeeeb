"""Do the weights that sampled and those that are trained agree?"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import cleandoc

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import blocks, highest_level, median
from mldebug_mcp.symptoms.policy import NOT_POLICY
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure


@dataclass(frozen=True, slots=True)
class _Band:
    low: float
    high: float


BANDS = {
    # Axolotl, for GRPO: above 0.1 is healthy, near 0 is stale. A hundredth was chosen for "near 0".
    "sampling/importance_sampling_ratio/min": _Band(0.01, np.inf),
    # Axolotl, for GRPO: below 0.1 is healthy, above 1 the policy is far from the weights that sampled.
    "sampling/sampling_logp_difference/mean": _Band(-1.0, 1.0),
    # TRL's PPO: floats around 1; 2 and 0.1 are far. The same ratio, between sampling and training, in TRL's GRPO.
    "policy_ratio": _Band(0.5, 2.0),
    "sampling/importance_sampling_ratio/mean": _Band(0.5, 2.0),
}
"""The ranges within which nothing is found."""
LEAST_RECORDS = 3
CLIPPED = 0.3
"""Axolotl, for GRPO: below 0.1 is healthy, above 0.3 too much."""
CLIPPED_RL = 0.5
"""Agents in small environments learn with a clip fraction of 0.3 to 0.4; chosen by hand."""
LEAST_CLIPPED = 5


@question(
    Outcome(
        "importance_ratio_off",
        cleandoc("""Importance ratios far from one.

        The weights that sampled and those that are trained give clearly different probabilities to the same tokens.
        Not this when: single records are off; the largest ratio alone is large (a maximum over thousands of
        tokens)."""),
        background=0.006,
        sources=("axolotl_stability", "trl_docs"),
    ),
    Outcome(
        "clip_ratio_high",
        cleandoc("""Too many ratios are clipped.

        A large share of the probability ratios is clipped, for a stretch of records.
        Not this when: single records jump; all ratios are one because each sample is used once (then it is zero)."""),
        background=0.008,
        sources=("axolotl_stability",),
        needs=("clip_ratio",),
    ),
    any_of=(*BANDS, "clip_ratio"),
    not_for=NOT_POLICY,
)
def policy_ratio(run: Run) -> Answers:
    """The ratio itself, where it is logged, goes before the share of ratios that were clipped."""
    logged = [name for name in BANDS if name in run and len(run[name].finite) >= LEAST_RECORDS]
    found = [evidence for name in logged if (evidence := _off(run, name, BANDS[name])) is not None]
    if found:
        return {"importance_ratio_off": found[0]}
    answers: dict[str, Evidence | CannotTell] = {}
    if not logged:
        answers["importance_ratio_off"] = CannotTell(f"no ratio has {LEAST_RECORDS} finite values")
    if "clip_ratio" in run:
        if len(run["clip_ratio"].finite) < LEAST_CLIPPED:
            answers["clip_ratio_high"] = CannotTell(f"clip_ratio has fewer than {LEAST_CLIPPED} finite values")
        elif (clipped := _clipped(run)) is not None:
            answers["clip_ratio_high"] = clipped
    return answers


def _off(run: Run, name: str, band: _Band) -> Evidence | None:
    series = run[name].finite
    cut = blocks(series.value, 12)
    off = (cut.level < band.low) | (cut.level > band.high)
    if not off.any():
        return None
    at = int(np.argmax(off))
    onset = float(series.step[int(cut.first[at])])
    worst = float(cut.level[off].min() if (cut.level < band.low).any() else cut.level[off].max())
    return Evidence(
        f"{name} keeps a level of {figure(worst)} from {run.step_name} {figure(onset)} on, "
        f"in {off.mean():.0%} of the log; its median is {figure(median(series.value))}",
        steps=(onset,),
        values={"level": worst, "share_of_log": float(off.mean()), "median": median(series.value)},
    )


def _clipped(run: Run) -> Evidence | None:
    ratio = run["clip_ratio"].finite
    limit = CLIPPED_RL if run.kind == "rl" else CLIPPED
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
