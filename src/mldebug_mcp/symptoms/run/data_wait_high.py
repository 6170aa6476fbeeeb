"""Data loading takes a large share of the step."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.data_wait import PERCENT, data_wait
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted, figure

SHARE = 0.3
"""Of the step; a loader that keeps up hides behind the computation. Chosen by hand."""
LEAST_RECORDS = 5
FEW, MOST_OF_STEP = 2, 0.5
"""So few records tell as well where each of them waits for this share of its step. Chosen by hand."""


@symptom(any_of=(Quantity.DATA_TIME, PERCENT), sources=("tuning_playbook",), background=0.004)
def data_wait_high(run: Run) -> Evidence | None:
    """Waiting for data takes a third of the step or more, step after step.

    Where the log gives no time for a step, its rate of steps or its clock does. Not this when: only the first steps
    wait (workers start, caches fill); single steps do (`step_time_spikes`); the time is that of evaluation.
    """
    shares = data_wait(run)
    if shares is None:
        raise CannotTell("not logged: step_time")
    skip = max(1, len(shares) // 10)
    value, step = shares.value[skip:], shares.step[skip:]
    if len(value) < LEAST_RECORDS and not (len(value) >= FEW and float(value.min()) >= MOST_OF_STEP):
        raise CannotTell(
            f"{counted(len(shares), 'record')} with the time for data and for the step; {LEAST_RECORDS + 1} are needed"
        )
    typical, mean = median(value), float(np.mean(value))
    if typical < SHARE:
        return None
    onset = float(step[int(np.argmax(value >= SHARE))])
    return Evidence(
        f"waiting for data takes {typical:.0%} of a typical step (mean {mean:.0%} of {counted(len(value), 'record')}), "
        f"from {run.step_name} {figure(onset)} on",
        steps=(onset,),
        values={"share": typical, "mean_share": mean},
    )
