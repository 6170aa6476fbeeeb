"""How long a step takes, by whatever name a log gives it."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.registry import CannotTell
from mldebug_mcp.symptoms.statistics import aligned
from mldebug_mcp.text import counted

RATES = (
    "tokens_per_second", "tokens_per_sec", "tok/s", "tps", "throughput", "samples_per_second", "samples_per_sec",
    "throughput(tps)", "perf/throughput", "steps_per_second", "iterations_per_second", "it/s",
    "tokens_per_s", "tokens/s", "tokens/sec", "samples_per_s", "samples/s", "samples/sec", "images_per_second",
    "images_per_sec", "img/s", "imgs/sec", "examples_per_second", "examples_per_sec", "steps_per_sec", "it_per_sec",
)  # fmt: skip
"""Throughputs of which the step time is the inverse, up to a factor: only its changes are judged."""
DURATIONS = ("step_time", "time_metrics/end_to_end(s)", "perf/time_per_step", "timing_s/step")
PACES = (*DURATIONS, "time", *RATES)
BATCHES = ("global batch size", "global_batch_size", "batch_size", "train_batch_size", "bsz")
"""Rows in a step, which some recipes raise in stages: a step of more rows takes longer, and is no slower for that."""
WARMUP_SHARE = 0.05
"""The first records hold compilation and the filling of caches."""


def step_times(run: Run) -> Series:
    """Return how long steps take, without the first records; the unit is the log's own.

    Where the batch grows, it is the time of as many rows as a step had at first.

    Raises:
        CannotTell: too few values, or a column named `time` that is a clock.
    """
    name = next(name for name in PACES if name in run)
    series = run[name].finite
    if name == "time" and "data_time" not in run:
        raise CannotTell("a column named time may be a clock as well as a step time")
    series = series.where(series.value > 0)
    if name in RATES:
        series = Series("step_time", series.step, 1 / series.value).finite
    if name in DURATIONS:
        series = _of_as_many_rows(run, series)
    skip = max(1, int(WARMUP_SHARE * len(series)))
    if len(series) - skip < 20:
        raise CannotTell(f"{name} has {counted(len(series), 'usable value')}; 21 are needed")
    keep = np.arange(len(series)) >= skip
    return series.where(keep)


def _of_as_many_rows(run: Run, times: Series) -> Series:
    """Return the times as if all steps had as many rows as the first, where the log tells of batches that grow."""
    name = next((one for one in BATCHES if one in run), None)
    if name is None:
        return times
    step, rows, value = aligned(run[name].finite, times)
    if not len(rows) or float(rows.min()) <= 0 or float(rows[-1]) <= float(rows[0]):
        return times
    return Series(times.name, step, value * rows[0] / rows)
