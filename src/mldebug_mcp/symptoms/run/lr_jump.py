"""Learning rate jumps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import median, row_medians
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

FACTOR = 1.5
SHARE = 0.02
"""A jump takes no more than this share of the log, or three records."""
STEEP = 3.0
"""Times the usual change of the schedule from one record to the next: what goes up as steadily as it goes down, as a
triangular cycle does, is no jump. Chosen by hand."""
BEFORE = 6
"""Records whose slope is the usual one at a place; chosen by hand."""
ALIKE = 0.15
"""Distances between restarts of a plan agree to within this share, or to one record, or double each time ..."""
ABOVE = 1.2
"""... and none goes further than so many times the first peak. Both chosen by hand."""
RUN_DOWN, RUNS_DOWN, BACK = 0.1, 0.35, 0.9
"""A rate that had come down to this share of its peak, from no more than that one record before, was at the end of its
schedule, and one that is at this share of it in the next record begins it anew. All chosen by hand."""
STAGES = 8
"""With fewer different rates after warmup the schedule is one of stages, in which sudden falls are meant."""
STAIRS, UNEVEN = 4, 3
"""So many stretches of one rate, none more than so many times as long as is typical, are a schedule that moves once per
epoch: the stretches count, not their records. Chosen by hand."""


@symptom(needs=("learning_rate",), sources=("bekman_mle",), points=8, whole_run=True, background=0.01)
def lr_jump(run: Run) -> Evidence | None:
    """The learning rate rises suddenly after it had reached its peak, or falls suddenly out of a smooth schedule.

    Not this when: it is the first warmup; the schedule goes down in stages; restarts are configured
    (`cosine_with_restarts`), come again at even distances to the height of the first peak, or begin a schedule that
    had run down anew from its peak, which are only remarks; the rate goes up and down in even slopes (cyclic rates).
    The factors, 1.5 up and 3 down, were chosen by hand.
    """
    rate = run["learning_rate"].finite
    rate = rate.where(rate.value >= 0)
    if len(rate) < 8 or float(rate.value.max()) <= 0:
        return None
    rate = _by_stairs(rate)
    at = _rise(rate.value)
    if at is None:
        at = _fall(rate.value)
    if at is None:
        return None
    configured = "restart" in str(run.config.get("lr_scheduler_type", "")).lower()
    again = _comes_again(rate.value)
    planned = configured or again or _begins_anew(rate.value, at)
    width = _width(rate.value)
    before, after = float(rate.value[at]), float(rate.value[min(at + width, len(rate) - 1)])
    lowest = float(rate.value[at + 1])
    through = f" and back up to {figure(after)}" if lowest < min(before, after) / FACTOR else ""
    after = lowest if through else after
    step = float(rate.step[at + 1])
    remark = "; the configured schedule restarts" if configured else "; it does so at even distances" * again
    return Evidence(
        f"learning_rate goes from {figure(before)} to {figure(after)} at {run.step_name} {figure(step)}"
        f"{through}{remark}",
        steps=(step,),
        values={"before": before, "after": after},
        present=not planned,
    )


def _by_stairs(rate: Series) -> Series:
    """Return the first record of each stretch of one rate, where the rate is set once per epoch, as timm does."""
    begins = np.append(True, np.diff(rate.value) != 0)
    lengths = np.diff(np.append(np.flatnonzero(begins), len(rate)))
    typical = median(lengths)
    even = len(lengths) >= STAIRS and typical > 1 and float(lengths.max()) <= UNEVEN * typical
    return rate.where(begins) if even else rate


def _width(rate: Floats) -> int:
    return max(3, int(SHARE * len(rate)))


def _rise(rate: Floats) -> int | None:
    """Return the index before the first sudden rise that follows the end of the first warmup."""
    peak = float(rate.max())
    width = _width(rate)
    change = np.diff(rate, append=rate[-1])
    rises = change > 0
    falls = change[:-1] <= 1e-9 * peak
    if not falls.any():
        return None
    start = int(np.argmax(falls)) + 1  # from here on the first warmup is over
    if not rises[start:].any():
        return None
    for distance in (1, width):
        before, after = rate[start:-distance], rate[start + distance :]
        least = max(0.1 * peak, STEEP * distance * median(np.abs(change[start:])))
        up = np.flatnonzero((after > FACTOR * before) & (after - before > least) & rises[start:-distance])
        up = up[after[up] - before[up] > STEEP * distance * _slope_before(change, start + up)]
        if len(up):
            return _before_the_drop(rate, start + int(up[0]))
    return None


def _slope_before(change: Floats, places: NDArray[np.int64]) -> Floats:
    """Return the usual change from record to record shortly before each place, (places,): cycles may become flatter."""
    shortly = np.maximum(places[:, None] - np.arange(1, BEFORE + 1), 0)
    return row_medians(np.abs(change[shortly]))


def _comes_again(rate: Floats) -> bool:
    """Say whether the rate is set back up time and again, to its first peak or less, at even or doubling distances."""
    change = np.diff(rate)
    first = int(np.argmax(change < 0))
    peak = float(rate[: first + 1].max())
    restarts = np.flatnonzero((change > 0.5 * rate[1:]) & (rate[1:] > 0.1 * peak))
    restarts = restarts[restarts > first]
    if len(restarts) < 2 or float(rate.max()) > ABOVE * peak:
        return False
    between = np.diff(np.concatenate([[first], restarts + 1])).astype(np.float64)
    if len(restarts) > 2:  # the first stretch holds a warmup, or misses it
        between = between[1:]
    growth = between[1:] / between[:-1]
    even = np.all(np.abs(growth - 1) < ALIKE) or (len(between) > 2 and float(np.ptp(between)) <= 1)
    return bool(even or np.all(np.abs(growth - 2) < 2 * ALIKE))


def _begins_anew(rate: Floats, at: int) -> bool:
    """Say whether the rate comes back to its own peak, within a record and without a warmup, after it had run down.

    That is a warm restart, or a scheduler that was stepped on beyond its end: what a resume loses, it loses anywhere.
    """
    peak = float(rate[: at + 1].max())
    jump = at + int(np.argmax(np.diff(rate[at:])))
    ran_down = rate[jump] <= RUN_DOWN * peak and rate[jump - 1] <= RUNS_DOWN * peak
    return bool(ran_down and BACK * peak <= rate[jump + 1] and float(rate.max()) <= ABOVE * peak)


def _before_the_drop(rate: Floats, lowest: int) -> int:
    """Return the index before the drop that a second warmup begins with, or `lowest` where the rate only rises."""
    before = lowest
    while before > 0 and rate[before - 1] > FACTOR * rate[before]:
        before -= 1
    # A smooth schedule near zero falls by large factors too, but not down from a share of its peak.
    return before if rate[before] > 0.1 * rate.max() else lowest


def _fall(rate: Floats) -> int | None:
    """Return the index before a fall to less than a third within one record of an otherwise smooth schedule."""
    after = rate[int(np.argmax(rate)) :]
    # At the end of a schedule, where the rate is near zero, every record is a fall by a large factor.
    sudden = np.flatnonzero((after[1:] < after[:-1] / 3) & (after[:-1] > 0.2 * after[0]))
    change = np.diff(after)
    by_stages = 2 * int((after[1:] < after[:-1] / 3).sum()) > int((change != 0).sum())  # ReduceLROnPlateau, on and on
    sudden = sudden[-change[sudden] > STEEP * _slope_before(change, sudden)]
    if not len(sudden) or by_stages or len(np.unique(after)) < STAGES:
        return None
    return len(rate) - len(after) + int(sudden[0])
