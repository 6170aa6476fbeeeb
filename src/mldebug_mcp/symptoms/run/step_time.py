"""Do steps get slower over the run, or are some of them far slower than the rest?"""

from __future__ import annotations

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.facts import POLICIES
from mldebug_mcp.measure.pace import CLOCKS, LEAST_RECORDS, PACES, clocked_times, step_times
from mldebug_mcp.measure.slow_steps import SLOW, slow_steps, wait_of
from mldebug_mcp.measure.statistics import blocks, departure, end_level, median, monotone
from mldebug_mcp.symptoms.readings import first_of, outcome_of, reading
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import with_attribute
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
STEADILY = 0.6
"""Rank correlation of the times of a few records with their order. Chosen: a step up in the middle has 0.75, eight in
any order have 0.6 once in 20."""
MOSTLY = 0.6
"""Share of the time beyond the usual. Chosen: more than a half, with noise."""
TWICE = 2.0
"""Growth that is seldom the machine's own. Chosen: other work on it makes steps up to 1.7 times as long for good."""
LEAST_COST = 0.02
"""Of the time of the run: what the slow steps take beyond the usual. Chosen: less matters to nobody."""
WORKERS = 20
"""A shorter period is that of a loader with so many workers. Chosen: evaluations and checkpoints are further apart."""


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
    half, third = len(times) // 2, -(-len(times) // 3)
    early, late = times.value[:half], times.value[half:]
    apart = half > 0 and float(late.min()) >= FEW_FACTOR * float(early.max())
    climbs = median(times.value[-third:]) >= TWICE * median(times.value[:third]) and monotone(times.value) >= STEADILY
    if run.kind in POLICIES or not (apart or climbs):
        raise CannotTell(f"the time of a step has {len(times)} usable values; {LEAST_RECORDS} are needed")
    if not apart:
        early, late = times.value[:third], times.value[-third:]
    onset = float(times.step[len(early)])
    where = f"in the last {len(late)} records as in the first {len(early)}, from {run.place(onset)} on"
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
    slow = slow_steps(times)
    if slow is None:
        return None
    period = slow.period
    regular = f", every {figure(period)} {run.step_name}s" if period is not None else ""
    values = {"count": slow.count, "worst_factor": slow.factor, "cost": slow.cost}
    return Evidence(
        f"{slow.count} of {len(times)} steps on record take more than {SLOW:g} times as long as those around "
        f"them{regular}, which costs {slow.cost:.1%} of the time; the slowest, {figure(slow.factor)} times, is "
        f"{run.place(slow.worst)}",
        steps=(slow.first, slow.worst),
        values={**values, **({"period": period} if period else {})},
        present=slow.cost >= LEAST_COST and (period is None or period < WORKERS),
    )


READINGS = (
    reading(step_time_grows, sources=("smol_playbook",), background=0.004),
    reading(step_time_spikes, sources=("smol_playbook",), background=0.015),
)
"""How each outcome is seen. Chosen: the fit counts the backgrounds anew."""


def step_time_doubles(slower: Evidence) -> Evidence | None:
    """Steps come to take at least twice as long.

    Not this when: they take up to twice as long, as other work on the same machine does for a while.
    """
    factor = slower.values["factor"]
    return None if factor < TWICE else Evidence(f"steps come to take {figure(factor)} times as long", slower.steps)


def slow_steps_wait(spikes: Evidence, run: Run) -> Evidence | None:
    """The steps that take far longer wait for their data.

    Not this when: what they take beyond the usual is no wait; the wait for data is not logged in the same unit.
    """
    waits = next(run.with_role(Quantity.DATA_TIME, phase="train"), None)
    times = next(run.with_role(Quantity.STEP_TIME, phase="train"), None)
    slow = slow_steps(times.finite) if times is not None and waits is not None else None
    if slow is None or waits is None:
        raise CannotTell("not logged: how long each step takes, and how long it waits for data")
    share = wait_of(slow, waits.finite)
    if share < MOSTLY:
        return None
    said = f"waiting for data is {share:.0%} of what the slow steps take beyond the usual"
    return Evidence(said, spikes.steps, {"share": share})


@question(
    *(one.outcome for one in READINGS),
    outcome_of(step_time_doubles, 0.1, "llama3", of="step_time_grows"),
    outcome_of(slow_steps_wait, 0.1, "tuning_playbook", of="step_time_spikes", as_chosen=True),
    any_of=(*PACES, *CLOCKS),
)
def step_time(run: Run) -> Answers:
    """Compare the end with the beginning, then each step with those around it."""
    answers = with_attribute(first_of(run, READINGS), "step_time_grows", step_time_doubles)
    return with_attribute(answers, "step_time_spikes", slow_steps_wait, run)
