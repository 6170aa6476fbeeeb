"""What else moved where the loss jumped: at that step, and before it. Observations only; they decide nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.statistics import mad, median, positive
from mldebug_mcp.text import figure

WATCHED = (
    "grad_norm", "learning_rate", "loss_scale", "batch_size", "bsz", "seq_len", "seqlen", "sequence_length",
    "batch_length", "max_length", "mean_length", "completion_length", "ntokens", "wpb", "batch_tokens",
    "tokens_per_batch", "num_tokens", "step_time",
)  # fmt: skip
"""Gradient, schedule, scaler, and how large or long the batch was, by whatever name; Bekman and OPT-175B look there."""
TOTALS = ("num_tokens",)
"""Those that are counted up from the beginning: what moves is how much each record adds."""
SIGMAS = 5.0
"""A metric moved if it lies this many standard deviations of the records before from their median ... Chosen: by
hand."""
LEAST_FACTOR = 1.2
"""... and differs from it by this factor. Chosen: by hand."""
BEFORE, EARLIER = 8, 40
"""Records just before a jump, in which something may have moved first, and those before them to compare with. Chosen:
by hand."""
FEWEST = 5
"""Records before a jump without which the level of a metric is not known. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A metric that moved where the loss jumped.

    Args:
        metric: Its name.
        before: Its level before.
        there: Its value farthest from that level while the loss was up.
        since: The step from which on it had moved before the jump, if it had.
    """

    metric: str
    before: float
    there: float
    since: float | None

    def __str__(self) -> str:
        early = f", and had left it by step {figure(self.since)}" if self.since is not None else ""
        return f"{self.metric} goes from {figure(self.before)} to {figure(self.there)}{early}"

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers behind the sentence, by name."""
        since = {} if self.since is None else {f"{self.metric}_moved_since": self.since}
        return {f"{self.metric}_before": self.before, f"{self.metric}_there": self.there, **since}


def moved(run: Run, first: float, last: float) -> list[Moved]:
    """Return the metrics that moved between the steps `first` and `last`, or just before."""
    return [one for series in _watched(run) if (one := _moved(series, first, last)) is not None]


def level_and_extreme(series: Series, first: float, last: float) -> tuple[float, float] | None:
    """Return the median of the 20 records before `first` and the highest value up to `last`, where enough is logged."""
    before, during = series.where(series.step < first).value[-20:], series.between(first, last).value
    return (median(before), float(during.max())) if len(before) >= 3 and len(during) else None


def _watched(run: Run) -> Iterator[Series]:
    for name in WATCHED:
        if name in run:
            series = run[name].finite
            if name in TOTALS and len(series) > 1 and bool(np.all(np.diff(series.value) >= 0)):
                series = Series(f"{name} per record", series.step[1:], np.diff(series.value))
            yield series


def _moved(series: Series, first: float, last: float) -> Moved | None:
    past, during = series.where(series.step < first), series.between(first, last).value
    if len(past) < FEWEST:
        return None
    logged = np.concatenate([past.value, during])
    scale = np.log if positive(logged) else np.asarray
    curve, there = scale(past.value), scale(during)
    earlier, just_before = curve[-EARLIER - BEFORE : -BEFORE], curve[-BEFORE:]
    base = earlier if len(earlier) >= FEWEST else curve
    level = median(base)
    least = max(SIGMAS * mad(base), np.log(LEAST_FACTOR) if scale is np.log else (LEAST_FACTOR - 1) * abs(level), 1e-12)
    still = np.flatnonzero(np.abs(just_before - level) <= least)
    lead = len(just_before) - 1 - (int(still[-1]) if len(still) else -1)
    far = during[int(np.argmax(np.abs(there - level)))] if len(during) else past.value[-1]
    if lead < 2 and (not len(there) or float(np.abs(there - level).max()) <= least):
        return None
    since = float(past.step[-lead]) if lead >= 2 and len(earlier) >= FEWEST else None
    return Moved(series.name, float(np.exp(level)) if scale is np.log else level, float(far), since)
