"""Memory rises from step to step."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.growth import growth_of
from mldebug_mcp.measure.statistics import blocks, departure
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import counted, figure

MEMORIES = (Quantity.DEVICE_MEMORY, Quantity.HOST_MEMORY)
GROWTH, BLOCKS = 0.08, 12
"""Of its level, over twelve blocks of the later two thirds of the log. Chosen: caches have settled by then."""
STEADY_GROWTH, EVENNESS = 0.02, 0.5
"""... or this much, where no block rises by less than half of the mean rise. Chosen: only a leak is that even."""
THIRD = 3
"""Part of the log, and of what is left, that is its start and its end. Chosen: optimizer state has settled by then."""
RISING_BLOCKS = 0.75
"""Share of the blocks that rise. Chosen: a half do by chance."""
STILL = 1 / 6
"""Share of the growth that falls into the last third. Chosen: half of what an even growth has there."""
LEAST_RECORDS = 20
"""Records for the blocks. Chosen: one or two to each."""
FEW_GROWTH, STRAIGHT, FEW_STILL = 0.3, 0.99, 0.7
"""Growth, share that a line explains, and slope at the end over the start, of fewer. Chosen: caches that fill slow."""
FILLING = ("rl", "ppo", "grpo")
"""Kinds of run that fill a buffer in memory, up to its capacity: of them few records say nothing."""


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
    """Return a growth that is too large and too even to be anything else, however few records show it."""
    growth = growth_of(series)
    if growth is None or run.kind in FILLING or _may_cache_rows(run, series):
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
    late = series.value[len(series) // THIRD :]
    level = blocks(late, BLOCKS).level
    rises = np.diff(level)
    grown = float(level[-1] - level[0])
    still = float(level[-1] - level[-1 - len(level) // THIRD])
    even = float(rises.min()) >= EVENNESS * float(rises.mean())
    least = STEADY_GROWTH if even else GROWTH
    if level[0] <= 0 or grown < least * level[0] or (rises > 0).mean() < RISING_BLOCKS or still < STILL * grown:
        return None
    first, last = float(series.step[0]), float(series.step[-1])
    onset = float(series.step[departure(series.value, float(level[-1]))])
    rate = grown / (last - float(series.step[len(series) // THIRD]) or 1)
    return Evidence(
        f"{series.name} rises from {figure(series.value[0])} at {run.place(first)} to {figure(series.value[-1])} at "
        f"{figure(last)}, {figure(rate)} per {run.step_name} in the later two thirds of the log, without levelling off",
        steps=(onset,),
        values={"start": float(series.value[0]), "end": float(series.value[-1]), "per_step": rate},
    )
