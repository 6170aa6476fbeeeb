"""Is the course of the learning rate the one that was configured, and one that lets training go on?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
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
from mldebug_mcp.measure.rate_end import WAY_LEFT, comes_to_nothing, stays_low, zero_for_long
from mldebug_mcp.measure.rate_jump import jump_of
from mldebug_mcp.measure.statistics import last_decimal, median
from mldebug_mcp.symptoms.readings import first_of, outcome_of, reading
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.text import figure

ABOVE, BELOW = 1.9, 3.0
"""Times the configured peak. Chosen: more is asked below it, as a log may miss the peak between two records."""
BESIDE = 0.35
"""Share of the peak by which a rate is off its schedule. Chosen: line and cosine differ by a tenth at most."""
LEAST = 4
"""Records behind the peak. Chosen: fewer show no course."""
CYCLES = ("cycle", "restart", "t_0", "t_mult")
"""Parts of the names of settings of a schedule that comes back."""
HALFWAY = 0.5
"""Of the plan, before which a rate that hardly decays says little. Chosen: a cosine has half of its peak there."""
EARLY, BEHIND = 0.05, 1.2
"""Share of the plan where a log must begin, and times the warm-up where it may end, to show the peak. Chosen: slack."""
JUMPS, ZEROS, ENDS = 8, 5, 20
"""Rates that show a jump, a stretch of zeros, and the end of a schedule. Chosen: fewer show no course."""
NEXT = 2.0
"""Records by which a jump may stand beside a resume. Chosen: a record is written before it or behind it."""


def lr_schedule_short(run: Run) -> Evidence | None:
    """The learning rate falls gradually to its lowest value and stays there, or comes to nothing, long before the end.

    Not this when: that value is zero (`lr_zero`), or no small share of the peak; it goes down in a few stages, which
    leave the weights some way to go.
    """
    rate = run["learning_rate"].finite
    if (end := comes_to_nothing(rate)) is not None:
        said = (
            f"learning_rate is {figure(end.rate)} at {run.place(end.step)}, its peak {figure(end.peak)}: all further "
            f"rates, {end.share:.0%} of the log, make {figure(100 * WAY_LEFT)} % of the sum of all"
        )
    elif (end := stays_low(rate)) is not None:
        said = (
            f"learning_rate reaches its lowest value, {figure(rate.value[-1])}, at {run.place(end.step)} and stays "
            f"there to {figure(end.last)}: {end.share:.0%} of the log; its peak is {figure(end.peak)}"
        )
    else:
        return None
    values = {"floor": float(rate.value[-1]), "peak": end.peak, "share_after": end.share}
    return Evidence(said, steps=(end.step,), values=values)


def lr_zero(run: Run) -> Evidence | None:
    """The learning rate is zero over a stretch of records while training goes on.

    Not this when: only the last record or the first is zero; the rate is printed with too few digits.
    """
    rate = run["learning_rate"].finite
    zero = zero_for_long(run, rate)
    if zero is None:
        return None
    said = f"learning_rate is 0 from {run.place(zero.step)} to {figure(zero.last)} ({zero.records} records)"
    values = {"records": zero.records, "share": float((rate.value == 0).mean())}
    return Evidence(said, steps=(zero.step,), values=values)


def lr_jump(run: Run) -> Evidence | None:
    """The learning rate rises suddenly after it had reached its peak, or falls suddenly out of a smooth schedule.

    Not this when: it is the first warm-up; the schedule goes down in stages; restarts are configured, or come again at
    even distances or behind a schedule that had run down, and no plain schedule is configured (remarks).
    """
    rate = run["learning_rate"].finite
    rate = rate.where(rate.value >= 0)
    jump = jump_of(rate) if len(rate) >= JUMPS and float(rate.value.max()) > 0 else None
    if jump is None:
        return None
    configured = "restart" in str(run.config.get("lr_scheduler_type", "")).lower()
    plain = shape_of(run) in (Shape.FALLS, Shape.CONSTANT) and not any(
        part in name.lower() for name in run.settings for part in CYCLES
    )
    through = f" and back up to {figure(jump.after)}" if jump.comes_back else ""
    remark = "; the configured schedule restarts" if configured else "; it does so at even distances" * jump.comes_again
    after = jump.lowest if through else jump.after
    return Evidence(
        f"learning_rate goes from {figure(jump.before)} to {figure(after)} at {run.place(jump.step)}{through}{remark}",
        steps=(jump.step,),
        values={"before": jump.before, "after": after},
        present=plain or not (configured or jump.comes_again or jump.begins_anew),
    )


def lr_above_configured(run: Run) -> Evidence | None:
    """The logged learning rate goes above the peak that is configured, to twice as much or more.

    Not this when: the factor is one by which trainers scale a rate (batch, its root, devices); the rate is logged in
    thousandths or millionths; the peak of the schedule is not the configured rate (one cycle).
    """
    peak, factor, configured = _beside_configured(run)
    if factor < ABOVE or is_scaled(run, factor) or is_unit(factor, factor * configured):
        return None
    return _of_peak(run, peak, factor, configured)


def lr_below_configured(run: Run) -> Evidence | None:
    """The logged learning rate never comes near the peak that is configured: it stays below a third of it.

    Not this when: the log ends in the warm-up or begins behind it; another group of parameters has the configured rate;
    the factor is one that trainers scale a rate by.
    """
    peak, factor, configured = _beside_configured(run)
    if factor > 1 / BELOW or is_scaled(run, 1 / factor) or is_unit(1 / factor, configured):
        return None
    rate, plan = rate_of(run), run.facts.plan or run.last_step
    warmup = run.facts.schedule.warmup_steps or 0.0
    known = rate is not None and peak.is_seen and len(rate) >= LEAST and run.step_name == "step"
    first = run.first_step if rate is None else float(rate.step[0])
    if not known or first > max(1.0, warmup, EARLY * plan) or run.last_step < BEHIND * warmup:
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
    peak = peak_of(run)
    if peak is None:
        raise CannotTell("no learning rate above zero is logged")
    return peak


def _of_peak(run: Run, peak: Peak, factor: float, configured: float) -> Evidence:
    return Evidence(
        f"learning_rate peaks at {figure(factor * configured)} at {run.place(peak.step)}, "
        f"{figure(factor)} times the {figure(configured)} that is configured",
        steps=(peak.step,),
        values={"peak": factor * configured, "configured": configured, "factor": factor},
    )


def lr_hardly_decays(run: Run) -> Evidence | None:
    """A cosine or a straight line is configured, and the learning rate is far above it late in the plan.

    Not this when: the schedule has restarts, stages or a floor that is configured; the run is not halfway through.
    """
    decay, least = _decay(run, HALFWAY)
    if decay is None or decay.progress < HALFWAY or decay.share - decay.expected <= least:
        return None
    return _of_decay(run, decay, "above", decay.expected)


def lr_decays_early(run: Run) -> Evidence | None:
    """A cosine or a straight line is configured, and the learning rate is far below it early in the plan.

    Not this when: its own length is configured; it goes down in stages.
    """
    decay, least = _decay(run)
    if decay is None or decay.progress > 1 - BESIDE or decay.expected_least - decay.share <= least:
        return None
    return _of_decay(run, decay, "below", decay.expected_least)


def _decay(run: Run, since: float = 1.0) -> tuple[Decay | None, float]:
    """Return how far the rate has come down, None where none is to be expected, and the least that matters."""
    peak, rate, shape = _peak(run), rate_of(run), shape_of(run)
    decay = decay_of(run, since) if shape is Shape.FALLS else None
    if rate is None or shape is None or (shape is Shape.FALLS and (decay is None or decay.records < LEAST)):
        raise CannotTell(f"a schedule, its plan or {LEAST} records behind the peak are missing")
    return decay, BESIDE + last_decimal(rate.value) / (2 * peak.value)


def _of_decay(run: Run, decay: Decay, where: str, expected: float) -> Evidence:
    return Evidence(
        f"learning_rate is at {decay.share:.0%} of its peak at {run.place(decay.step)}, {where} the "
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
"""How each outcome is seen. Chosen: the fit counts the backgrounds anew."""


def lr_jump_at_resume(run: Run, jump: Evidence) -> Evidence | None:
    """The jump of the learning rate stands where the run was resumed, as its log or its steps tell.

    Not this when: the log shows no resume there; the new stretch is configured to begin a schedule of its own.
    """
    rate = run["learning_rate"].finite
    near = NEXT * median(np.abs(np.diff(rate.step)))
    at = next((step for step in run.resumes if abs(step - jump.steps[0]) <= near), None)
    if at is None:
        return None
    said = f"the learning rate jumps where the run was resumed, at {run.place(at)}"
    return Evidence(said, steps=(at,), values={"resumed": at})


@question(
    *(one.outcome for one in READINGS),
    outcome_of(lr_jump_at_resume, 0.05, "idefics_80b_chronicles", of="lr_jump", as_chosen=True),
    needs=_RATE,
    whole_run=True,
)
def schedule(run: Run) -> Answers:
    """Look for a rate of zero, for jumps and for an end before the run's, then beside the configuration."""
    answers = first_of(run, READINGS)
    jump = answers.get("lr_jump")
    seen = lr_jump_at_resume(run, jump) if isinstance(jump, Evidence) and jump.present else None
    return answers if seen is None else {**answers, "lr_jump_at_resume": seen}
