"""Importance ratios far from one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, median
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


@symptom(any_of=tuple(BANDS), sources=("axolotl_stability", "trl_docs"), background=0.006)
def importance_ratio_off(run: Run) -> Evidence | None:
    """The weights that sampled and those that are trained give clearly different probabilities to the same tokens.

    Not this when: single records are off; the largest ratio alone is large (a maximum over thousands of tokens).
    """
    logged = [name for name in BANDS if name in run and len(run[name].finite) >= LEAST_RECORDS]
    if not logged:
        raise CannotTell(f"no ratio has {LEAST_RECORDS} finite values")
    found = [evidence for name in logged if (evidence := _judge(run, name, BANDS[name])) is not None]
    return found[0] if found else None


def _judge(run: Run, name: str, band: _Band) -> Evidence | None:
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
