"""Metrics of EBFT outside their healthy range."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import end_level
from mldebug_mcp.text import figure

BANDS = {
    "ebft/alignment": (0.3, np.inf),
    "ebft/diversity": (-np.inf, 1.0),
    "ebft/cfm_loss": (-np.inf, 10.0),
}
"""Axolotl, for EBFT: alignment 0.3 to 0.9 is healthy; diversity above 1 is mode collapse; the loss is below 10."""
LEAST_RECORDS = 20


@symptom(any_of=tuple(BANDS), sources=("axolotl_stability",), background=0.03)
def ebft_out_of_range(run: Run) -> Evidence | None:
    """Alignment, diversity or loss of energy-based fine-tuning ends outside its healthy range.

    Not this when: the run has hardly begun (fewer than 20 records: then it is unknown).
    """
    logged = {name: run[name].finite for name in BANDS if name in run and len(run[name].finite) >= LEAST_RECORDS}
    if not logged:
        raise CannotTell(f"no metric of EBFT has {LEAST_RECORDS} finite values")
    ends = {name: end_level(series.value) for name, series in logged.items()}
    off = {name: end for name, end in ends.items() if not BANDS[name][0] <= end <= BANDS[name][1]}
    if not off:
        return None
    said = ", ".join(f"{name} ends at {figure(end)}" for name, end in off.items())
    return Evidence(said, steps=(run.last_step,), values=off)
