"""Metrics of EBFT outside their healthy range."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.statistics import drift, end_level, median, start_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

BANDS = {
    "ebft/alignment": (0.3, np.inf),
    "ebft/diversity": (-np.inf, 1.0),
    "ebft/cfm_loss": (-np.inf, 10.0),
}
"""Axolotl, for EBFT: alignment 0.3 to 0.9 is healthy; diversity above 1 is mode collapse; the loss is below 10."""
COURSE = {"ebft/alignment": 1, "ebft/cfm_loss": -1}
"""Axolotl: alignment should trend upward, the loss downward."""
SIGMAS, SHARE = 6.0, 0.2
"""A trend goes the wrong way by this many times its error and this share of the level; both chosen by hand."""
LEAST_RECORDS = 20


@symptom(any_of=tuple(BANDS), sources=("axolotl_stability",), background=0.03)
def ebft_out_of_range(run: Run) -> Evidence | None:
    """Alignment, diversity or loss of energy-based fine-tuning ends outside its healthy range, or goes the wrong way.

    Not this when: the run has hardly begun (fewer than 20 records: then it is unknown); alignment or loss is level.
    """
    logged = {name: run[name].finite for name in BANDS if name in run and len(run[name].finite) >= LEAST_RECORDS}
    if not logged:
        raise CannotTell(f"no metric of EBFT has {LEAST_RECORDS} finite values")
    ends = {name: end_level(series.value) for name, series in logged.items()}
    off = {name: end for name, end in ends.items() if not BANDS[name][0] <= end <= BANDS[name][1]}
    said = [f"{name} ends at {figure(end)}" for name, end in off.items()]
    for name, course in COURSE.items():
        if name in logged and _goes_against(logged[name].value, course):
            off[name] = ends[name]
            said.append(
                f"{name} {'falls' if course > 0 else 'rises'} from {figure(start_level(logged[name].value))} to "
                f"{figure(ends[name])}"
            )
    if not off:
        return None
    return Evidence(", ".join(said), steps=(run.last_step,), values=off)


def _goes_against(values: Floats, course: int) -> bool:
    moved = drift(values)
    against = -course * moved.change
    return against > SIGMAS * moved.error and against > SHARE * abs(median(values))
