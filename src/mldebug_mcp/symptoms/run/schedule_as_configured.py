"""Is the learning rate that was logged the one that was configured?"""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.rate import (
    Decay,
    Peak,
    Shape,
    comes_back_smoothly,
    decay_of,
    highest_of_all,
    peak_of,
    rate_of,
    shape_of,
)
from mldebug_mcp.measure.statistics import last_decimal
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

ABOVE, BELOW = 1.9, 3.0
"""Times the configured peak. More is asked below it: a log may miss the peak between two records. Chosen by hand."""
ALIKE = 0.03
"""A factor this near to one that trainers scale a rate by is that. Chosen by hand."""
BASE_BATCHES = (32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
"""Batches that a rate is given for where it is scaled with the batch (Goyal et al. 2017: 256; timm and YOLO: 64)."""
BESIDE = 0.35
"""A rate that is off its schedule by this share of the peak; the line and the cosine differ by a tenth at most."""
LEAST = 4
"""Records behind the peak: fewer show no course."""
HALFWAY = 0.5
LOW, BACK = 0.5, 0.3
"""A rate that was below half of its peak and has regained 30 % of the peak came back. Chosen by hand."""


@question(
    Outcome(
        "lr_above_configured",
        """The logged learning rate goes above the peak that is configured, to twice as much or more.

        Not this when: the factor is the batch, its square root or the number of devices, by which trainers scale a
        rate; the rate is logged in thousandths or millionths; the schedule is one whose peak is not the configured rate
        (one cycle), or the optimizer sets its own.
        """,
        background=0.02,
    ),
    Outcome(
        "lr_below_configured",
        """The logged learning rate never comes near the peak that is configured: it stays below a third of it.

        Not this when: the log ends in the warm-up or begins behind it; another group of parameters has the configured
        rate; the factor is one that trainers scale a rate by; the schedule decays from the first step, whose first
        records are not logged.
        """,
        background=0.02,
    ),
    Outcome(
        "lr_hardly_decays",
        """A cosine or a straight line is configured, and the learning rate is far above it late in the plan.

        Not this when: the schedule has restarts, stages or a floor that is configured; the run is not halfway through;
        the rate is printed with so few decimals that half of the last of them would be the difference.
        """,
        background=0.01,
    ),
    Outcome(
        "lr_decays_early",
        """A cosine or a straight line is configured, and the learning rate is far below it early in the plan.

        A schedule that is stepped more often than the optimizer runs ahead of the plan. Not this when: its own length
        is configured; it goes down in stages.
        """,
        background=0.01,
    ),
    Outcome(
        "lr_rises_again",
        """A plain cosine or line is configured, and the learning rate comes down and goes back up in small steps.

        That is a cosine that is stepped on beyond its length. Not this when: restarts or cycles are configured; it
        jumps up (`lr_jump`).
        """,
        background=0.005,
    ),
    needs=("learning_rate",),
    whole_run=True,
)
def schedule_as_configured(run: Run) -> Answers:
    """Compare the logged rate with the configured peak and with the configured schedule over the plan."""
    peak = peak_of(run)
    if peak is None:
        raise CannotTell("no learning rate above zero is logged")
    by_peak, by_course = _beside_peak(run, peak), _beside_course(run, peak)
    seen = {name: said for name, said in by_peak.items() if isinstance(said, Evidence)}
    if seen:
        return seen
    return {**by_peak, **by_course}


def _beside_peak(run: Run, peak: Peak) -> Answers:
    configured, names = run.facts.schedule.peak, ("lr_above_configured", "lr_below_configured")
    reason = _why_no_peak(run, configured)
    if reason is not None or configured is None:
        return dict.fromkeys(names, CannotTell(reason or "no peak rate is configured"))
    factor = highest_of_all(run) / configured
    if factor >= ABOVE and not _is_scaled(run, factor) and not _is_unit(factor, factor * configured):
        return {"lr_above_configured": _of_peak(run, peak, factor, configured)}
    if factor <= 1 / BELOW and not _is_scaled(run, 1 / factor) and not _is_unit(1 / factor, configured):
        if not _shows_peak(run, peak):
            return {"lr_below_configured": CannotTell("the log does not show the peak of the schedule")}
        return {"lr_below_configured": _of_peak(run, peak, factor, configured)}
    return {}


def _why_no_peak(run: Run, configured: float | None) -> str | None:
    """Return why the configured rate is no peak to compare with, None if it is."""
    if configured is None or configured <= 0:
        return "no peak rate is configured"
    if family_of(run) in (Family.SELF_SET, Family.ADAFACTOR):
        return "the optimizer sets its own rate"
    name = (run.facts.schedule.kind or "").lower()
    if any(part in name for part in ("cycle", "cyclic", "noam", "inverse")):
        return f"the peak of the schedule {name[:20]} is another than the configured rate"
    return None


def _shows_peak(run: Run, peak: Peak) -> bool:
    """Say whether the log covers the place where the rate is highest: a warm-up's end, or a schedule's beginning."""
    rate = rate_of(run)
    if rate is None or not peak.is_seen or len(rate) < LEAST or run.step_name != "step":
        return False
    plan, warmup = run.facts.plan or run.last_step, run.facts.schedule.warmup_steps or 0.0
    return float(rate.step[0]) <= max(1.0, warmup, 0.05 * plan) and run.last_step >= 1.2 * warmup


def _of_peak(run: Run, peak: Peak, factor: float, configured: float) -> Evidence:
    return Evidence(
        f"learning_rate peaks at {figure(factor * configured)} at {run.step_name} {figure(peak.step)}, "
        f"{figure(factor)} times the {figure(configured)} that is configured",
        steps=(peak.step,),
        values={"peak": factor * configured, "configured": configured, "factor": factor},
    )


def _is_scaled(run: Run, factor: float) -> bool:
    """Say whether trainers scale a rate by this factor: batch over a base batch, its root, devices or accumulation."""
    batch = run.facts.effective_batch
    counts = [run.setting(name) or 1.0 for name in ("world_size", "gradient_accumulation_steps", "nproc_per_node")]
    whole = [*counts, math.prod(counts), *([batch] if batch else [])]
    scales = [*whole, *((batch or 1.0) / base for base in BASE_BATCHES)]
    known = [one for scale in scales if scale > 0 for one in (scale, 1 / scale, math.sqrt(scale), 1 / math.sqrt(scale))]
    return any(abs(factor / one - 1) < ALIKE for one in known)


def _is_unit(factor: float, highest: float) -> bool:
    """Say whether a factor is a power of 1000 that makes a rate a number to read."""
    power = math.log10(factor) / 3
    return round(power) >= 1 and abs(power - round(power)) < ALIKE / 3 and highest >= 0.1


def _beside_course(run: Run, peak: Peak) -> Answers:
    names = ("lr_hardly_decays", "lr_decays_early")
    rate, shape = rate_of(run), shape_of(run)
    if rate is None or shape is None:
        return dict.fromkeys((*names, "lr_rises_again"), CannotTell("no schedule is configured"))
    if shape is not Shape.FALLS:
        return {}
    if (turned := _turned(run, rate, peak)) is not None:
        return {"lr_rises_again": turned}
    decay = decay_of(run)
    if decay is None or decay.records < LEAST:
        reason = f"plan, progress or {LEAST} records behind the peak are missing"
        return dict.fromkeys(names, CannotTell(reason))
    return _off_course(run, decay, BESIDE + last_decimal(rate.value) / (2 * peak.value))


def _turned(run: Run, rate: Series, peak: Peak) -> Evidence | None:
    turn = comes_back_smoothly(rate)
    if turn is None:
        return None
    low, high = (float(rate.value[at]) for at in turn)
    if low >= LOW * peak.value or high - low <= BACK * peak.value:
        return None
    steps = tuple(float(rate.step[at]) for at in turn)
    return Evidence(
        f"learning_rate comes down to {figure(low)} at {run.step_name} {figure(steps[0])} and goes back up to "
        f"{figure(high)} at {figure(steps[1])}; {run.facts.schedule.kind} is configured",
        steps=steps,
        values={"low": low, "high": high},
    )


def _off_course(run: Run, decay: Decay, least: float) -> Answers:
    if decay.progress >= HALFWAY and decay.share - decay.expected > least:
        return {"lr_hardly_decays": _of_decay(run, decay, "above", decay.expected)}
    if decay.progress <= 1 - BESIDE and decay.expected_least - decay.share > least:
        return {"lr_decays_early": _of_decay(run, decay, "below", decay.expected_least)}
    return {}


def _of_decay(run: Run, decay: Decay, where: str, expected: float) -> Evidence:
    return Evidence(
        f"learning_rate is at {decay.share:.0%} of its peak at {run.step_name} {figure(decay.step)}, {where} the "
        f"{expected:.0%} that a schedule of {run.facts.schedule.kind} leaves after {decay.progress:.0%} of the plan",
        steps=(decay.step,),
        values={"share": decay.share, "expected": expected, "progress": decay.progress},
    )
