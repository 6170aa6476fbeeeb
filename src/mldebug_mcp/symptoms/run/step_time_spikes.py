"""Some steps take far longer."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.statistics import blocks, median
from mldebug_mcp.symptoms.pace import PACES, step_times
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

FACTOR = 3.0
LEAST = 3
MOST_SHARE = 0.25
"""If a quarter of the steps are slow, that is not an exception. All three chosen by hand."""
LEAST_COST = 0.02
"""Of the time of the run: what the slow steps take beyond the usual. Below it they matter to nobody. Chosen by hand."""


@symptom(any_of=PACES, sources=("smol_playbook",), background=0.015)
def step_time_spikes(run: Run) -> Evidence | None:
    """Several steps take at least three times as long as those around them.

    Not this when: it is the first steps (compilation); slow steps come at a fixed distance, as evaluations and
    checkpoints do, or all of them together cost next to nothing of the run (remarks); all steps are slow
    (`step_time_grows`).
    """
    times = step_times(run)
    cut = blocks(times.value, max(1, min(40, len(times) // 25)))
    usual = cut.level[np.searchsorted(cut.first, np.arange(len(times)), side="right") - 1]
    slow = np.flatnonzero(times.value > FACTOR * usual)
    if len(slow) < LEAST or len(slow) > MOST_SHARE * len(times):
        return None
    worst = int(slow[np.argmax((times.value / usual)[slow])])
    where, factor = float(times.step[worst]), float(times.value[worst] / usual[worst])
    cost = float(np.sum((times.value - usual)[slow]) / np.sum(times.value))
    period = _period(times.step[slow])
    regular = f", every {figure(period)} {run.step_name}s" if period is not None else ""
    return Evidence(
        f"{len(slow)} of {len(times)} steps on record take more than {FACTOR:g} times as long as those around "
        f"them{regular}, which costs {cost:.1%} of the time; the slowest, {figure(factor)} times, is {run.step_name} "
        f"{figure(where)}",
        steps=(float(times.step[slow[0]]), where),
        values={"count": len(slow), "worst_factor": factor, "cost": cost, **({"period": period} if period else {})},
        # A loader with a few workers stalls with their number as period.
        present=cost >= LEAST_COST and (period is None or period < 20),
    )


def _period(steps: Floats) -> float | None:
    """Return the distance of slow steps, if they stand at a fixed one (or multiples of it)."""
    gaps = np.diff(steps)
    period = median(gaps) if len(gaps) >= 2 else 0.0
    if period <= 0:
        return None
    off = np.abs(gaps / period - np.round(gaps / period))
    return period if float((off < 0.02).mean()) >= 0.9 else None
