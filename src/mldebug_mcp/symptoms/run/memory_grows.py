"""Memory rises from step to step."""

from __future__ import annotations

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.facts import POLICIES
from mldebug_mcp.measure.growth import growth_of, lasting_growth
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted, figure

MEMORIES = (Quantity.DEVICE_MEMORY, Quantity.HOST_MEMORY)
LEAST_RECORDS = 20
"""Records for the blocks. Chosen: one or two to each."""
FEW_GROWTH, STRAIGHT, FEW_STILL = 0.3, 0.99, 0.7
"""Growth, share that a line explains, and slope at the end over the start, of fewer. Chosen: caches that fill slow."""


@symptom(any_of=MEMORIES, sources=("pytorch_gpu_memory_2", "rahtz_reproducing"), background=0.004)
def memory_grows(run: Run) -> Evidence | None:
    """Memory in use rises by a like amount again and again, up to the end of the log.

    Not this when: it rises at first and levels off; it steps up once or twice, as a peak counter does; it swings.
    """
    logged = [one.finite for one in run.with_role(*MEMORIES, parts=True)]
    if not logged:
        raise CannotTell("not logged: memory in use")
    judged = [series for series in logged if len(series) >= LEAST_RECORDS]
    if not judged:
        few = next((one for series in logged if (one := _few(run, series)) is not None), None)
        if few is not None:
            return few
        raise CannotTell(
            f"memory has {counted(max(map(len, logged)), 'finite value')} here; {LEAST_RECORDS} are needed"
        )
    return next((evidence for series in judged if (evidence := _growth(run, series)) is not None), None)


def _few(run: Run, series: Series) -> Evidence | None:
    """Return a growth that is too large and too even to be anything else, however few records show it.

    Of policies few say nothing, as they fill a buffer in memory up to its capacity.
    """
    growth = growth_of(series)
    if growth is None or run.kind in POLICIES or _may_cache_rows(run, series):
        return None
    if growth.share < FEW_GROWTH or growth.straightness < STRAIGHT or growth.still < FEW_STILL:
        return None
    first, last = float(series.step[0]), float(series.step[-1])
    return Evidence(
        f"{series.name} rises from {figure(series.value[0])} at {run.place(first)} to "
        f"{figure(series.value[-1])} at {figure(last)} in {counted(len(series), 'record')}, along a line of "
        f"{figure(growth.per_step)} per {run.step_name}",
        steps=(first,),
        values={
            "start": float(series.value[0]),
            "end": float(series.value[-1]),
            "per_step": growth.per_step,
            "straightness": growth.straightness,
        },
    )


def _may_cache_rows(run: Run, series: Series) -> bool:
    """Say whether it is memory of the host in the first pass over the data, in which rows may be kept as they come."""
    if series.role is None or series.role.quantity is not Quantity.HOST_MEMORY:
        return False
    passes = run.last_step if run.step_name == "epoch" else run.facts.passes_at(run.last_step)
    return passes is None or passes < 2


def _growth(run: Run, series: Series) -> Evidence | None:
    growth = lasting_growth(series)
    if growth is None:
        return None
    first, last = float(series.step[0]), float(series.step[-1])
    return Evidence(
        f"{series.name} rises from {figure(series.value[0])} at {run.place(first)} to {figure(series.value[-1])} at "
        f"{figure(last)}, {figure(growth.per_step)} per {run.step_name} in the later two thirds of the log, without "
        "levelling off",
        steps=(growth.onset,),
        values={"start": float(series.value[0]), "end": float(series.value[-1]), "per_step": growth.per_step},
    )
