"""Memory rises from step to step."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, departure
from mldebug_mcp.text import counted, figure

MEMORIES = (Quantity.DEVICE_MEMORY, Quantity.HOST_MEMORY)
GROWTH = 0.08
"""Of its level, over the later two thirds of the log; caches and optimizer state have settled by then."""
STEADY_GROWTH, EVENNESS = 0.02, 0.5
"""... or this much, where no block rises by less than half of the mean rise: nothing but a leak is that even."""
RISING_BLOCKS = 0.75
LEAST_RECORDS = 20


@symptom(any_of=MEMORIES, sources=("pytorch_gpu_memory_2", "rahtz_reproducing"), background=0.004)
def memory_grows(run: Run) -> Evidence | None:
    """Memory in use rises by a like amount again and again, up to the end of the log.

    Not this when: it rises at first and levels off; it steps up once or twice, as a peak counter does at a longer
    batch; it swings. The shares were chosen by hand.
    """
    logged = [one.finite for one in run.with_role(*MEMORIES, parts=True)]
    if not logged:
        raise CannotTell("not logged: memory in use")
    judged = [series for series in logged if len(series) >= LEAST_RECORDS]
    if not judged:
        raise CannotTell(
            f"memory has {counted(max(map(len, logged)), 'finite value')} here; {LEAST_RECORDS} are needed"
        )
    return next((evidence for series in judged if (evidence := _growth(run, series)) is not None), None)


def _growth(run: Run, series: Series) -> Evidence | None:
    late = series.value[len(series) // 3 :]
    level = blocks(late, 12).level
    rises = np.diff(level)
    grown = float(level[-1] - level[0])
    still = float(level[-1] - level[-1 - len(level) // 3])
    even = float(rises.min()) >= EVENNESS * float(rises.mean())
    least = STEADY_GROWTH if even else GROWTH
    if level[0] <= 0 or grown < least * level[0] or (rises > 0).mean() < RISING_BLOCKS or still < grown / 6:
        return None
    first, last = float(series.step[0]), float(series.step[-1])
    onset = float(series.step[departure(series.value, float(level[-1]))])
    rate = grown / (last - float(series.step[len(series) // 3]) or 1)
    return Evidence(
        f"{series.name} rises from {figure(float(series.value[0]))} at {run.step_name} {figure(first)} to "
        f"{figure(float(series.value[-1]))} at {figure(last)}, {figure(rate)} per {run.step_name} in the later two "
        "thirds of the log, without levelling off",
        steps=(onset,),
        values={"start": float(series.value[0]), "end": float(series.value[-1]), "per_step": rate},
    )
