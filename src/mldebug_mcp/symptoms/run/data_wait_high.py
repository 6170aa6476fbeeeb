"""Data loading takes a large share of the step."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import aligned, median
from mldebug_mcp.text import counted, figure

SHARE = 0.3
"""Of the step; a loader that keeps up hides behind the computation. Chosen by hand."""
LEAST_RECORDS = 5
PERCENT = "time_metrics/data_loading(%)"


@symptom(any_of=(Quantity.DATA_TIME, PERCENT), sources=("tuning_playbook",), background=0.004)
def data_wait_high(run: Run) -> Evidence | None:
    """Waiting for data takes a third of the step or more, step after step.

    Not this when: only the first steps wait (workers start, caches fill); single steps do (`step_time_spikes`).
    """
    shares = _shares(run)
    skip = max(1, len(shares) // 10)
    value, step = shares.value[skip:], shares.step[skip:]
    if len(value) < LEAST_RECORDS:
        raise CannotTell(
            f"{counted(len(shares), 'record')} with the time for data and for the step; {LEAST_RECORDS + 1} are needed"
        )
    typical, mean = median(value), float(np.mean(value))
    if typical < SHARE:
        return None
    onset = float(step[int(np.argmax(value >= SHARE))])
    return Evidence(
        f"waiting for data takes {typical:.0%} of a typical step (mean {mean:.0%}), from {run.step_name} "
        f"{figure(onset)} on",
        steps=(onset,),
        values={"share": typical, "mean_share": mean},
    )


def _shares(run: Run) -> Series:
    """Return the share of each step that is spent waiting for data."""
    if PERCENT in run:  # torchtitan
        percent = run[PERCENT].finite
        return Series("share", percent.step, percent.value / 100)
    data = next(run.with_role(Quantity.DATA_TIME, parts=True)).finite
    whole = next(run.with_role(Quantity.STEP_TIME), run.series.get("time"))
    if whole is None:
        raise CannotTell("not logged: step_time")
    step, waited, total = aligned(data, whole.finite)
    keep = (total > 0) & (waited >= 0)
    # A step time without the wait in it is shorter than a long wait: then they add up.
    parts = np.where(waited > total, waited + total, total)
    return Series("share", step[keep], waited[keep] / parts[keep])
