"""Do steps get slower, does the device wait for data, does memory grow, and is one rank unlike the others?"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain, pairwise

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, ask_in_turn, outcome_of, some, symptom, too_few
from mldebug_mcp.checks.curve import (
    LEAST_FOR_COURSE,
    aligned,
    blocks,
    departure,
    end_level,
    monotone,
    noise,
    row_medians,
    true_at_end,
)
from mldebug_mcp.checks.evaluation import as_shares
from mldebug_mcp.checks.progress import is_late
from mldebug_mcp.core.arrays import are_whole, median, median_gap, quantile
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import counted, figure, ratio
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity, role_of
from mldebug_mcp.logs.names.quantities import CLOCKS, THROUGHPUTS
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.settings import POLICIES

# How long a step takes, by whatever name a log gives it.


RATES = (
    Quantity.TOKENS_PER_SECOND,
    Quantity.SAMPLES_PER_SECOND,
    Quantity.STEPS_PER_SECOND,
    Quantity.THROUGHPUT,
)
"""Throughputs whose inverse is the step time, up to a factor: only its changes are judged."""
PACES = (Quantity.STEP_TIME, "time", *RATES)
STEP_CLOCKS = (Quantity.EPOCH_TIME, Quantity.ELAPSED, Quantity.TIMESTAMP)
BATCHES = ("global batch size", "global_batch_size", "batch_size", "train_batch_size", "bsz")
"""Rows in a step, which some recipes raise in stages: a step of more rows takes longer, and is not slower for that."""
WARMUP_SHARE = 0.05
"""Share of the records at the start. Chosen: they hold compilation and the filling of caches."""
SAME_MEAN = 0.05
"""So nearly is a rate times the time since the start the number of steps if it is their mean. Chosen: a clock's lag."""
LEAST_TICKS = 10
"""Seconds between records. Chosen: a clock of whole seconds tells so many to a tenth."""


def step_times(run: Run, least: int = LEAST_FOR_COURSE) -> Series:
    """Return how long steps take, without the first records; the unit is the log's own.

    Where the batch grows, it is the time of as many rows as a step had at first. `least` records are needed.

    Raises:
        CannotTell: too few values, or a column named `time` that is a clock.
    """
    logged = next(run.with_role(Quantity.STEP_TIME), None) or run.series.get("time")
    logged = logged or next(run.with_role(*RATES, phase="train", parts=True), None)
    if logged is None:
        raise CannotTell("the pace of training is not logged, only that of evaluation")
    series = logged.finite
    if logged.name == "time" and "data_time" not in run:
        raise CannotTell("a column named time may be a clock as well as a step time")
    series = series.where(series.value > 0)
    if series.role is not None and series.role.quantity in RATES:
        clock = _clock_of_mean(run, series)
        series = Series("step_time", series.step, 1 / series.value).finite if clock is None else _between_ticks(clock)
    elif logged.name != "time":
        series = _of_as_many_rows(run, series)
    skip = max(1, int(WARMUP_SHARE * len(series)))
    if len(series) - skip < least:
        raise CannotTell(f"{logged.name} has {counted(len(series), 'usable value')}; {least + 1} are needed")
    keep = np.arange(len(series)) >= skip
    return series.where(keep)


def clocked_times(run: Run, least: int) -> Series:
    """Return how long epochs take, or steps by a clock, where the pace itself is not logged.

    Evaluations and checkpoints between two records count as well.

    Raises:
        CannotTell: too few values, and no clock; an agent, between whose episodes it learns now and then.
    """
    if run.kind in POLICIES:
        raise CannotTell("an agent learns between its episodes, and a clock tells all of it")
    series = next(run.with_role(Quantity.EPOCH_TIME, phase="train"), None)
    if series is None:
        clock = next(run.with_role(Quantity.ELAPSED, Quantity.TIMESTAMP, phase="train"), None)
        if clock is None:
            raise CannotTell("neither the pace nor a clock is logged")
        series = _between_ticks(clock.finite)
    series = series.finite.where(series.finite.value > 0)
    if len(series) < least + 1:
        raise CannotTell(f"{series.name} has {counted(len(series), 'usable value')}; {least + 1} are needed")
    return series.since_record(max(1, int(WARMUP_SHARE * len(series))))


def _clock_of_mean(run: Run, rate: Series) -> Series | None:
    """Return the clock of a rate that is the mean since the start: all steps over all the time.

    Stable-Baselines3 logs such a `time/fps`. It goes on falling long after a change, such as an agent that begins to
    learn.
    """
    elapsed = next(run.with_role(Quantity.ELAPSED), None)
    if elapsed is None:
        return None
    step, rates, seconds = aligned(rate, elapsed.finite)
    late = (np.arange(len(step)) >= len(step) // 2) & (seconds > 0) & (step > 0)
    if int(late.sum()) < 2:
        return None
    made = rates[late] * seconds[late] / step[late]
    rounding = sum(1 / float(array[late].min()) for array in (rates, seconds) if are_whole(array))
    return elapsed.finite if float(made.max() / made.min()) < 1 + SAME_MEAN + rounding else None


def _between_ticks(clock: Series) -> Series:
    """Return the time per step between the records of a clock.

    Raises:
        CannotTell: it tells whole seconds, and records lie only a few of them apart.
    """
    if len(clock) < 2 or (are_whole(clock.value) and median(np.diff(clock.value)) < LEAST_TICKS):
        raise CannotTell(f"the pace is logged as a mean since the start, and {clock.name} in seconds too coarse for it")
    return _per_step(clock)


def _per_step(clock: Series) -> Series:
    steps = np.diff(clock.step)
    moves = steps > 0
    return Series("step_time", clock.step[1:][moves], np.diff(clock.value)[moves] / steps[moves]).finite


def _of_as_many_rows(run: Run, times: Series) -> Series:
    """Return the times as if all steps had as many rows as the first, where the log reports batches that grow."""
    name = next((batch for batch in BATCHES if batch in run), None)
    if name is None:
        return times
    step, rows, value = aligned(run[name].finite, times)
    if not len(rows) or float(rows.min()) <= 0 or float(rows[-1]) <= float(rows[0]):
        return times
    return Series(times.name, step, value * rows[0] / rows)


# Single steps that take far longer than those around them, and whether they come at a fixed distance.


MIN_SLOW_STEP_RATIO = 3.0
"""Times the usual around it that a slow step takes. Chosen: evaluations and checkpoints aside, steps vary by less."""
SLOW_STEPS_LEAST = 3
"""Slow steps. Chosen: by hand."""
MOST_SHARE = 0.25
"""Share of all steps that they are at most. Chosen: more are no exception."""
MAX_JITTER_SECONDS = 0.1
"""Seconds. Chosen: an operating system takes so much from a step of a few milliseconds, now and then."""
MAX_PERIOD_DEVIATION = 0.02
"""Distance from a multiple of a period. Chosen: by hand."""
MIN_REGULAR_STEP_SHARE = 0.9
"""Share of slow steps that keep the period. Chosen: a record may be missing."""
MAX_USUAL_TIME_BLOCKS = 40
"""Blocks at most that the usual time is taken from. Chosen: slow steps do not move its median."""
TO_A_BLOCK = 25
"""Records in each block. Chosen: slow steps do not move its median."""


def slow_steps(times: Series) -> tuple[Series, Floats] | None:
    """Return the slow ones of some steps, and the usual time around each, shape (slow steps,).

    None if there are too few, or so many that they are no exception.
    """
    cut = blocks(times.value, max(1, min(MAX_USUAL_TIME_BLOCKS, len(times) // TO_A_BLOCK)))
    least = MAX_JITTER_SECONDS if times.role is not None and times.role.quantity is Quantity.STEP_TIME else 0.0
    beyond = np.maximum(MIN_SLOW_STEP_RATIO * cut.level, cut.level + least).tolist()
    edges = pairwise([*cut.first.tolist(), len(times)])
    slow = np.concatenate(
        [
            start + np.flatnonzero(times.value[start:end] > most)
            for (start, end), most in zip(edges, beyond, strict=True)
        ]
    )
    if len(slow) < SLOW_STEPS_LEAST or len(slow) > MOST_SHARE * len(times):
        return None
    usual = cut.level[np.searchsorted(cut.first, slow, side="right") - 1]
    return Series(times.name, times.step[slow], times.value[slow]), usual


def _period(steps: Floats) -> float | None:
    """Return the distance of steps, if it is fixed (or multiples of it)."""
    gaps = np.diff(steps)
    period = median(gaps)
    if period <= 0:
        return None
    off = np.abs(gaps / period - np.round(gaps / period))
    return period if float((off < MAX_PERIOD_DEVIATION).mean()) >= MIN_REGULAR_STEP_SHARE else None


# Do steps get slower over the run, or are some of them far slower than the rest?


MIN_TIMES_EARLY_STEP = 1.25
"""Times the early time of a step. Chosen: large runs keep within 4 %, small ones vary by a quarter."""
BY_CLOCK = 2.0
"""The same by a clock, which runs through evaluations as well. Chosen: by hand."""
MIN_SLOWING_SIGMAS = 6.0
"""Times the scatter of block medians. Chosen: chance in thousands of runs."""
STEP_TIME_BLOCKS = 20
"""Blocks of records. Chosen: by hand."""
EDGE_BLOCKS_DIVISOR = 5
"""Part of the blocks at each end that is a level. Chosen: four blocks of twenty."""
STEP_TIME_FEW = 8
"""Records that tell as well where each of the later half takes long. Chosen: by chance 1 in 70."""
FEW_FACTOR = 1.5
"""Times any record before that each of them then takes. Chosen: by hand."""
MIN_CLIMB_CORRELATION = 0.6
"""Rank correlation of the times of a few records with their order. Chosen: a step up in the middle has 0.75, eight in
any order have 0.6 once in 20."""
MIN_SHARE_OF_EXTRA_TIME = 0.6
"""Share of the time beyond the usual. Chosen: more than a half, with noise."""
MIN_LASTING_SLOWDOWN_RATIO = 2.0
"""Growth that is seldom the machine's own. Chosen: other work on it makes steps up to 1.7 times as long for good."""
LEAST_COST = 0.02
"""Of the time of the run: what the slow steps take beyond the usual. Chosen: less matters to nobody."""
MAX_LOADER_PERIOD_STEPS = 20
"""A shorter period is that of a loader with so many workers. Chosen: evaluations and checkpoints are further apart."""


def step_time_grows(run: Run) -> Evidence | None:
    """Steps take clearly longer at the end of the log than before, for good.

    Where the pace is not logged, epochs or a clock tell, that of twice as long. Not this when: the first steps are slow
    or fast (compilation, caches); single steps are slow; it comes back; the batch grows as much; there are fewer than
    20 records, unless the later half all take far longer.
    """
    try:
        times, factor = step_times(run, STEP_TIME_FEW), MIN_TIMES_EARLY_STEP
    except CannotTell:
        times, factor = clocked_times(run, STEP_TIME_FEW), BY_CLOCK
    if len(times) < LEAST_FOR_COURSE:
        return _in_few(run, times)
    cut = blocks(times.value, STEP_TIME_BLOCKS)
    edge = max(2, len(cut.level) // EDGE_BLOCKS_DIVISOR)
    early, slower = median(cut.level[:edge]), min(end_level(times.value), median(cut.level[-edge:]))
    if slower < factor * early or slower - early < MIN_SLOWING_SIGMAS * cut.wobble or slower <= early:
        return None
    onset = float(times.step[departure(times.value, slower)])
    where = f"at the end of the log as at its beginning, from {run.place(onset)} on"
    return _slower(early, slower, onset, where)


def _in_few(run: Run, times: Series) -> Evidence | None:
    """Return a growth that is plain from a handful of records; CannotTell of anything less plain."""
    half, third = len(times) // 2, -(-len(times) // 3)
    early, late = times.value[:half], times.value[half:]
    apart = half > 0 and float(late.min()) >= FEW_FACTOR * float(early.max())
    climbs = (
        median(times.value[-third:]) >= MIN_LASTING_SLOWDOWN_RATIO * median(times.value[:third])
        and monotone(times.value) >= MIN_CLIMB_CORRELATION
    )
    if run.kind in POLICIES or not (apart or climbs):
        raise CannotTell(f"the time of a step has {len(times)} usable values; {LEAST_FOR_COURSE} are needed")
    if not apart:
        early, late = times.value[:third], times.value[-third:]
    onset = float(times.step[len(early)])
    where = f"in the last {len(late)} records as in the first {len(early)}, from {run.place(onset)} on"
    return _slower(median(early), median(late), onset, where)


def _slower(early: float, late: float, onset: float, where: str) -> Evidence:
    summary = f"steps take {late / early:.2g} times as long {where}"
    return Evidence(summary, steps=(onset,), values={"early": early, "late": late, "factor": late / early})


def step_time_spikes(run: Run) -> Evidence | None:
    """Several steps take at least three times as long as those around them.

    Not this when: it is the first steps (compilation); slow steps come at a fixed distance, as evaluations and
    checkpoints do, or cost next to nothing of the run (remarks); all are slow (`step_time_grows`); it is some tens of
    milliseconds.
    """
    times = step_times(run)
    if (found := slow_steps(times)) is None:
        return None
    slow, usual = found
    period, cost = _period(slow.step), float(np.sum(slow.value - usual) / np.sum(times.value))
    worst = int(np.argmax(slow.value / usual))
    factor, at = float(slow.value[worst] / usual[worst]), float(slow.step[worst])
    regular = f", every {figure(period)} {run.step_name}s" if period is not None else ""
    values = {"count": len(slow), "worst_factor": factor, "cost": cost}
    return Evidence(
        f"{len(slow)} of {len(times)} steps on record take more than {MIN_SLOW_STEP_RATIO:g} times as long as those "
        f"around them{regular}, which costs {cost:.1%} of the time; the slowest, {ratio(factor)} times, is "
        f"{run.place(at)}",
        steps=(float(slow.step[0]), at),
        values={**values, **({"period": period} if period else {})},
        present=cost >= LEAST_COST and (period is None or period < MAX_LOADER_PERIOD_STEPS),
    )


def step_time_doubles(slower: Evidence, _: Run) -> Evidence | None:
    """Steps come to take at least twice as long.

    Not this when: they take up to twice as long, as other work on the same machine does for a while.
    """
    factor = slower.values["factor"]
    return (
        None
        if factor < MIN_LASTING_SLOWDOWN_RATIO
        else Evidence(f"steps come to take {ratio(factor)} times as long", slower.steps)
    )


def slow_steps_wait(spikes: Evidence, run: Run) -> Evidence | None:
    """The steps that take far longer wait for their data.

    Not this when: what they take beyond the usual is not a wait; the wait for data is not logged in the same unit.
    """
    waits = next((series.finite for series in run.with_role(Quantity.DATA_TIME, phase="train")), None)
    times = next((series.finite for series in run.with_role(Quantity.STEP_TIME, phase="train")), None)
    found = slow_steps(times) if times is not None and waits is not None else None
    if found is None or waits is None:
        raise CannotTell("not logged: how long each step takes, and how long it waits for data")
    slow, usual = found
    waited = np.maximum(waits.value[np.isin(waits.step, slow.step)] - median(waits.value), 0)
    beyond = float(np.sum(slow.value - usual))
    share = min(1.0, float(np.sum(waited)) / beyond) if beyond > 0 else 0.0
    if share < MIN_SHARE_OF_EXTRA_TIME:
        return None
    summary = f"waiting for data is {share:.0%} of what the slow steps take beyond the usual"
    return Evidence(summary, spikes.steps, {"share": share})


ask_in_turn(
    "step_time",
    outcome_of(step_time_grows, 0.004, "smol_playbook"),
    outcome_of(step_time_spikes, 0.015, "smol_playbook"),
    outcome_of(step_time_doubles, 0.1, "llama3", of="step_time_grows"),
    outcome_of(slow_steps_wait, 0.1, "tuning_playbook", of="step_time_spikes", as_chosen=True),
    any_of=(*PACES, *STEP_CLOCKS),
)


# The share of each step that is spent waiting for data.


PERCENT = "time_metrics/data_loading(%)"
"""torchtitan's name for the share itself, in per cent."""


def data_wait(run: Run) -> Series | None:
    """Return the share of each recorded step that waits for data, between 0 and 1; None if unknown.

    The step is as long as its own time says. Else, where each step has a record, as a rate of steps or the clock does:
    of several steps to a record, none tells whether the wait is that of one of them or of all. Else it is as long as
    the wait and the passes through the model together. A step time that is shorter than the wait does not hold it.
    """
    if PERCENT in run:
        percent = run[PERCENT].finite
        return Series("share", percent.step, percent.value / 100)
    data = next(run.with_role(Quantity.DATA_TIME, phase="train", parts=True), None)
    whole = (_step_time(run, data.finite) or _of_parts(run, data.finite)) if data is not None else None
    if data is None or whole is None:
        return None
    step, waited, total = aligned(data.finite, whole)
    keep = (total > 0) & (waited >= 0)
    if not keep.all():
        step, waited, total = step[keep], waited[keep], total[keep]
    return Series("share", step, waited / np.where(waited > total, waited + total, total))


def _step_time(run: Run, data: Series) -> Series | None:
    """Return the seconds that a step takes, from a rate or clock only where the wait is logged at each step."""
    named = next(run.with_role(Quantity.STEP_TIME, phase="train"), run.series.get("time"))
    if named is not None:
        return named.finite
    if run.step_name != "step" or len(data) < 2 or median_gap(data.step) != 1:
        return None
    rate = next(run.with_role(Quantity.STEPS_PER_SECOND, phase="train"), None)
    if rate is not None:
        moving = rate.finite.where(rate.finite.value > 0)
        return Series("step_time", moving.step, 1 / moving.value)
    clock = next(run.with_role(Quantity.ELAPSED, Quantity.TIMESTAMP), None)
    return None if clock is None else _forward(clock)


BACKWARD_FORWARD_RATIO = 2.0
"""Times a forward pass that a backward pass takes. Chosen: it has two products of matrices where that has one."""
_BOTH_PASSES = frozenset({"bwd", "backward", "compute"})
"""Words of a time of the forward pass that holds the backward pass as well."""
BEYOND_PARTS = 1.5
"""Times the parts of a step that it takes by a clock, from which on they are not all of it. Chosen: by hand."""


def _of_parts(run: Run, data: Series) -> Series | None:
    """Return the wait and the passes of each step together; None where these are unknown or not all by the clock."""
    roles = ((name, role_of(f"{name}_s")) for name, series in run.series.items() if series.role is None)
    bare = (run[name] for name, role in roles if role and role.quantity == Quantity.FORWARD_TIME)  # "fwd_bwd=11ms"
    forward = next(chain(run.with_role(Quantity.FORWARD_TIME, phase="train"), bare), None)
    if forward is None or not len(forward.finite):
        return None
    backward = next(run.with_role(Quantity.BACKWARD_TIME, phase="train"), None)
    step, waited, passes = aligned(data, forward.finite)
    if backward is not None:
        step, passes, more = aligned(Series("", step, passes), backward.finite)
        step, waited, passes = aligned(Series("", data.step, data.value), Series("", step, passes + more))
    elif _BOTH_PASSES.isdisjoint(pieces_of(forward.logged_as or forward.name)):
        passes = (1 + BACKWARD_FORWARD_RATIO) * passes
    whole = waited + passes
    clock = next(run.with_role(Quantity.ELAPSED, Quantity.TIMESTAMP), None)
    by_clock = _forward(clock).value if clock is not None else whole
    is_all = len(whole) and len(by_clock) and median(by_clock) <= BEYOND_PARTS * median(whole)
    return Series("step_time", step, whole) if is_all else None


def _forward(clock: Series) -> Series:
    """Return the seconds per step between the records of a clock, where it goes forward."""
    times = _per_step(clock.finite)
    return times.where(times.value > 0)


# Does the device wait for data?


MIN_DATA_WAIT_SHARE = 0.3
"""Of the step that waits for data. Chosen: a loader that keeps up hides behind the computation."""
WAIT_START_DIVISOR = 10
"""Part of the records that is the start. Chosen: a tenth, in which workers start and things are compiled."""
WAIT_END_DIVISOR = 5
"""Part of the records that is the end. Chosen: one slow stretch is shorter than a fifth."""
MIN_LATE_WAIT_SHARE = 0.9
"""Share of the records at the end that wait as long. Chosen: a single one may find its data ready."""
WAIT_LEAST = 5
"""Records, without the first tenth. Chosen: a median of fewer may be one slow step."""
WAIT_FEW = 2
"""Records that tell as well where each waits long. Chosen: no slow start does that twice."""
MOST_OF_STEP = 0.5
"""Share of its step that each then waits for. Chosen: by hand."""
MAX_IDLE_DEVICE_UTILISATION = 0.5
"""Share of the time in which a device works, below which it waits for most of a step. Chosen: by hand."""


def unmeasured(run: Run) -> Series | None:
    """Return the share of each step that neither of its passes nor the optimizer takes, None where they are not logged.

    Timers of a host end when work is queued, not when it is done: only of a device that is seldom busy do they tell.
    """
    busy = next(run.with_role(Quantity.DEVICE_UTILISATION), None)
    whole = next(run.with_role(Quantity.STEP_TIME, phase="train"), None)
    passes = [
        next(run.with_role(quantity, phase="train"), None)
        for quantity in (Quantity.FORWARD_TIME, Quantity.BACKWARD_TIME)
    ]
    if (
        busy is None
        or whole is None
        or not len(busy.finite)
        or median(as_shares(busy.finite.value)) >= MAX_IDLE_DEVICE_UTILISATION
    ):
        return None
    optimizer = next(run.with_role(Quantity.OPTIMIZER_TIME, phase="train"), None)
    left = whole.finite
    for series in (*passes, *([optimizer] if optimizer is not None else [])):
        if series is None:
            return None
        step, total, part = aligned(left, series.finite)
        left = Series("share", step, total - part)
    step, total, rest = aligned(whole.finite, left)
    keep = (total > 0) & (rest >= 0)
    return Series("share", step[keep], rest[keep] / total[keep])


@symptom(any_of=(Quantity.DATA_TIME, PERCENT, Quantity.FORWARD_TIME), sources=("tuning_playbook",), background=0.004)
def data_wait_high(run: Run) -> Evidence | None:
    """Waiting for data takes a third of the step or more, step after step.

    So it may be throughout, or in the last part of the log alone.

    Where the log gives no time for a step, its rate of steps or its clock does; where it gives no time for data, what
    its passes and the optimizer leave of a step does, of a device that is seldom busy. Not this when: only the first
    steps wait (workers start, caches fill); single steps do (`step_time_spikes`); the time is that of evaluation.
    """
    logged = data_wait(run)
    shares = logged if logged is not None else unmeasured(run)
    if shares is None:
        raise CannotTell("not logged: how long a step waits for data, and how long it takes")
    skip = max(1, len(shares) // WAIT_START_DIVISOR)
    value, step = shares.value[skip:], shares.step[skip:]
    if len(value) < WAIT_LEAST and not (len(value) >= WAIT_FEW and float(value.min()) >= MOST_OF_STEP):
        raise CannotTell(
            f"{counted(len(shares), 'record')} with the time for data and for the step; {WAIT_LEAST + 1} are needed"
        )
    since = 0
    if median(value) < MIN_DATA_WAIT_SHARE:
        late = value[-max(WAIT_LEAST, len(value) // WAIT_END_DIVISOR) :]
        if quantile(late, 1 - MIN_LATE_WAIT_SHARE) < MIN_DATA_WAIT_SHARE:
            return None
        since = departure(value, median(late))
        since += int(np.argmax(value[since:] >= MIN_DATA_WAIT_SHARE))
    value, step = value[since:], step[since:]
    typical, mean = median(value), float(np.mean(value))
    onset = float(step[int(np.argmax(value >= MIN_DATA_WAIT_SHARE))])
    what = "waiting for data takes"
    if logged is None:
        what = "the device is seldom busy, and what is left of a step by its passes and the optimizer takes"
    return Evidence(
        f"{what} {typical:.0%} of a typical step (mean {mean:.0%} of {counted(len(value), 'record')}), "
        f"from {run.place(onset)} on",
        steps=(onset,),
        values={"share": typical, "mean_share": mean},
    )


# Memory rises from step to step.


MIN_MEMORY_GROWTH_SHARE = 0.08
"""Share of its level that memory grows by. Chosen: caches have settled by then."""
GROWTH_BLOCKS = 12
"""Blocks of the later two thirds of the log. Chosen: by hand."""
STEADY_GROWTH = 0.02
"""The same where it grows evenly. Chosen: only a leak is that even."""
MIN_EVEN_RISE_SHARE = 0.5
"""Share of the mean rise that no block then rises less than. Chosen: only a leak is that even."""
GROWTH_PART_DIVISOR = 3
"""Part of the log, and of what is left, that is its start and its end. Chosen: optimizer state has settled by then."""
RISING_BLOCKS = 0.75
"""Share of the blocks that rise. Chosen: a half do by chance."""
STILL = 1 / 6
"""Share of the growth that falls into the last third. Chosen: half of what an even growth has there."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The straight line through a curve.

    Args:
        per_step: Its slope.
        share: How far it rises from the first record to the last, as a share of the first level.
        straightness: Share of the variance that it explains (R²), 0 of a curve that does not move.
        still: Slope over the last third of the records over that of the first third; 1 where it does not slow down.
    """

    per_step: float
    share: float
    straightness: float
    still: float


def growth_of(series: Series) -> Growth | None:
    """Return how a curve grows, without its first record, in which things are set up; None below six of them."""
    step, value = series.finite.step[1:], series.finite.value[1:]
    if len(value) < 5 or float(value[0]) <= 0 or float(step[-1]) <= float(step[0]):
        return None
    spread = float(np.var(value))
    slope, first = (float(coefficient) for coefficient in np.polyfit(step - step[0], value, 1))
    rest = float(np.var(value - first - slope * (step - step[0])))
    third = max(2, len(value) // 3)
    early, late = (
        float((value[part][-1] - value[part][0]) / max(step[part][-1] - step[part][0], 1e-12))
        for part in (slice(third), slice(-third, None))
    )
    return Growth(
        per_step=slope,
        share=slope * float(step[-1] - step[0]) / float(value[0]),
        straightness=1 - rest / spread if spread > 0 else 0.0,
        still=late / early if early > 0 else 0.0,
    )


def lasting_growth(series: Series) -> tuple[float, float] | None:
    """Return what each step adds over the later two thirds of a curve, and where it leaves its first level.

    None where it does not grow, or levels off.
    """
    later = len(series) // GROWTH_PART_DIVISOR
    cut = blocks(series.value[later:], GROWTH_BLOCKS)
    level = cut.level
    rises = np.diff(level)
    grown = float(level[-1] - level[0])
    still = float(level[-1] - level[-1 - len(level) // GROWTH_PART_DIVISOR])
    is_even = float(rises.min()) >= MIN_EVEN_RISE_SHARE * float(rises.mean())
    least = STEADY_GROWTH if is_even else MIN_MEMORY_GROWTH_SHARE
    if level[0] <= 0 or grown < least * level[0] or (rises > 0).mean() < RISING_BLOCKS or still < STILL * grown:
        return None
    onset = float(series.step[departure(series.value, float(level[-1]))])
    first, last = series.step[later : later + cut.first[1]], series.step[later + cut.first[-1] :]
    return grown / ((median(last) - median(first)) or 1), onset


MEMORIES = (Quantity.DEVICE_MEMORY, Quantity.HOST_MEMORY)
MEMORY_GROWS_LEAST_RECORDS = 20
"""Records for the blocks. Chosen: one or two to each."""
FEW_GROWTH = 0.3
"""Growth of memory that few records show. Chosen: by hand."""
MIN_GROWTH_STRAIGHTNESS = 0.99
"""Share of that growth that a line explains. Chosen: the growth of caches that fill slows."""
FEW_STILL = 0.7
"""Slope at the end over that at the start. Chosen: the growth of caches that fill slows."""


@symptom(any_of=MEMORIES, sources=("pytorch_gpu_memory_2", "rahtz_reproducing"), background=0.004)
def memory_grows(run: Run) -> Evidence | None:
    """Memory in use rises by a like amount again and again, up to the end of the log.

    Not this when: it rises at first and levels off; it steps up once or twice, as a peak counter does; it swings.
    """
    logged = some([series.finite for series in run.with_role(*MEMORIES, parts=True)], "not logged: memory in use")
    judged = [series for series in logged if len(series) >= MEMORY_GROWS_LEAST_RECORDS]
    if not judged:
        few = next((growth for series in logged if (growth := _growth_in_few_records(run, series)) is not None), None)
        if few is not None:
            return few
        raise too_few("memory", max(map(len, logged)), MEMORY_GROWS_LEAST_RECORDS)
    return next((evidence for series in judged if (evidence := _growth(run, series)) is not None), None)


def _growth_in_few_records(run: Run, series: Series) -> Evidence | None:
    """Return a growth that is too large and too even to be anything else, however few records show it.

    Of policies few say nothing, as they fill a buffer in memory up to its capacity.
    """
    growth = growth_of(series)
    if growth is None or run.kind in POLICIES or _may_cache_rows(run, series):
        return None
    if growth.share < FEW_GROWTH or growth.straightness < MIN_GROWTH_STRAIGHTNESS or growth.still < FEW_STILL:
        return None
    how = f" in {counted(len(series), 'record')}, along a line of {figure(growth.per_step)} per {run.step_name}"
    values = {"per_step": growth.per_step, "straightness": growth.straightness}
    return _rises(run, series, float(series.step[0]), how, **values)


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
    per_step, onset = growth
    how = f", {figure(per_step)} per {run.step_name} in the later two thirds of the log, without levelling off"
    return _rises(run, series, onset, how, per_step=per_step)


def _rises(run: Run, series: Series, onset: float, how: str, **values: float) -> Evidence:
    start, end = float(series.value[0]), float(series.value[-1])
    return Evidence(
        f"{series.name} rises from {figure(start)} at {run.place(series.step[0])} to {figure(end)} at "
        f"{figure(series.step[-1])}{how}",
        steps=(onset,),
        values={"start": start, "end": end, **values},
    )


# What single ranks log of times, throughputs, losses and gradient norms, and which rank is unlike the others.


_RANK = r"(?:rank|gpu|node|worker|device|host)[_-]?(?P<rank>\d+)"
_FIRST = regex(rf"(?P<group>(?:[^/]+/)*){_RANK}[/_.-](?P<metric>.+)", re.IGNORECASE)
_LAST = regex(rf"(?P<metric>.+)[/_.-]{_RANK}", re.IGNORECASE)
_LISTED = regex(r"(?P<metric>.+)/(?P<rank>\d+)")
_TIMES = frozenset({"t", "time", "times", "latency", "duration", "us", "ms", "sec", "secs", "seconds"})
"""Words of a time that a rank takes for a step, or for a part of it."""
_BY = frozenset({"by", "per"})
"""Words behind which stands what values are split by: `by_t` holds a value for each stretch of times."""
_OF_COMPUTING = regex(r"compute|forward|backward|fwd|bwd|kernel|matmul", re.IGNORECASE)
MIN_RECORDS_PER_RANK = 5
"""Records of each rank. Chosen: a median needs some records."""
MAX_EQUAL_NORM_DIFFERENCE = 1e-3
"""Relative difference of norms that are one. Chosen: ranks reduce in one order."""
MIN_PARTED_NORM_DIFFERENCE = 1e-2
"""Relative difference of norms that are not one. Chosen: ranks reduce in one order."""
MID_RUN = 0.1
"""Share of the run beyond which a log begins in mid-run. Chosen: by then ranks may have parted."""
MID_RUN_STEPS = 50.0
"""Steps beyond which a log begins in mid-run. Chosen: by then ranks may have parted."""
MIN_LOSS_RATIO = 1.5
"""Times the losses of all other ranks that one ends above. Chosen: shares of one batch scatter about one level."""
FAR_SIGMAS = 3.0
"""Times the noise of records that it ends above them. Chosen: shares of one batch scatter about one level."""


def by_metric(run: Run) -> Mapping[str, Mapping[int, Series]]:
    """Return the times, throughputs and losses that are logged by rank, by metric and rank.

    Lists that are as long as the ranks are many have a value for each.
    """
    metrics: dict[str, dict[int, Series]] = defaultdict(dict)
    lists = Counter(listed["metric"] for listed in map(_LISTED.fullmatch, run.series) if listed)
    for name in run.series:
        match = _FIRST.fullmatch(name) or _LAST.fullmatch(name) or _LISTED.fullmatch(name)
        if match and match.re is _LISTED and lists[match["metric"]] != run.setting("world_size"):
            continue
        metric = match.groupdict().get("group", "") + match["metric"] if match else ""
        if match and (_is_time(metric) or _is_throughput(metric) or _is_result(metric)):
            metrics[metric][int(match["rank"])] = run[name]
    return metrics


def _is_time(metric: str) -> bool:
    role = role_of(metric)
    if role is not None:
        return role.quantity.is_duration and role.quantity not in CLOCKS
    words = pieces_of(metric)
    return any(word in _TIMES and before not in _BY for before, word in zip(("", *words), words, strict=False))


_OF_WEIGHTS = frozenset({"w", "weight", "weights", "param", "params", "update", "updates", "activation", "act"})


def _is_gradient_norm(metric: str) -> bool:
    """Say whether a metric is the norm of a gradient: so is a norm by rank that names nothing else."""
    role = role_of(metric)
    words = set(pieces_of(metric))
    return role.quantity is Quantity.GRADIENT_NORM if role else "norm" in words and words.isdisjoint(_OF_WEIGHTS)


def _is_result(metric: str) -> bool:
    role = role_of(metric)
    return _is_gradient_norm(metric) or (role is not None and role.quantity is Quantity.LOSS)


def _is_throughput(metric: str) -> bool:
    role = role_of(metric)
    return role is not None and role.quantity in THROUGHPUTS


MIN_SLOW_RANK_RATIO = 1.2
"""Times the slowest of the others. Chosen: shares of a batch differ by less."""
MIN_SHARE_OF_STEP = 0.05
"""Share of the step time by which it is slower. Chosen: less of a difference costs nothing worth a repair."""
MIN_RANK_SIGMAS = 3.0
"""Times the noise from record to record between a rank and the others. Chosen: a median has less noise than that."""
SLOWER_IN = 0.8
"""Share of the records in which it is slower, and no other rank is. Chosen: noise has half of them."""
SLOWEST_IN = 0.5
"""Share of the records in which it is the slowest of all. Chosen: a median moves with single slow steps where all ranks
become slow at once."""
BEYOND_OTHER_RANKS = 1e6
"""Times the largest value of the other ranks. Chosen: no rows of one data set differ by that."""
LOST_ALONE = "lost_alone"
"""The value that says that one rank is not finite and no other one follows."""
COMPUTES_SLOWLY = "computes_slowly"
"""The value that says that what it takes longer for is computing, which waits for no data."""
LEAST_RANKS = 3
"""Ranks. Chosen: of two nobody knows which is unlike."""


def rank_differs(run: Run) -> Evidence | None:
    """A rank parts from the others: it is slower, has another gradient, or a loss far above or not finite first.

    A gradient norm that was the same on all ranks, as their gradients are averaged, and no longer is, says that they
    train different models. Not this when: all ranks are slow, or slow in turn; there are but two of them and no
    gradient norms; norms differ from the start, as those of shards do.
    """
    if (part := _parted(run)) is not None:
        return part
    judged = [(metric, ranks) for metric, ranks in by_metric(run).items() if len(ranks) >= LEAST_RANKS]
    if not judged:
        raise CannotTell(f"times or losses of {LEAST_RANKS} ranks, each under its own name, are not logged")
    found = (_broken(run, *pair) or _astray(run, *pair) or _now_and_then(*pair) for pair in judged)
    return next((evidence for evidence in found if evidence is not None), None) or _slow(run, judged)


def _parted(run: Run) -> Evidence | None:
    """Return where gradient norms that were the same on all ranks part for good."""
    by_rank = by_metric(run)
    metric = next(filter(_is_gradient_norm, by_rank), "")
    ranks = {rank: series.finite for rank, series in by_rank.get(metric, {}).items()}
    if len(ranks) < 2:
        return None
    steps = reduce(np.intersect1d, (rank.step for rank in ranks.values()))
    if len(steps) < 2 * MIN_RECORDS_PER_RANK:
        return None
    norms = np.array([rank.value[np.searchsorted(rank.step, steps)] for rank in ranks.values()])
    apart = np.ptp(norms, axis=0) / np.maximum(np.abs(norms).max(axis=0), np.finfo(float).tiny)
    parted = true_at_end(apart > MIN_PARTED_NORM_DIFFERENCE)
    if float(apart[:MIN_RECORDS_PER_RANK].max()) > MAX_EQUAL_NORM_DIFFERENCE or parted < MIN_RECORDS_PER_RANK:
        return None
    at = len(steps) - parted
    away = np.abs(norms[:, at:] - row_medians(norms[:, at:].T)).mean(axis=1)
    farthest = list(ranks)[int(np.argmax(away))]
    return Evidence(
        f"{metric} is the same on all {len(ranks)} ranks up to {run.place(steps[at - 1])} and differs from "
        f"{run.place(steps[at])} on, most on rank {farthest}",
        steps=(float(steps[at]),),
        values={"rank": farthest, "ranks": len(ranks)},
    )


def _broken(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Return the one rank whose losses are lost before any other's: averaged gradients bring them to all.

    Lost is what is not finite, or runs off beyond all measure of the other ranks in the record before that.
    """
    since = {rank: series.step[~np.isfinite(series.value)] for rank, series in ranks.items()}
    if _is_result(metric) and (off := _runs_off(run, metric, ranks, since)) is not None:
        return off
    first = sorted((float(steps[0]), rank) for rank, steps in since.items() if len(steps))
    if not first or not _is_result(metric) or (len(first) > 1 and first[1][0] <= first[0][0]):
        return None
    step, rank = first[0]
    later = f"only from {figure(first[1][0])} on, or not at all" if len(first) > 1 else "nowhere"
    return Evidence(
        f"{metric} of rank {rank} is not finite from {run.place(step)} on, that of the other "
        f"{len(ranks) - 1} ranks {later}",
        steps=(step,),
        values={"rank": rank, "ranks": len(ranks), LOST_ALONE: float(len(first) == 1)},
    )


def _runs_off(run: Run, metric: str, ranks: Mapping[int, Series], since: Mapping[int, Floats]) -> Evidence | None:
    """Return the one rank whose last finite value is beyond all measure where the others' are not, if all are lost."""
    lost = min((float(steps[0]) for steps in since.values() if len(steps)), default=None)
    if lost is None or not all(map(len, since.values())):
        return None
    before = {rank: series.finite.between(-np.inf, lost) for rank, series in ranks.items()}
    if not all(map(len, before.values())):
        return None
    size = {rank: abs(float(series.value[-1])) for rank, series in before.items()}
    rank = max(size, key=lambda number: size[number])
    others = max(value for number, value in size.items() if number != rank)
    if size[rank] <= BEYOND_OTHER_RANKS * max(others, 1.0):
        return None
    step = float(before[rank].step[-1])
    return Evidence(
        f"{metric} of rank {rank} is {figure(size[rank])} at {run.place(step)}, that of the other "
        f"{len(ranks) - 1} ranks at most {figure(others)}; all are lost from {run.place(lost)} on",
        steps=(step, lost),
        values={"rank": rank, "ranks": len(ranks), "value": size[rank], LOST_ALONE: 0.0},
    )


def _astray(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Return the rank whose losses end far above those of all others, with which they began.

    Of a log that begins in mid-run it is not known how they began.
    """
    losses = {rank: series.finite for rank, series in ranks.items()}
    if not _is_result(metric) or min(map(len, losses.values())) < 2 * MIN_RECORDS_PER_RANK:
        return None
    end = {rank: end_level(series.value) for rank, series in losses.items()}
    rank = max(end, key=lambda number: end[number])
    others, series = [value for number, value in end.items() if number != rank], losses[rank]
    scatter = max(noise(loss.value) for loss in losses.values())
    began = max(median(loss.value[:MIN_RECORDS_PER_RANK]) for other, loss in losses.items() if other != rank)
    alike = median(series.value[:MIN_RECORDS_PER_RANK]) < MIN_LOSS_RATIO * began
    if (
        not (alike or is_late(run, run.first_step, MID_RUN, MID_RUN_STEPS) or end[rank] > FAR_BEYOND * max(others))
        or not 0 < MIN_LOSS_RATIO * max(others) < end[rank]
        or end[rank] - max(others) < FAR_SIGMAS * scatter
    ):
        return None
    usual = median(np.array(others))
    high = true_at_end(series.value >= np.sqrt(max(others) * end[rank]))
    leaves = float(series.step[min(len(series) - high, len(series) - 1)])
    where = "in the whole log" if leaves <= run.first_step else f"which it leaves from {run.place(leaves)} on"
    return Evidence(
        f"{metric} of rank {rank} is about {figure(end[rank])} at the end, and about {figure(usual)} that "
        f"of the other {len(others)} ranks, {where}",
        steps=(leaves,),
        values={
            "rank": rank,
            "end": end[rank],
            "others": usual,
            "ranks": len(ranks),
            "of_loss": float("loss" in metric),
        },
    )


FAR_BEYOND = 10.0
"""Times the largest of all others that a rank ends at, where it began apart. Chosen: shards differ by less."""
TIMES_BEYOND_ALL = 1000.0
"""Times the largest value of all other ranks in the same record that one is far beyond them. Chosen: gradients of other
rows of one batch differ by less than a hundred times."""
LEAST_BEYOND = 2
"""Records in which one rank is, and no other ever is. Chosen: a single one may be a bad row."""


def _now_and_then(metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Return the one rank whose gradient norms or losses are beyond all bounds in single records; no other's are."""
    finite = {rank: series.finite for rank, series in ranks.items()}
    steps = reduce(np.intersect1d, (series.step for series in finite.values()))
    if not _is_result(metric) or len(steps) < 2 * MIN_RECORDS_PER_RANK:
        return None
    values = np.array([np.abs(series.value[np.searchsorted(series.step, steps)]) for series in finite.values()])
    ordered = np.sort(values, axis=0)
    beyond = (ordered[-1] > TIMES_BEYOND_ALL * ordered[-2]) & (ordered[-2] > 0)
    largest = {list(finite)[place] for place in np.argmax(values, axis=0)[beyond]}
    if int(beyond.sum()) < LEAST_BEYOND or len(largest) != 1:
        return None
    rank = largest.pop()
    return Evidence(
        f"{metric} of rank {rank} is up to {figure(float(ordered[-1][beyond].max()))} in {int(beyond.sum())} of "
        f"{len(steps)} records, in which the other {len(ranks) - 1} ranks have at most "
        f"{figure(float(ordered[-2][beyond].max()))}; no other rank ever has such a value",
        steps=(float(steps[beyond][0]),),
        values={"rank": rank, "ranks": len(ranks), "records": float(beyond.sum())},
    )


def _slow(run: Run, judged: Sequence[tuple[str, Mapping[int, Series]]]) -> Evidence | None:
    """Return the slowest rank, by the time that explains most of it: a wait for data before the whole step."""
    found = [evidence for pair in judged if (evidence := _slow_by(run, *pair)) is not None]
    return max(found, key=lambda evidence: evidence.values["times"], default=None)


def _slow_by(run: Run, metric: str, ranks: Mapping[int, Series]) -> Evidence | None:
    """Return the rank that takes far longer than all others, or has far less throughput."""
    finite = {rank: series.finite for rank, series in ranks.items()}
    sign = 1 if _is_time(metric) else -1 if _is_throughput(metric) else 0
    if not sign or min(map(len, finite.values())) < MIN_RECORDS_PER_RANK:
        return None
    return next((found for part in (1, 3) if (found := _slower_in_last(part, run, metric, finite, sign))), None)


def _slower_in_last(part: int, run: Run, metric: str, finite: Mapping[int, Series], sign: int) -> Evidence | None:
    """Return the rank that is slower in the last part of the records: in all of them, the last third."""
    lasts = {rank: max(MIN_RECORDS_PER_RANK, len(series) // part) for rank, series in finite.items()}
    late = {rank: series.value[-lasts[rank] :] for rank, series in finite.items()}
    level = {rank: median(values) for rank, values in late.items()}
    rank = max(level, key=lambda number: sign * level[number])
    others, series = [value for number, value in level.items() if number != rank], finite[rank]
    usual, next_one = median(np.array(others)), max(sign * value for value in others) * sign
    slow, fast = (level[rank], next_one) if sign > 0 else (next_one, level[rank])
    times = slow / fast if fast > 0 else np.inf
    if usual <= 0 or times < MIN_SLOW_RANK_RATIO:
        return None
    if len(set(map(len, late.values()))) == 1:
        slowest = np.argmax(sign * np.array(list(late.values())), axis=0) == list(late).index(rank)
        if float(slowest.mean()) < SLOWEST_IN:
            return None
    apart, between = abs(level[rank] - usual), (usual + level[rank]) / 2
    beyond = {number: float((sign * (values - between) > 0).mean()) for number, values in late.items()}
    apart_mostly = beyond.pop(rank) >= SLOWER_IN and max(beyond.values()) <= 1 - SLOWER_IN
    error = {number: noise(curve.value) for number, curve in finite.items()}
    error[rank] /= math.sqrt(lasts[rank])  # of the median: a rank that gets slow now and then is noisy for that
    if not apart_mostly and apart < MIN_RANK_SIGMAS * max(error.values()):
        return None
    step_time = next(run.with_role(Quantity.STEP_TIME, phase="train"), None) if sign > 0 else None
    if step_time is not None and len(step_time.finite) and apart < MIN_SHARE_OF_STEP * median(step_time.finite.value):
        return None
    is_slow = sign * (series.value - between) > 0
    mostly = row_medians(np.lib.stride_tricks.sliding_window_view(is_slow.astype(float), MIN_RECORDS_PER_RANK))
    first = int(np.argmax(mostly))
    since = float(series.step[first + int(np.argmax(is_slow[first:]))])
    when = "" if part == 1 else f" of the last {lasts[rank]} records"
    return Evidence(
        f"{metric} of rank {rank} is {figure(level[rank])} in the median{when} and about "
        f"{figure(end_level(series.value))} at the end; the other {len(others)} ranks have {figure(min(others))} to "
        f"{figure(max(others))}",
        steps=(since,),
        values={"rank": rank, "level": level[rank], "others": usual, "ranks": len(finite), "times": times}
        | {COMPUTES_SLOWLY: float(_OF_COMPUTING.search(metric) is not None)},
    )


def rank_computes_otherwise(unlike: Evidence, _: Run) -> Evidence | None:
    """A rank differs from the others in its loss or its gradient: it computes something else.

    Not this when: it only takes longer.
    """
    return None if "level" in unlike.values else unlike


ask_in_turn(
    "ranks",
    outcome_of(rank_differs, 0.002, "bekman_mle", as_chosen=True),
    outcome_of(rank_computes_otherwise, 0.3, of="rank_differs", as_chosen=True),
    any_of=("*rank*", "*gpu*", "*node*", "*worker*", "*device*", "*host*", "*/0"),
    whole=True,
)
