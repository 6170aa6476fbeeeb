"""Does the device wait for data?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.data_wait import PERCENT, data_wait
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted

SHARE = 0.3
"""Of the step that waits for data. Chosen: a loader that keeps up hides behind the computation."""
START = 10
"""Part of the records that is the start. Chosen: a tenth, in which workers start and things are compiled."""
LEAST = 5
"""Records, without the first tenth. Chosen: a median of fewer may be one slow step."""
FEW, MOST_OF_STEP = 2, 0.5
"""So few records tell as well where each waits for this share of its step. Chosen: no slow start does that twice."""


@symptom(any_of=(Quantity.DATA_TIME, PERCENT), sources=("tuning_playbook",), background=0.004)
def data_wait_high(run: Run) -> Evidence | None:
    """Waiting for data takes a third of the step or more, step after step.

    Where the log gives no time for a step, its rate of steps or its clock does. Not this when: only the first steps
    wait (workers start, caches fill); single steps do (`step_time_spikes`); the time is that of evaluation.
    """
    shares = data_wait(run)
    if shares is None:
        raise CannotTell("not logged: how long a step waits for data, and how long it takes")
    skip = max(1, len(shares) // START)
    value, step = shares.value[skip:], shares.step[skip:]
    if len(value) < LEAST and not (len(value) >= FEW and float(value.min()) >= MOST_OF_STEP):
        raise CannotTell(
            f"{counted(len(shares), 'record')} with the time for data and for the step; {LEAST + 1} are needed"
        )
    typical, mean = median(value), float(np.mean(value))
    if typical < SHARE:
        return None
    onset = float(step[int(np.argmax(value >= SHARE))])
    return Evidence(
        f"waiting for data takes {typical:.0%} of a typical step (mean {mean:.0%} of {counted(len(value), 'record')}), "
        f"from {run.place(onset)} on",
        steps=(onset,),
        values={"share": typical, "mean_share": mean},
    )
