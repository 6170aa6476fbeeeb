"""How long a step takes, by whatever name a log gives it."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.logs.settings.facts import POLICIES
from mldebug_mcp.measure.statistics import aligned, median
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import counted

RATES = (
    Quantity.TOKENS_PER_SECOND,
    Quantity.SAMPLES_PER_SECOND,
    Quantity.STEPS_PER_SECOND,
    Quantity.THROUGHPUT,
)
"""Throughputs of which the step time is the inverse, up to a factor: only its changes are judged."""
PACES = (Quantity.STEP_TIME, "time", *RATES)
CLOCKS = (Quantity.EPOCH_TIME, Quantity.ELAPSED, Quantity.TIMESTAMP)
BATCHES = ("global batch size", "global_batch_size", "batch_size", "train_batch_size", "bsz")
"""Rows in a step, which some recipes raise in stages: a step of more rows takes longer, and is no slower for that."""
WARMUP_SHARE = 0.05
"""Share of the records at the start. Chosen: they hold compilation and the filling of caches."""
SAME_MEAN = 0.05
"""So nearly is a rate times the time since the start the number of steps if it is their mean. Chosen: a clock's lag."""
LEAST_TICKS = 10
"""Seconds between records. Chosen: a clock of whole seconds tells so many to a tenth."""
LEAST_RECORDS = 20
"""Records from which a typical step and its noise are told. Chosen: blocks of them have a level."""


def step_times(run: Run, least: int = LEAST_RECORDS) -> Series:
    """Return how long steps take, without the first records; the unit is the log's own.

    Where the batch grows, it is the time of as many rows as a step had at first. `least` records are needed.

    Raises:
        CannotTell: too few values, or a column named `time` that is a clock.
    """
    logged = next(run.with_role(Quantity.STEP_TIME), None) or run.series.get("time") or _throughput(run)
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
    """Return how long epochs take, or steps by a clock beside them, where the pace itself is not logged.

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
    return series.where(np.arange(len(series)) >= max(1, int(WARMUP_SHARE * len(series))))


def _throughput(run: Run) -> Series:
    """Return what is done per second while training.

    Raises:
        CannotTell: only that of evaluation is logged.
    """
    found = next(run.with_role(*RATES, phase="train", parts=True), None)
    if found is None:
        raise CannotTell("the pace of training is not logged, only that of evaluation")
    return found


def _clock_of_mean(run: Run, rate: Series) -> Series | None:
    """Return the clock beside a rate that is no pace but the mean since the start: all steps over all the time.

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
    rounding = sum(1 / float(one[late].min()) for one in (rates, seconds) if _is_whole(one))
    return elapsed.finite if float(made.max() / made.min()) < 1 + SAME_MEAN + rounding else None


def _is_whole(values: Floats) -> bool:
    return bool(np.all(values == np.floor(values)))


def _between_ticks(clock: Series) -> Series:
    """Return the time per step between the records of a clock.

    Raises:
        CannotTell: it tells whole seconds, and records lie only a few of them apart.
    """
    steps, seconds = np.diff(clock.step), np.diff(clock.value)
    if not len(steps) or (_is_whole(clock.value) and median(seconds) < LEAST_TICKS):
        raise CannotTell(f"the pace is logged as a mean since the start, and {clock.name} in seconds too coarse for it")
    told = steps > 0
    return Series("step_time", clock.step[1:][told], seconds[told] / steps[told]).finite


def _of_as_many_rows(run: Run, times: Series) -> Series:
    """Return the times as if all steps had as many rows as the first, where the log tells of batches that grow."""
    name = next((one for one in BATCHES if one in run), None)
    if name is None:
        return times
    step, rows, value = aligned(run[name].finite, times)
    if not len(rows) or float(rows.min()) <= 0 or float(rows[-1]) <= float(rows[0]):
        return times
    return Series(times.name, step, value * rows[0] / rows)
