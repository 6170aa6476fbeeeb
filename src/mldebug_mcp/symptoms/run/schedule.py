"""Is the course of the learning rate the one that was configured, and one that lets training go on?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.rate import (
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
from mldebug_mcp.measure.rate_jump import jump_of
from mldebug_mcp.measure.rounding import ends_by_rounding
from mldebug_mcp.measure.statistics import last_decimal, median
from mldebug_mcp.symptoms.readings import first_of, reading
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.text import figure

ABOVE, BELOW = 1.9, 3.0
"""Times the configured peak. Chosen: more is asked below it, as a log may miss the peak between two records."""
BESIDE = 0.35
"""Share of the peak by which a rate is off its schedule. Chosen: line and cosine differ by a tenth at most."""
LEAST = 4
"""Records behind the peak. Chosen: fewer show no course."""
HALFWAY = 0.5
"""Of the plan, before which a rate that hardly decays says little. Chosen: a cosine has half of its peak there."""
EARLY, BEHIND = 0.05, 1.2
"""Share of the plan where a log must begin, and times the warm-up where it may end, to show the peak. Chosen: slack."""
JUMPS, ZEROS, ENDS = 8, 5, 20
"""Rates that show a jump, a stretch of zeros, and the end of a schedule. Chosen: fewer show no course."""
STRETCH, RECORDS = 0.03, 3
"""Share of the log, and records, that a rate of zero lasts. Chosen: the first and last records may be zero."""
DIGITS = 5
"""Decimals of a rate that may have been rounded to zero. Chosen: "%.4f" makes 0.0000 of 2e-5."""
LEARNT, LEAST_LOSSES = 0.1, 6
"""Share by which a loss falls, in so many records, that is not one of a rate of zero. Chosen: beyond its noise."""
THIRD, FIFTH = 3, 5
"""Parts of the losses at both ends, and of what they fall by. Chosen: evaluations have no noise of batches."""
SHARE = 0.1
"""Of the log, at the lowest rate. Chosen: a cosine is within a thousandth of its end for its last 2 %."""
STILL_LEARNS = 0.15
"""Share of the peak of a rate that was meant to stay. Chosen: floors are a tenth at most."""
NEAR = 0.001
"""Share of the peak that is the lowest rate. Chosen: what a cosine changes by in its last 2 %."""
SMOOTH, BETWEEN = 5, 0.01
"""Rates, this far from peak and floor, that make a decay gradual. Chosen: the last stage of steps may be long."""


def lr_schedule_short(run: Run) -> Evidence | None:
    """The learning rate falls gradually to its lowest value and stays there for the rest of the run.

    Not this when: that value is zero (`lr_zero`); the schedule ends with the run; it goes down in a few stages; it is
    constant; what it stays at is no small share of the peak.
    """
    rate = run["learning_rate"].finite
    top = int(np.argmax(rate.value))
    peak, floor, after = float(rate.value[top]), float(rate.value[-1]), rate.value[top:]
    low = after <= floor + NEAR * peak
    rest = int(np.argmin(low[::-1])) if not low.all() else 0
    if peak <= 0 or floor > STILL_LEARNS * peak or rest < max(LEAST + 1, SHARE * len(rate)):
        return None
    if len(np.unique(after[(after > floor + BETWEEN * peak) & (after < (1 - BETWEEN) * peak)])) < SMOOTH:
        return None
    if ends_by_rounding(rate.value, rest / len(rate)):
        raise CannotTell("the learning rate is printed with too few decimals to tell where its schedule ends")
    first = float(rate.step[len(rate) - rest])
    return Evidence(
        f"learning_rate reaches its lowest value, {figure(floor)}, at {run.step_name} {figure(first)} and stays there "
        f"to {figure(float(rate.step[-1]))}: {rest / len(rate):.0%} of the log; its peak is {figure(peak)}",
        steps=(first,),
        values={"floor": floor, "peak": peak, "share_after": rest / len(rate)},
    )


def lr_zero(run: Run) -> Evidence | None:
    """The learning rate is zero over a stretch of records while training goes on.

    Not this when: a schedule ends at zero with the last record, or warm-up begins at zero with the first; the rate is
    printed with so few digits that a small one reads 0, and the loss goes on falling.
    """
    rate = run["learning_rate"].finite
    zero = rate.value == 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], zero.astype(np.int8), [0]])))
    long = np.flatnonzero(edges[1::2] - edges[::2] >= max(RECORDS, STRETCH * len(zero)))
    if not len(long):
        return None
    first, last = int(edges[2 * long[0]]), int(edges[2 * long[0] + 1]) - 1
    start, end = float(rate.step[first]), float(rate.step[last])
    if _few_digits(rate.value) and _learns(run, start, end):
        raise CannotTell("the learning rate is printed as 0 while the loss is learnt: it has too few digits")
    if last == len(zero) - 1 and ends_by_rounding(rate.value, (last - first + 1) / len(zero)):
        raise CannotTell("the learning rate is printed with so few decimals that the end of a schedule reads 0")
    return Evidence(
        f"learning_rate is 0 from {run.step_name} {figure(start)} to {figure(end)} ({last - first + 1} records)",
        steps=(start,),
        values={"records": last - first + 1, "share": float(zero.mean())},
    )


def _few_digits(rates: Floats) -> bool:
    scaled = rates * 10.0**DIGITS
    return bool(np.all(np.abs(scaled - np.round(scaled)) < NEAR**2))


def _learns(run: Run, start: float, end: float) -> bool:
    """Say whether the losses change between two steps as they cannot without updates."""
    inside = [
        series.value[(series.step >= start) & (series.step <= end)]
        for series in (run[name].finite if name in run.series else None for name in ("eval_loss", "loss"))
        if series is not None
    ]
    falls = (
        median(one[-(len(one) // THIRD) :]) < (1 - LEARNT) * median(one[: len(one) // THIRD])
        for one in inside
        if len(one) >= LEAST_LOSSES
    )
    evaluated = inside[0] if "eval_loss" in run.series else np.empty(0)
    return any(falls) or (len(evaluated) > 1 and float(np.ptp(evaluated)) > LEARNT / FIFTH * abs(float(evaluated[0])))


def lr_jump(run: Run) -> Evidence | None:
    """The learning rate rises suddenly after it had reached its peak, or falls suddenly out of a smooth schedule.

    Not this when: it is the first warm-up; the schedule goes down in stages; restarts are configured, come again at
    even distances, or begin a schedule that had run down anew (remarks); the rate goes up and down in even slopes.
    """
    rate = run["learning_rate"].finite
    rate = rate.where(rate.value >= 0)
    jump = jump_of(rate) if len(rate) >= JUMPS and float(rate.value.max()) > 0 else None
    if jump is None:
        return None
    configured = "restart" in str(run.config.get("lr_scheduler_type", "")).lower()
    through = f" and back up to {figure(jump.after)}" if jump.comes_back else ""
    remark = "; the configured schedule restarts" if configured else "; it does so at even distances" * jump.comes_again
    after = jump.lowest if through else jump.after
    return Evidence(
        f"learning_rate goes from {figure(jump.before)} to {figure(after)} at {run.step_name} {figure(jump.step)}"
        f"{through}{remark}",
        steps=(jump.step,),
        values={"before": jump.before, "after": after},
        present=not (configured or jump.comes_again or jump.begins_anew),
    )


def _peak(run: Run) -> Peak:
    peak = peak_of(run)
    if peak is None:
        raise CannotTell("no learning rate above zero is logged")
    return peak


def lr_above_configured(run: Run) -> Evidence | None:
    """The logged learning rate goes above the peak that is configured, to twice as much or more.

    Not this when: the factor is one by which trainers scale a rate (batch, its root, devices); the rate is logged in
    thousandths or millionths; the peak of the schedule is not the configured rate (one cycle).
    """
    peak, configured = _peak(run), _configured(run)
    factor = highest_of_all(run) / configured
    if factor < ABOVE or is_scaled(run, factor) or is_unit(factor, factor * configured):
        return None
    return _of_peak(run, peak, factor, configured)


def lr_below_configured(run: Run) -> Evidence | None:
    """The logged learning rate never comes near the peak that is configured: it stays below a third of it.

    Not this when: the log ends in the warm-up or begins behind it; another group of parameters has the configured rate;
    the factor is one that trainers scale a rate by.
    """
    peak, configured = _peak(run), _configured(run)
    factor = highest_of_all(run) / configured
    if factor > 1 / BELOW or is_scaled(run, 1 / factor) or is_unit(1 / factor, configured):
        return None
    if not _shows_peak(run, peak):
        raise CannotTell("the log does not show the peak of the schedule")
    return _of_peak(run, peak, factor, configured)


def _configured(run: Run) -> float:
    """Return the configured peak; raise CannotTell where it is no peak to compare with."""
    configured, name = run.facts.schedule.peak, (run.facts.schedule.kind or "").lower()
    if configured is None or configured <= 0:
        raise CannotTell("no peak rate is configured")
    if family_of(run) in (Family.SELF_SET, Family.ADAFACTOR):
        raise CannotTell("the optimizer sets its own rate")
    if any(part in name for part in ("cycle", "cyclic", "noam", "inverse")):
        raise CannotTell(f"the peak of the schedule {name[:20]} is another than the configured rate")
    return configured


def _shows_peak(run: Run, peak: Peak) -> bool:
    """Say whether the log covers the place where the rate is highest: a warm-up's end, or a schedule's beginning."""
    rate = rate_of(run)
    if rate is None or not peak.is_seen or len(rate) < LEAST or run.step_name != "step":
        return False
    plan, warmup = run.facts.plan or run.last_step, run.facts.schedule.warmup_steps or 0.0
    return float(rate.step[0]) <= max(1.0, warmup, EARLY * plan) and run.last_step >= BEHIND * warmup


def _of_peak(run: Run, peak: Peak, factor: float, configured: float) -> Evidence:
    return Evidence(
        f"learning_rate peaks at {figure(factor * configured)} at {run.step_name} {figure(peak.step)}, "
        f"{figure(factor)} times the {figure(configured)} that is configured",
        steps=(peak.step,),
        values={"peak": factor * configured, "configured": configured, "factor": factor},
    )


def lr_hardly_decays(run: Run) -> Evidence | None:
    """A cosine or a straight line is configured, and the learning rate is far above it late in the plan.

    Not this when: the schedule has restarts, stages or a floor that is configured; the run is not halfway through; the
    difference is one of few decimals.
    """
    decay, least = _decay(run)
    if decay is None or decay.progress < HALFWAY or decay.share - decay.expected <= least:
        return None
    return _of_decay(run, decay, "above", decay.expected)


def lr_decays_early(run: Run) -> Evidence | None:
    """A cosine or a straight line is configured, and the learning rate is far below it early in the plan.

    A schedule that is stepped more often than the optimizer runs ahead of the plan. Not this when: its own length is
    configured; it goes down in stages.
    """
    decay, least = _decay(run)
    if decay is None or decay.progress > 1 - BESIDE or decay.expected_least - decay.share <= least:
        return None
    return _of_decay(run, decay, "below", decay.expected_least)


def _decay(run: Run) -> tuple[Decay | None, float]:
    """Return how far the rate has come down, None where none is to be expected, and the least that matters."""
    peak, rate, shape = _peak(run), rate_of(run), shape_of(run)
    if rate is None or shape is None:
        raise CannotTell("no schedule is configured")
    decay = decay_of(run) if shape is Shape.FALLS else None
    if shape is Shape.FALLS and (decay is None or decay.records < LEAST):
        raise CannotTell(f"plan, progress or {LEAST} records behind the peak are missing")
    return decay, BESIDE + last_decimal(rate.value) / (2 * peak.value)


def _of_decay(run: Run, decay: Decay, where: str, expected: float) -> Evidence:
    return Evidence(
        f"learning_rate is at {decay.share:.0%} of its peak at {run.step_name} {figure(decay.step)}, {where} the "
        f"{expected:.0%} that a schedule of {run.facts.schedule.kind} leaves after {decay.progress:.0%} of the plan",
        steps=(decay.step,),
        values={"share": decay.share, "expected": expected, "progress": decay.progress},
    )


_RATE = ("learning_rate",)
READINGS = (
    reading(lr_zero, needs=_RATE, points=ZEROS, sources=("transformers_docs",), background=0.01),
    reading(lr_jump, needs=_RATE, points=JUMPS, sources=("bekman_mle",), background=0.01),
    reading(lr_schedule_short, needs=_RATE, points=ENDS, sources=("karpathy_recipe",), background=0.03),
    reading(lr_above_configured, needs=_RATE),
    reading(lr_below_configured, needs=_RATE),
    reading(lr_hardly_decays, needs=_RATE, background=0.01),
    reading(lr_decays_early, needs=_RATE, background=0.01),
)
"""How each outcome is seen, of how many values, and how often a healthy run shows it. Chosen: the fit counts the
backgrounds anew."""


@question(*(one.outcome for one in READINGS), needs=_RATE, whole_run=True)
def schedule(run: Run) -> Answers:
    """Look for a rate of zero, for jumps and for an end before the run's, then beside the configuration."""
    return first_of(run, READINGS)
