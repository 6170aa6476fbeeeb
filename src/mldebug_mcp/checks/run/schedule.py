"""Is the course of the learning rate the one that was configured, and does it let training go on?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    ask_in_turn,
    by_outcome,
    first_seen,
    known,
    outcome_of,
    question,
)
from mldebug_mcp.checks.curve import last_decimal, row_medians
from mldebug_mcp.checks.gradients import skips_of
from mldebug_mcp.checks.learning_rate import (
    Decay,
    Peak,
    Shape,
    decay_of,
    highest_of_all,
    is_scaled,
    is_unit,
    peak_of,
    rate_of,
    shape_of,
)
from mldebug_mcp.checks.progress import is_late
from mldebug_mcp.checks.reference_settings import Family, family_of
from mldebug_mcp.core.arrays import has_distinct, median, median_in_place
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.text import figure, ratio
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Run, Series

# Learning rates that are printed with so few decimals that the end of a schedule cannot be told from zero.


MIN_PEAK_DECIMAL_UNITS = 100
"""Units of the last decimal that a peak needs. Chosen: they show the end of a schedule to a hundredth."""
MAX_STEPWISE_LEVELS = 3
"""Values of a learning rate, its end among them, up to which no decay is seen. Chosen: so few are steps."""
MAX_COSINE_REST_RATIO = 1.5
"""Times as long as a cosine that a schedule may stay within half a unit of its end. Chosen: lines and floors differ."""
MAX_EXTRA_REST_SHARE = 0.05
"""Share of the log that it may stay there beyond that. Chosen: lines and floors differ."""


def ends_by_rounding(rate: Floats, share: float) -> bool:
    """Say whether a rate may read the same over the last `share` of its record for want of decimals alone.

    `round(lr, 6)` of 1e-5 has ten levels: a cosine reads zero for its last seventh, though it never stands still.
    """
    unit, peak = last_decimal(rate), float(rate.max())
    if unit == 0 or peak <= 0 or peak >= MIN_PEAK_DECIMAL_UNITS * unit:
        return False
    end = float(rate[-1])
    levels = set(((rate - end) / unit).round())
    if len(levels) <= MAX_STEPWISE_LEVELS or 1.0 not in levels:
        return False  # no decay, or one that fell to its end from more than a unit above
    height = max(peak - end, unit)
    unseen = 1 - math.acos(min(1.0, unit / height) - 1) / math.pi
    return share <= MAX_COSINE_REST_RATIO * unseen + MAX_EXTRA_REST_SHARE


# Where a learning rate comes to its end: a lowest value, next to nothing, or zero.


RATES_FOR_LEVEL = 5
"""Rates that tell where a schedule rests, is zero or has its peak. Chosen: fewer show no course."""
MIN_ZERO_STRETCH_SHARE = 0.03
"""Share of the log that a rate of zero lasts. Chosen: the first and last records may be zero."""
RATE_END_RECORDS = 3
"""Records that a rate of zero lasts. Chosen: the first and last records may be zero."""
MAX_ROUNDED_RATE_DECIMALS = 5
"""Decimals of a rate that may have been rounded to zero. Chosen: "%.4f" makes 0.0000 of 2e-5."""
MAX_DECIMAL_ERROR = 1e-9
"""How near to such a number it is then. Chosen: by hand."""
MIN_LEARNT_FALL_SHARE = 0.1
"""Share by which a loss falls that is not one of a rate of zero. Chosen: beyond its noise."""
LEAST_LOSSES = 6
"""Records over which it does. Chosen: beyond its noise."""
MIN_REST_RECORD_SHARE = 0.1
"""Of the log, at the lowest rate. Chosen: a cosine is within a thousandth of its end for its last 2 %."""
STILL_LEARNS = 0.15
"""Share of the peak of a rate that was meant to stay. Chosen: floors are a tenth at most."""
MAX_SHARE_ABOVE_FLOOR = 0.001
"""Share of the peak that is the lowest rate. Chosen: what a cosine changes by in its last 2 %."""
MIN_SHARE_FROM_ENDS = 0.01
"""How far from peak and floor they are, as a share of the peak. Chosen: the last stage of steps may be long."""
WAY_LEFT = 0.001
"""Share of the way, the sum of the rates, that is left to go. Chosen: by hand."""
MIN_SPENT_RUN_SHARE = 0.75
"""Share of the run in which it is left. Chosen: a rate that waits for a plateau keeps its peak for longer."""


@dataclass(frozen=True, slots=True)
class RateEnd:
    """Where a rate has come to its end before the log does.

    Args:
        step: The first record there.
        last: The last one there.
        records: How many there are.
        share: Their share of the log.
        rate: The rate there.
        peak: The highest rate of all.
    """

    step: float
    last: float
    records: int
    share: float
    rate: float
    peak: float


def _end(rate: Series, first: int, last: int) -> RateEnd:
    count, step = last - first + 1, rate.step
    at, peak = float(rate.value[first]), float(rate.value.max())
    return RateEnd(float(step[first]), float(step[last]), count, count / len(rate), at, peak)


def _refuse_rounded(rate: Series, end: RateEnd, why: str) -> None:
    if ends_by_rounding(rate.value, end.share):
        raise CannotTell(f"the learning rate is printed with {why}")


def comes_to_nothing(rate: Series) -> RateEnd | None:
    """Return from where on hardly any of the way is left that all rates together can carry the weights."""
    way = np.gradient(rate.step)
    np.maximum(way, 0, out=way)
    way *= np.maximum(rate.value, 0)
    np.cumsum(way, out=way)
    if not way[-1] > 0:
        return None
    first = int(np.argmax(way >= (1 - WAY_LEFT) * way[-1]))
    end = replace(_end(rate, first, len(rate) - 1), share=1 - first / len(rate))
    if end.share < MIN_SPENT_RUN_SHARE:
        return None
    _refuse_rounded(rate, end, "too few decimals to tell where its schedule ends")
    return end


def stays_low(rate: Series) -> RateEnd | None:
    """Return from where on a rate that fell gradually stays at its lowest value."""
    top = int(np.argmax(rate.value))
    peak, floor, after = float(rate.value[top]), float(rate.value[-1]), rate.value[top:]
    low = after <= floor + MAX_SHARE_ABOVE_FLOOR * peak
    rest = int(np.argmin(low[::-1])) if not low.all() else 0
    if peak <= 0 or floor > STILL_LEARNS * peak or rest < max(RATES_FOR_LEVEL, MIN_REST_RECORD_SHARE * len(rate)):
        return None
    if not has_distinct(
        after[(after > floor + MIN_SHARE_FROM_ENDS * peak) & (after < (1 - MIN_SHARE_FROM_ENDS) * peak)],
        RATES_FOR_LEVEL,
    ):
        return None
    end = _end(rate, len(rate) - rest, len(rate) - 1)
    _refuse_rounded(rate, end, "too few decimals to tell where its schedule ends")
    return end


def zero_for_long(run: Run, rate: Series) -> RateEnd | None:
    """Return the first stretch of records in which a rate is zero, None where there is none.

    Raises:
        CannotTell: the rate has too few decimals, as where a loss is learnt meanwhile.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (rate.value == 0).astype(np.int8), [0]])))
    long = np.flatnonzero(edges[1::2] - edges[::2] >= max(RATE_END_RECORDS, MIN_ZERO_STRETCH_SHARE * len(rate)))
    if not len(long):
        return None
    last = int(edges[2 * long[0] + 1]) - 1
    end = _end(rate, int(edges[2 * long[0]]), last)
    rounded = bool(np.all(np.abs(rate.value - np.round(rate.value, MAX_ROUNDED_RATE_DECIMALS)) < MAX_DECIMAL_ERROR))
    if rounded and _learns(run, end):
        raise CannotTell("the learning rate is printed as 0 while the loss is learnt: it has too few digits")
    if last == len(rate) - 1:
        _refuse_rounded(rate, end, "so few decimals that the end of a schedule reads 0")
    return end


def _learns(run: Run, end: RateEnd) -> bool:
    """Say whether a loss falls there as it cannot without updates."""
    inside = [run[name].finite.between(end.step, end.last).value for name in ("eval_loss", "loss") if name in run]
    long = [array for array in inside if len(array) >= LEAST_LOSSES]
    return any(
        median(array[-(len(array) // 3) :]) < (1 - MIN_LEARNT_FALL_SHARE) * median(array[: len(array) // 3])
        for array in long
    )


# Where a learning rate leaves its course: goes up after its first warm-up, or falls out of a smooth schedule.


MIN_RATE_JUMP = 1.5
"""Times the rate before that a rise is a jump. Chosen: half a warm-up's last tenth."""
MIN_RATE_FALL_RATIO = 3.0
"""Times the rate after that a fall is a jump. Chosen: schedules of stages fall by two and more, again and again."""
RATE_JUMP_LEAST = 0.1
"""Share of the peak that a jump makes, and that a rate must have. Chosen: near zero any change is a large factor."""
MIN_FALL_START_SHARE = 0.2
"""Share of the peak from which a fall is one. Chosen: twice the least."""
MAX_JUMP_WIDTH_SHARE = 0.02
"""Share of the log that a jump takes at most. Chosen: a second warm-up is longer."""
RATE_JUMP_RECORDS = 3
"""Records that a jump takes at most. Chosen: a second warm-up is longer."""
MIN_JUMP_SLOPE_RATIO = 3.0
"""Times the usual change from one record to the next. Chosen: even slopes, as in a triangular cycle, are not jumps."""
USUAL_SLOPE_RECORDS = 6
"""Records whose slope is the usual one at a place. Chosen: cycles become flatter."""
MAX_RESTART_SPACING_CHANGE = 0.15
"""Share by which distances of restarts differ. Chosen: records are coarse."""
RATE_JUMP_ABOVE = 1.2
"""Times the first peak that restarts reach. Chosen: records are coarse."""
RUN_DOWN = 0.1
"""Share of the peak at the end of a schedule. Chosen: a cosine's ends."""
RUNS_DOWN = 0.35
"""Share of the peak a record before that. Chosen: a cosine's ends."""
MIN_RESTART_PEAK_SHARE = 0.9
"""Share of the peak as the schedule begins anew. Chosen: a cosine's ends."""
MIN_UNSTAGED_RATES = 8
"""Different rates below which a schedule is one of stages. Chosen: more are a course."""
MIN_STAIR_STRETCHES = 4
"""Stretches of one rate, of a rate set once per epoch. Chosen: as timm."""
MAX_STAIR_LENGTH_RATIO = 3.0
"""Times the typical that the longest of them has. Chosen: as timm."""
MAX_ROUNDING_CHANGE_SHARE = 1e-9
"""Share of the peak below which a change is rounding. Chosen: float32 resolves 1e-7."""


def jump_at(rate: Floats) -> int | None:
    """Return the index before the first jump of a rate, up before down; None if it has none."""
    at = _rise(rate)
    return _fall(rate) if at is None else at


def _by_stairs(rate: Series) -> Series:
    """Return the first record of each stretch of one rate, where the rate is set once per epoch."""
    changes = np.diff(rate.value) != 0
    if changes.all():
        return rate
    begins = np.append(True, changes)
    lengths = np.diff(np.append(np.flatnonzero(begins), len(rate)))
    typical = median(lengths)
    even = (
        len(lengths) >= MIN_STAIR_STRETCHES and typical > 1 and float(lengths.max()) <= MAX_STAIR_LENGTH_RATIO * typical
    )
    return rate.where(begins) if even else rate


def _width(rate: Floats) -> int:
    return max(RATE_JUMP_RECORDS, int(MAX_JUMP_WIDTH_SHARE * len(rate)))


def _rise(rate: Floats) -> int | None:
    """Return the index before the first sudden rise that follows the end of the first warm-up."""
    peak, width = float(rate.max()), _width(rate)
    change = np.diff(rate, append=rate[-1])
    falls = change[:-1] <= MAX_ROUNDING_CHANGE_SHARE * peak
    if not falls.any():
        return None
    start = int(np.argmax(falls)) + 1  # from here on the first warm-up is over
    usual = median_in_place(np.abs(change[start:]))
    for distance in (1, width):
        before, after = rate[start:-distance], rate[start + distance :]
        least = max(RATE_JUMP_LEAST * peak, MIN_JUMP_SLOPE_RATIO * distance * usual)
        up = np.flatnonzero((after > MIN_RATE_JUMP * before) & (after - before > least) & (change[start:-distance] > 0))
        up = up[after[up] - before[up] > MIN_JUMP_SLOPE_RATIO * distance * _slope_before(change, start + up)]
        if len(up):
            return _before_the_drop(rate, start + int(up[0]))
    return None


def _slope_before(change: Floats, places: NDArray[np.int64]) -> Floats:
    """Return the usual change from record to record shortly before each place, (places,)."""
    shortly = np.maximum(places[:, None] - np.arange(1, USUAL_SLOPE_RECORDS + 1), 0)
    return row_medians(np.abs(change[shortly]))


def _before_the_drop(rate: Floats, lowest: int) -> int:
    """Return the index before the drop that a second warm-up begins with, or `lowest` where the rate only rises."""
    before = lowest
    while before > 0 and rate[before - 1] > MIN_RATE_JUMP * rate[before]:
        before -= 1
    # A smooth schedule near zero falls by large factors too, but not at once from a share of its peak.
    at_once = lowest - before <= _width(rate) and rate[before] > RATE_JUMP_LEAST * rate.max()
    return before if at_once else lowest


def _fall(rate: Floats) -> int | None:
    """Return the index before a fall within one record out of an otherwise smooth schedule."""
    after = rate[int(np.argmax(rate)) :]
    change = np.diff(after)
    deep = after[1:] < after[:-1] / MIN_RATE_FALL_RATIO
    sudden = np.flatnonzero(deep & (after[:-1] > MIN_FALL_START_SHARE * after[0]))
    by_stages = 2 * int(deep.sum()) > int((change != 0).sum()) or not has_distinct(after, MIN_UNSTAGED_RATES)
    sudden = sudden[-change[sudden] > MIN_JUMP_SLOPE_RATIO * _slope_before(change, sudden)]
    return None if by_stages or not len(sudden) else len(rate) - len(after) + int(sudden[0])


def _comes_again(rate: Floats) -> bool:
    """Say whether the rate is set back up time and again, to its first peak or less, at even or doubling distances."""
    change = np.diff(rate)
    first = int(np.argmax(change < 0))
    peak = float(rate[: first + 1].max())
    restarts = np.flatnonzero((change > rate[1:] / 2) & (rate[1:] > RATE_JUMP_LEAST * peak))
    restarts = restarts[restarts > first]
    if len(restarts) < 2 or float(rate.max()) > RATE_JUMP_ABOVE * peak:
        return False
    between = np.diff(np.concatenate([[first], restarts + 1])).astype(np.float64)
    if len(restarts) > 2:  # the first stretch holds a warm-up, or misses it
        between = between[1:]
    growth = between[1:] / between[:-1]
    even = np.all(np.abs(growth - 1) < MAX_RESTART_SPACING_CHANGE) or (len(between) > 2 and float(np.ptp(between)) <= 1)
    return bool(even or np.all(np.abs(growth - 2) < 2 * MAX_RESTART_SPACING_CHANGE))


def _begins_anew(rate: Floats, at: int) -> bool:
    """Say whether the rate comes back to its own peak, within a record and without a warm-up, after it had run down.

    That is a warm restart, or a scheduler that was stepped on beyond its end: what a resume loses, it loses anywhere. A
    schedule of stages has no end from which it could begin anew.
    """
    if not has_distinct(rate, MIN_UNSTAGED_RATES):
        return False
    peak = float(rate[: at + 1].max())
    jump = at + int(np.argmax(np.diff(rate[at:])))
    ran_down = rate[jump] <= RUN_DOWN * peak and rate[jump - 1] <= RUNS_DOWN * peak
    return bool(
        ran_down and MIN_RESTART_PEAK_SHARE * peak <= rate[jump + 1] and float(rate.max()) <= RATE_JUMP_ABOVE * peak
    )


# Is the course of the learning rate the one that was configured, and one that lets training go on?


SCHEDULE_ABOVE = 1.9
"""Times the configured peak from which a peak lies above it. Chosen: by hand."""
MIN_PEAK_SHORTFALL_RATIO = 3.0
"""Times that a peak is smaller below it. Chosen: more is asked, as a log may miss the peak between two records."""
MIN_SCHEDULE_DEVIATION_SHARE = 0.35
"""Share of the peak by which a rate is off its schedule. Chosen: line and cosine differ by a tenth at most."""
MAX_EARLY_DECAY_PROGRESS = 1 - MIN_SCHEDULE_DEVIATION_SHARE
"""Share of a plan after which a rate does not decay early. Chosen: a line then has less left than that deviation."""
SCHEDULE_LEAST = 4
"""Records behind the peak. Chosen: fewer show no course."""
CYCLES = ("cycle", "restart", "t_0", "t_mult")
"""Parts of the names of settings of a schedule that comes back."""
MIN_PLAN_PROGRESS = 0.5
"""Of the plan, before which a rate that hardly decays says little. Chosen: a cosine has half of its peak there."""
SCHEDULE_EARLY = 0.05
"""Share of the plan where a log must begin to show the peak. Chosen: slack."""
MIN_RUN_WARMUP_RATIO = 1.2
"""Times the warm-up where it may end to show the peak. Chosen: slack."""
MIN_RATES_FOR_JUMP = 8
"""Rates that show a jump. Chosen: fewer show no course."""
MIN_RATES_FOR_END = 20
"""Rates that show the end of a schedule. Chosen: fewer show no course."""
MAX_RECORDS_FROM_RESUME = 2.0
"""Records by which a jump may be away from a resume. Chosen: a record is written before it or behind it."""


def lr_schedule_short(run: Run) -> Evidence | None:
    """The learning rate falls gradually to its lowest value and stays there, or comes to nothing, long before the end.

    Not this when: that value is zero (`lr_zero`), or no small share of the peak; it goes down in a few stages, which
    leave the weights some way to go.
    """
    rate = run["learning_rate"].finite
    if (end := comes_to_nothing(rate)) is not None:
        summary = (
            f"learning_rate is {figure(end.rate)} at {run.place(end.step)}, its peak {figure(end.peak)}: all further "
            f"rates, {end.share:.0%} of the log, make {figure(100 * WAY_LEFT)} % of the sum of all"
        )
    elif (end := stays_low(rate)) is not None:
        first, last, until = figure(end.rate), figure(rate.value[-1]), figure(end.last)
        rest = f"stays there to {until}" if first == last else f"is {last} at {until}"
        summary = (
            f"learning_rate has come down to {first} at {run.place(end.step)} and {rest}: "
            f"{end.share:.0%} of the log; its peak is {figure(end.peak)}"
        )
    else:
        return None
    values = {"floor": float(rate.value[-1]), "peak": end.peak, "share_after": end.share}
    return Evidence(summary, steps=(end.step,), values=values)


def lr_zero(run: Run) -> Evidence | None:
    """The learning rate is zero over a stretch of records while training goes on.

    Not this when: only the last record or the first is zero; the rate is printed with too few digits.
    """
    rate = run["learning_rate"].finite
    zero = zero_for_long(run, rate)
    if zero is None:
        return None
    summary = f"learning_rate is 0 from {run.place(zero.step)} to {figure(zero.last)} ({zero.records} records)"
    values = {"records": zero.records, "share": float((rate.value == 0).mean())}
    return Evidence(summary, steps=(zero.step,), values=values)


def lr_jump(run: Run) -> Evidence | None:
    """The learning rate rises suddenly after it had reached its peak, or falls suddenly out of a smooth schedule.

    Not this when: it is the first warm-up; the schedule goes down in stages; restarts are configured, or come again at
    even distances or behind a schedule that had run down, and no plain schedule is configured (remarks); a loss
    scaler skipped all steps of the records before, which moves no schedule.
    """
    rate = run["learning_rate"].finite
    skips = skips_of(run)
    skipped = np.empty(0) if skips is None else skips.count.step[skips.count.value >= skips.steps]
    rate = rate.where((rate.value >= 0) & ~np.isin(rate.step, skipped))
    enough = len(rate) >= MIN_RATES_FOR_JUMP and float(rate.value.max()) > 0
    rate = _by_stairs(rate) if enough else rate
    at = jump_at(rate.value) if enough else None
    if at is None:
        return None
    top = at + 1 + int(np.argmax(rate.value[at + 1 : at + 1 + _width(rate.value)]))
    before, lowest, after = (float(rate.value[place]) for place in (at, at + 1, top))
    step, reached = float(rate.step[at + 1]), f" by {figure(float(rate.step[top]))}"
    configured = "restart" in str(run.config.get("lr_scheduler_type", "")).lower()
    plain = shape_of(run) in (Shape.FALLS, Shape.CONSTANT) and not any(
        part in name.lower() for name in run.settings for part in CYCLES
    )
    comes_back = lowest < min(before, after) / MIN_RATE_JUMP  # a fall that a second warm-up follows
    through = f" and back up to {figure(after)}{reached}" if comes_back else ""
    at_once = comes_back or lowest < before or lowest > MIN_RATE_JUMP * before
    again = _comes_again(rate.value)
    remark = "; the configured schedule restarts" if configured else "; it does so at even distances" * again
    to, until = (lowest, "") if at_once else (after, reached)
    return Evidence(
        f"learning_rate goes from {figure(before)} to {figure(to)} at {run.place(step)}{through or until}{remark}",
        steps=(step,),
        values={"before": before, "after": to},
        present=plain or not (configured or again or _begins_anew(rate.value, at)),
    )


def lr_above_configured(run: Run) -> Evidence | None:
    """The logged learning rate goes above the peak that is configured, to twice as much or more.

    Not this when: the factor is one by which trainers scale a rate (batch, its root, devices); the rate is logged in
    thousandths or millionths; the peak of the schedule is not the configured rate (one cycle).
    """
    peak, factor, configured = _beside_configured(run)
    if factor < SCHEDULE_ABOVE or is_scaled(run, factor) or is_unit(factor, factor * configured):
        return None
    return _of_peak(run, peak, factor, configured)


def lr_below_configured(run: Run) -> Evidence | None:
    """The logged learning rate never comes near the peak that is configured: it stays below a third of it.

    Not this when: the log ends in the warm-up or begins behind it; another group of parameters has the configured rate;
    the factor is one that trainers scale a rate by.
    """
    peak, factor, configured = _beside_configured(run)
    if factor > 1 / MIN_PEAK_SHORTFALL_RATIO or is_scaled(run, 1 / factor) or is_unit(1 / factor, configured):
        return None
    rate, plan = rate_of(run), run.facts.plan or run.last_step
    warmup = run.facts.schedule.warmup_steps or 0.0
    shown = (
        peak.is_seen or 0 < warmup < run.last_step / MIN_RUN_WARMUP_RATIO
    )  # or it still rises, long after the warm-up
    known = rate is not None and shown and len(rate) >= SCHEDULE_LEAST and run.step_name == "step"
    first = run.first_step if rate is None else float(rate.step[0])
    if not known or first > max(1.0, warmup, SCHEDULE_EARLY * plan) or run.last_step < MIN_RUN_WARMUP_RATIO * warmup:
        raise CannotTell("the log does not show the peak of the schedule")
    return _of_peak(run, peak, factor, configured)


def _beside_configured(run: Run) -> tuple[Peak, float, float]:
    """Return the logged peak, how many times the configured one it is, and that one; CannotTell if there is none."""
    peak, configured, name = _peak(run), run.facts.schedule.peak, (run.facts.schedule.kind or "").lower()
    if configured is None or configured <= 0:
        raise CannotTell("no peak rate is configured")
    if family_of(run) in (Family.SELF_SET, Family.ADAFACTOR):
        raise CannotTell("the optimizer sets its own rate")
    if any(part in name for part in ("cycle", "cyclic", "noam", "inverse")):
        raise CannotTell(f"the peak of the schedule {name[:20]} is another than the configured rate")
    return peak, highest_of_all(run) / configured, configured


def _peak(run: Run) -> Peak:
    return known(peak_of(run), "no learning rate above zero is logged")


def _of_peak(run: Run, peak: Peak, factor: float, configured: float) -> Evidence:
    return Evidence(
        f"learning_rate peaks at {figure(factor * configured)} at {run.place(peak.step)}, "
        f"{ratio(factor)} times the {figure(configured)} that is configured",
        steps=(peak.step,),
        values={"peak": factor * configured, "configured": configured, "factor": factor},
    )


def lr_hardly_decays(run: Run) -> Evidence | None:
    """A cosine or a straight line is configured, and the learning rate is far above it late in the plan.

    Not this when: the schedule has restarts, stages or a floor that is configured; the run is not halfway through.
    """
    decay, least = _decay(run, MIN_PLAN_PROGRESS)
    if decay is None or decay.progress < MIN_PLAN_PROGRESS or decay.share - decay.expected <= least:
        return None
    return _of_decay(run, decay, "above", decay.expected)


def lr_decays_early(run: Run) -> Evidence | None:
    """A cosine or a straight line is configured, and the learning rate is far below it early in the plan.

    Not this when: its own length is configured; it goes down in stages.
    """
    decay, least = _decay(run)
    if decay is None or decay.progress > MAX_EARLY_DECAY_PROGRESS or decay.expected_least - decay.share <= least:
        return None
    return _of_decay(run, decay, "below", decay.expected_least)


def _decay(run: Run, since: float = 1.0) -> tuple[Decay | None, float]:
    """Return how far the rate has come down, None where none is to be expected, and the least that matters."""
    peak, rate, shape = _peak(run), rate_of(run), shape_of(run)
    decay = decay_of(run, since) if shape is Shape.FALLS else None
    if rate is None or shape is None or (shape is Shape.FALLS and (decay is None or decay.records < SCHEDULE_LEAST)):
        raise CannotTell(f"a schedule, its plan or {SCHEDULE_LEAST} records behind the peak are missing")
    return decay, MIN_SCHEDULE_DEVIATION_SHARE + last_decimal(rate.value) / (2 * peak.value)


def _of_decay(run: Run, decay: Decay, where: str, expected: float) -> Evidence:
    return Evidence(
        f"learning_rate is at {decay.share:.0%} of its peak at {run.place(decay.step)}, {where} the "
        f"{expected:.0%} that a schedule of {run.facts.schedule.kind} leaves after {decay.progress:.0%} of the plan",
        steps=(decay.step,),
        values={"share": decay.share, "expected": expected, "progress": decay.progress},
    )


def lr_jump_at_resume(jump: Evidence, run: Run) -> Evidence | None:
    """The jump of the learning rate stands where the run was resumed, as its log or its steps tell.

    Not this when: the log shows no resume there; the new stretch is configured to begin a schedule of its own.
    """
    rate = run["learning_rate"].finite
    near = MAX_RECORDS_FROM_RESUME * median(np.abs(np.diff(rate.step)))
    at = next((step for step in run.resumes if abs(step - jump.steps[0]) <= near), None)
    if at is None:
        return None
    summary = f"the learning rate jumps where the run was resumed, at {run.place(at)}"
    return Evidence(summary, steps=(at,), values={"resumed": at})


_RATE = ("learning_rate",)
ask_in_turn(
    "schedule",
    outcome_of(lr_zero, 0.01, "transformers_docs", needs=_RATE, points=RATES_FOR_LEVEL),
    outcome_of(lr_jump, 0.01, "bekman_mle", needs=_RATE, points=MIN_RATES_FOR_JUMP),
    outcome_of(lr_schedule_short, 0.03, "karpathy_recipe", needs=_RATE, points=MIN_RATES_FOR_END),
    outcome_of(lr_above_configured, needs=_RATE),
    outcome_of(lr_below_configured, needs=_RATE),
    outcome_of(lr_hardly_decays, 0.01, needs=_RATE),
    outcome_of(lr_decays_early, 0.01, needs=_RATE),
    outcome_of(lr_jump_at_resume, 0.05, "idefics_80b_chronicles", of="lr_jump", as_chosen=True),
    needs=_RATE,
    whole=True,
)


# How does the warm-up stand to the plan, and does the rate follow it?


NEAR_PEAK = 0.95
"""Share of the peak at which a rate is at it. Chosen: a schedule decays by less in its first records."""
WARMUP_EARLY = 0.01
"""Share of the run in which the log must begin. Chosen: warm-ups are short."""
FIRST_STEPS = 2.0
"""Steps in which the log must begin. Chosen: warm-ups are short."""
FIRST_SHARE = 0.05
"""Share of the records that hold the peak. Chosen: warm-ups are short."""
MAX_EARLY_WARMUP_SHARE = 0.5
"""Of the warm-up. Chosen: a rate that is at its peak sooner did not warm up as configured."""


def warmup_exceeds_plan(run: Run) -> Evidence | None:
    """The configured warm-up takes as many steps as are planned, or more: the peak rate is never reached.

    Not this when: the plan leaves steps behind the warm-up; unknown where the configuration does not give both.
    """
    steps, plan = run.facts.schedule.warmup_steps, run.facts.plan
    if steps is None or plan is None:
        raise CannotTell("the configuration does not tell both the warm-up and the planned number of steps")
    if steps < plan:
        return None
    return Evidence(
        f"a warm-up of {figure(steps)} steps in a run planned for {figure(plan)}: at most {figure(100 * plan / steps)} "
        "% of the peak rate is reached",
        values={"warmup": steps, "planned": plan, "share": plan / steps},
    )


def _configured(run: Run) -> float | None:
    """Return the configured warm-up in steps, None if there is none; 0 where only its share is known."""
    steps = run.facts.schedule.warmup_steps
    return steps or 0.0 if steps or (run.setting("warmup_ratio") or 0.0) > 0 else None


def _rate(run: Run) -> Series:
    rate = rate_of(run)
    if rate is None or len(rate) < RATES_FOR_LEVEL or float(rate.value.max()) <= 0:
        raise CannotTell(f"fewer than {RATES_FOR_LEVEL} learning rates are logged, or none above zero")
    return rate


def lr_skips_warmup(run: Run) -> Evidence | None:
    """A warm-up is configured, and the logged learning rate is at its peak before half of it is over.

    Not this when: the configured schedule is a constant one, which in Transformers ignores the warm-up; the log
    begins late, or holds a resume; the warm-up is less than two records long.
    """
    rate, configured = _rate(run), _configured(run)
    if configured is None:
        raise CannotTell("no warm-up is configured")
    ignored = shape_of(run) is Shape.CONSTANT and "warm" not in (run.facts.schedule.kind or "")
    if run.step_name != "step" or ignored or family_of(run) is Family.SELF_SET or run.resumes:
        raise CannotTell("the schedule, or where the log begins, does not tell")
    early = rate.where(rate.step <= MAX_EARLY_WARMUP_SHARE * configured)
    if len(early) < 2 or run.last_step < configured:
        raise CannotTell("fewer than two rates of the first half of the warm-up are logged")
    peak, at, value = float(rate.value.max()), float(early.step[1]), float(early.value[1])
    if float(early.value[:2].min()) < NEAR_PEAK * peak:
        return None
    return Evidence(
        f"learning_rate is {figure(value)} at {run.place(at)}, its peak {figure(peak)}; a warm-up of "
        f"{figure(configured)} steps is configured",
        steps=(float(early.step[0]),),
        values={"rate": value, "peak": peak, "warmup": configured},
    )


def lr_no_warmup(run: Run) -> Evidence | None:
    """The learning rate is at its peak from the first steps on.

    Many healthy fine-tunes have no warm-up: by itself this says little. Not this when: a warm-up is configured; the
    log begins after it, or is too coarse to show it.
    """
    rate = _rate(run)
    if run.kind == "rl":
        raise CannotTell("agents are trained without a warm-up as a rule")
    if _configured(run) is not None:
        return None
    at, first, peak = float(rate.step[0]), float(rate.value[0]), float(rate.value.max())
    if is_late(run, at, WARMUP_EARLY, FIRST_STEPS) and run.setting("warmup_steps") is None:
        raise CannotTell(f"the first learning rate is logged at {run.place(at)}: a warmup before it would not show")
    if first < NEAR_PEAK * peak or int(np.argmax(rate.value)) > FIRST_SHARE * len(rate) + 1:
        return None
    summary = f"learning_rate is at its peak, {figure(peak)}, from {run.place(at)} on: the log shows no warm-up"
    return Evidence(summary, steps=(at,), values={"first": first, "peak": peak})


@question(
    outcome_of(warmup_exceeds_plan, 0.001, "tuning_playbook", as_chosen=True),
    outcome_of(lr_skips_warmup, 0.01, needs=("learning_rate",)),
    outcome_of(lr_no_warmup, 0.3, "goyal_2017", "tuning_playbook", needs=("learning_rate",), as_chosen=True),
    whole=True,
)
def warmup(run: Run) -> Answers:
    """Compare the warm-up with the plan, then the logged rate with the warm-up."""
    return first_seen(by_outcome((warmup_exceeds_plan, lr_skips_warmup, lr_no_warmup), run))
