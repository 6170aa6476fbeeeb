"""Do steps get slower over the run, or are some of them far slower than the rest?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.pace import CLOCKS, LEAST_RECORDS, PACES, clocked_times, step_times
from mldebug_mcp.measure.statistics import blocks, departure, end_level, median
from mldebug_mcp.symptoms.readings import ask_in_turn, reading
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

FACTOR, BY_CLOCK = 1.25, 2.0
"""Times the early time of a step; by a clock, which runs through evaluations as well. Chosen: large runs keep within
4 %, small ones vary by a quarter."""
SIGMAS = 6.0
"""Times the scatter of block medians. Chosen: chance in thousands of runs."""
BLOCKS, EDGE = 20, 5
"""Blocks of records, and the part of them at each end that is a level. Chosen: four blocks of twenty."""
FEW, FEW_FACTOR = 8, 1.5
"""Records that tell as well where each of the later half takes so many times any before. Chosen: by chance 1 in 70."""
LEARNS_LATE = ("rl", "ppo", "grpo")
"""Kinds of run whose steps get slower as the agent begins to learn or writes more: few records say nothing."""
SLOW = 3.0
"""Times the usual around it that a slow step takes. Chosen: evaluations and checkpoints aside, steps vary by less."""
LEAST, MOST_SHARE = 3, 0.25
"""Slow steps, and the share of all. Chosen: more are no exception."""
LEAST_COST = 0.02
"""Of the time of the run: what the slow steps take beyond the usual. Chosen: less matters to nobody."""
JITTER = 0.1
"""Seconds. Chosen: an operating system takes so much from a step of a few milliseconds, now and then."""
WORKERS = 20
"""A shorter period is that of a loader with so many workers. Chosen: evaluations and checkpoints are further apart."""
OFF, REGULAR = 0.02, 0.9
"""Distance from a multiple of a period, and the share of slow steps that keep it. Chosen: a record may be missing."""
WIDEST, TO_A_BLOCK = 40, 25
"""Blocks at most, and records in each, that the usual time is taken from. Chosen: slow steps do not move its median."""


def step_time_grows(run: Run) -> Evidence | None:
    """Steps take clearly longer at the end of the log than before, for good.

    Where the pace is not logged, epochs or a clock tell, that of twice as long. Not this when: the first steps are slow
    or fast (compilation, caches); single steps are slow; it comes back; the batch grows as much; there are fewer than
    20 records, unless the later half all take far longer.
    """
    try:
        times, factor = step_times(run, FEW), FACTOR
    except CannotTell:
        times, factor = clocked_times(run, FEW), BY_CLOCK
    if len(times) < LEAST_RECORDS:
        return _in_few(run, times)
    cut = blocks(times.value, BLOCKS)
    edge = max(2, len(cut.level) // EDGE)
    early, slower = median(cut.level[:edge]), min(end_level(times.value), median(cut.level[-edge:]))
    if slower < factor * early or slower - early < SIGMAS * cut.wobble or slower <= early:
        return None
    onset = float(times.step[departure(times.value, slower)])
    where = f"at the end of the log as at its beginning, from {run.place(onset)} on"
    return _slower(early, slower, onset, where)


def _in_few(run: Run, times: Series) -> Evidence | None:
    """Return a growth that is plain from a handful of records; CannotTell of anything less plain."""
    half = len(times) // 2
    early, late = times.value[:half], times.value[half:]
    if run.kind in LEARNS_LATE or float(late.min()) < FEW_FACTOR * float(early.max()):
        raise CannotTell(f"the time of a step has {len(times)} usable values; {LEAST_RECORDS} are needed")
    onset = float(times.step[half])
    where = f"in the last {len(late)} records as in the {len(early)} before, from {run.place(onset)} on"
    return _slower(median(early), median(late), onset, where)


def _slower(early: float, late: float, onset: float, where: str) -> Evidence:
    said = f"steps take {late / early:.2g} times as long {where}"
    return Evidence(said, steps=(onset,), values={"early": early, "late": late, "factor": late / early})


def step_time_spikes(run: Run) -> Evidence | None:
    """Several steps take at least three times as long as those around them.

    Not this when: it is the first steps (compilation); slow steps come at a fixed distance, as evaluations and
    checkpoints do, or cost next to nothing of the run (remarks); all are slow (`step_time_grows`); it is some tens of
    milliseconds.
    """
    times = step_times(run)
    cut = blocks(times.value, max(1, min(WIDEST, len(times) // TO_A_BLOCK)))
    usual = cut.level[np.searchsorted(cut.first, np.arange(len(times)), side="right") - 1]
    least = JITTER if times.role is not None and times.role.quantity is Quantity.STEP_TIME else 0.0
    slow = np.flatnonzero((times.value > SLOW * usual) & (times.value > usual + least))
    if len(slow) < LEAST or len(slow) > MOST_SHARE * len(times):
        return None
    worst = int(slow[np.argmax((times.value / usual)[slow])])
    where, factor = float(times.step[worst]), float(times.value[worst] / usual[worst])
    cost = float(np.sum((times.value - usual)[slow]) / np.sum(times.value))
    period = _period(times.step[slow])
    regular = f", every {figure(period)} {run.step_name}s" if period is not None else ""
    return Evidence(
        f"{len(slow)} of {len(times)} steps on record take more than {SLOW:g} times as long as those around "
        f"them{regular}, which costs {cost:.1%} of the time; the slowest, {figure(factor)} times, is "
        f"{run.place(where)}",
        steps=(float(times.step[slow[0]]), where),
        values={"count": len(slow), "worst_factor": factor, "cost": cost, **({"period": period} if period else {})},
        present=cost >= LEAST_COST and (period is None or period < WORKERS),
    )


def _period(steps: Floats) -> float | None:
    """Return the distance of slow steps, if they stand at a fixed one (or multiples of it)."""
    gaps = np.diff(steps)
    period = median(gaps)
    if period <= 0:
        return None
    off = np.abs(gaps / period - np.round(gaps / period))
    return period if float((off < OFF).mean()) >= REGULAR else None


ask_in_turn(
    "step_time",
    reading(step_time_grows, sources=("smol_playbook",), background=0.004),
    reading(step_time_spikes, sources=("smol_playbook",), background=0.015),
    any_of=(*PACES, *CLOCKS),
)
