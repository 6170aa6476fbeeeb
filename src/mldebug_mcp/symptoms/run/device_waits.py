"""Does the device wait: for data, or for whatever leaves it idle?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.data_wait import PERCENT, data_wait
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.text import counted, figure

SHARE = 0.3
"""Of the step that waits for data. Chosen: a loader that keeps up hides behind the computation."""
START = 10
"""Part of the records that is the start. Chosen: a tenth, in which workers start and things are compiled."""
LEAST = 5
"""Records, without the first tenth. Chosen: a median of fewer may be one slow step."""
FEW, MOST_OF_STEP = 2, 0.5
"""So few records tell as well where each waits for this share of its step. Chosen: no slow start does that twice."""
IDLE = 0.5
"""Share of the time in which a kernel runs. Chosen: training that is bound by its GPU shows 0.9 and more."""
LEAST_SENSED = 8
"""Records of a sensor. Chosen: it samples a moment of each."""
MOST_SHARE = 2.0
"""Above this, utilisation is in per cent though its name does not say so. Chosen: sensors read a little above all."""


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
        f"from {run.step_name} {figure(onset)} on",
        steps=(onset,),
        values={"share": typical, "mean_share": mean},
    )


def gpu_idle(run: Run) -> Evidence | None:
    """The GPU's utilisation, the share of time in which any kernel runs, is below one half as a rule.

    Not this when: only the first records are low (start and compilation), or single ones (evaluation, saving). Small
    models leave a GPU idle too, so that by itself it says little.
    """
    shares = {
        one.name: share
        for one in run.with_role(Quantity.DEVICE_UTILISATION, parts=True)
        if len(share := _shares(one.finite.value)) >= LEAST_SENSED
    }
    if not shares:
        raise CannotTell(f"the GPU's utilisation is not logged, or less than {LEAST_SENSED} times")
    name = max(shares, key=lambda one: median(shares[one]))  # of several, the busiest
    typical = median(shares[name])
    if typical >= IDLE:
        return None
    return Evidence(
        f"{name} is {figure(typical * 100)} % in the median of {len(shares[name])} records",
        steps=(float(run[name].finite.step[0]),),
        values={"share": typical},
    )


def _shares(values: Floats) -> Floats:
    """Return shares of 1 without the first tenth, in which things start."""
    later = values[len(values) // START :]
    return later / 100 if len(later) and float(later.max()) > MOST_SHARE else later


READINGS = (
    reading(data_wait_high, sources=("tuning_playbook",), background=0.004),
    reading(gpu_idle, sources=("tuning_playbook",), background=0.1, as_chosen=True),
)
"""How each outcome is seen, and how often a healthy run shows it. Chosen: the fit counts the backgrounds anew, but for
those `as_chosen`."""


@question(*(one.outcome for one in READINGS), any_of=(Quantity.DATA_TIME, PERCENT, Quantity.DEVICE_UTILISATION))
def device_waits(run: Run) -> Answers:
    """Look at the wait for data, then at the device's utilisation."""
    return first_of(run, READINGS)
