"""The learning rate as it was logged. It gives the peak, the course compared with the configured one, and cycles."""

from __future__ import annotations

import math
import re
from enum import StrEnum

import numpy as np

from mldebug_mcp.checks.curve import finite_of, sample
from mldebug_mcp.checks.progress import epoch_at
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.logs.settings.settings import number_of

# The learning rate as an amount: its peak, its course beside the configured one, and how far it carries weights.


MIN_RATE_CHANGE_SHARE = 1e-3
"""A change of the rate by less than this share of its peak is none. Chosen: rounding of logs."""
MIN_READABLE_RATE = 0.1
"""The least that a rate in another unit reads. Chosen: units are chosen to be read."""
DECIMALS_PER_UNIT = 3.0
"""Decimals of a unit. Source: thousandths and millionths."""
MOST_WARMUP = 0.9
"""Share of a plan that a warm-up takes at most. Chosen: something must be left to decay in."""
MAX_FACTOR_DIFFERENCE = 0.03
"""A factor this near to one that trainers scale a rate by is that. Chosen: rounding of logs."""
MAX_WARMUP_EPOCH = 0.1
"""Share of the first epoch in which the log may still warm up. Chosen: where warm-ups end as a rule."""
BASE_BATCHES = (32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
"""Batches that a rate is given for where it is scaled with the batch. Source: goyal_2017."""


class Shape(StrEnum):
    """What a configured schedule does after its warm-up."""

    CONSTANT = "constant"
    FALLS = "falls"
    OTHER = "other"


_NOT_PLAIN = (
    "restart", "cyclic", "cycle", "plateau", "stable", "wsd", "warmuplr", "linearlr", "multistep", "sgdr", "inverse",
    "hard",
)  # fmt: skip
"""Parts of the names of schedules that come back, have stages, or wait for the loss."""
_FALLING = ("cosine", "linear", "polynomial")
_PERIOD = regex(
    r"(?:.*[/.])?(?:T_?0|(?:num|n)_cycles)|(?=.*(?:lr|rate|sched|cosine)).*(?:period|cycle|restart).*", re.IGNORECASE
)
"""A setting that says after how many steps a rate comes back, or how often: fairseq's `lr_period_updates`."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest rate that was logged.

    Args:
        value: The rate.
        step: Where it was logged first.
        is_seen: Whether it is the peak of the schedule: the rate does not still rise where the log ends.
    """

    value: float
    step: float
    is_seen: bool


@dataclass(frozen=True, slots=True)
class Decay:
    """How far a rate has come down, compared with what its configured schedule makes of the plan.

    Args:
        share: The last rate as a share of the peak.
        expected: The share that the slower of a straight line and a cosine leaves there.
        expected_least: The share that the faster of the two leaves there.
        progress: Share of the steps behind the warm-up that is done.
        step: Where that is.
        records: Records behind the warm-up.
    """

    share: float
    expected: float
    expected_least: float
    progress: float
    step: float
    records: int


def rate_of(run: Run) -> Series | None:
    """Return the learning rate as logged, without what is not finite; that of the first group of parameters."""
    found = next(run.with_role(Quantity.LEARNING_RATE, phase="train"), None)
    return found.finite if found is not None and len(found.finite) else None


def peak_of(run: Run) -> Peak | None:
    """Return the peak of the logged rate, None if none above zero is logged."""
    rate = rate_of(run)
    if rate is None or float(rate.value.max()) <= 0:
        return None
    peak = float(rate.value.max())
    at = int(rate.value.argmax())
    rises = (
        len(rate) > 1 and at == len(rate) - 1 and float(rate.value[-1] - rate.value[0]) > MIN_RATE_CHANGE_SHARE * peak
    )
    return Peak(peak, float(rate.step[at]), not rises)


def highest_of_all(run: Run) -> float:
    """Return the highest rate of any group of parameters that is logged, 0 if none is."""
    every = [series.finite.value for series in run.with_role(Quantity.LEARNING_RATE, phase="train", parts=True)]
    return max((float(values.max()) for values in every if len(values)), default=0.0)


def shape_of(run: Run) -> Shape | None:
    """Return what the configured schedule does after its warm-up, None if none is configured."""
    name = (run.facts.schedule.kind or "").lower().replace("_", "").replace("-", "").replace(" ", "")
    if not name:
        return None
    if any(part in name for part in _NOT_PLAIN) or _has_period(run):
        return Shape.OTHER
    if "constant" in name:
        return Shape.CONSTANT
    if any(part in name for part in _FALLING) and not (name.endswith("warmup") and "cosine" not in name):
        return Shape.FALLS
    return Shape.OTHER


def _has_period(run: Run) -> bool:
    """Say whether the settings have a schedule come back before the end of the plan."""
    plan = run.facts.plan or run.last_step
    numbers = [number_of(setting.value) for name, setting in run.settings.items() if _PERIOD.fullmatch(name)]
    return any(number is not None and 1 < number < plan for number in numbers)


def decay_of(run: Run, since: float = 1.0) -> Decay | None:
    """Return how far the rate has come down, None where schedule, plan or log do not tell.

    At a share p of the decay a straight line leaves 1 - p of the peak; a cosine (1 + cos(pi p)) / 2; a floor
    adds to both.

    Args:
        run: The run.
        since: Share of the log behind which the record is looked for that stands highest above that; 1 for the last.
    """
    rate, plan, peak = rate_of(run), plan_of(run), peak_of(run)
    if rate is None or plan is None or peak is None or shape_of(run) is not Shape.FALLS:
        return None
    length = run.setting("lr_decay_steps")
    planned = length if length and length > 0 and plan.unit == "step" else plan.planned
    steps = planned if plan.unit == "step" else run.last_step * planned / max(plan.reached, 1e-9)
    warmup = _share_of_warmup(run, steps, peak)
    floor = min(1.0, (run.facts.schedule.floor or 0.0) / peak.value)
    far = rate.step[rate.step >= since * rate.step[-1]] / rate.step[-1] if rate.step[-1] > 0 else np.ones(1)
    done = np.clip((far * plan.reached / planned - warmup) / (1 - warmup), 0.0, 1.0)
    line, cosine = (floor + (1 - floor) * share for share in (1 - done, (1 + np.cos(np.pi * done)) / 2))
    shares, expected = rate.value[-len(far) :] / peak.value, np.maximum(line, cosine)
    at = int(np.argmax(shares - expected))
    if done[at] <= 0:
        return None
    return Decay(
        share=float(shares[at]),
        expected=float(expected[at]),
        expected_least=float(np.minimum(line, cosine)[at]),
        progress=float(done[at]),
        step=float(rate.step[len(rate) - len(far) + at]),
        records=int((rate.step >= peak.step).sum()),
    )


def _share_of_warmup(run: Run, planned: float, peak: Peak) -> float:
    """Return the share of a schedule of so many steps that its warm-up takes: as configured, or longer where seen."""
    configured, total = run.facts.schedule.warmup_steps or 0.0, run.facts.plan or planned
    rate = rate_of(run)
    rose = rate is not None and float(rate.value[0]) < (1 - MIN_RATE_CHANGE_SHARE) * peak.value
    observed = (peak.step - run.first_step) / max(planned, run.last_step) if rose else 0.0
    return min(MOST_WARMUP, max(configured / total, observed))


def is_scaled(run: Run, factor: float) -> bool:
    """Say whether trainers scale a rate by this factor: batch over a base batch, its root, devices or accumulation."""
    batch = run.facts.effective_batch
    counts = [run.setting(name) or 1.0 for name in ("world_size", "gradient_accumulation_steps", "nproc_per_node")]
    whole = [*counts, math.prod(counts), *([batch] if batch else [])]
    scales = [*whole, *((batch or 1.0) / base for base in BASE_BATCHES)]
    known = [
        multiple
        for scale in scales
        if scale > 0
        for multiple in (scale, 1 / scale, math.sqrt(scale), 1 / math.sqrt(scale))
    ]
    return any(abs(factor / multiple - 1) < MAX_FACTOR_DIFFERENCE for multiple in known)


def is_unit(factor: float, highest: float) -> bool:
    """Say whether a factor is a power of 1000 that makes a rate a number to read."""
    power = math.log10(factor) / DECIMALS_PER_UNIT
    return (
        round(power) >= 1
        and abs(power - round(power)) < MAX_FACTOR_DIFFERENCE / DECIMALS_PER_UNIT
        and highest >= MIN_READABLE_RATE
    )


def still_rising(run: Run) -> bool:
    """Say whether the log may end within the warm-up of the learning rate, which is logged once at least."""
    rate = finite_of(run, "learning_rate")
    if len(rate) == 1:
        epoch = epoch_at(run, float(rate.step[0]))
        return epoch is not None and epoch < MAX_WARMUP_EPOCH
    return bool(rate.value[-1] > rate.value[0] and rate.value[-1] == rate.value.max() > rate.value[-2])


# A range test: the rate rises by one factor from record to record until the loss breaks, to find a rate to train with.


MIN_TIMES_OF_RANGE = 1e3
"""Times the first rate that a range test comes to. Chosen: a warm-up of so many times is linear."""
MIN_RECORDS_OF_RANGE = 20
"""Records of a range test. Chosen: fewer show no course."""
ONE_FACTOR = 0.1
"""Share by which the logarithms of its factors differ. Chosen: rounding of logs."""


def range_test(run: Run) -> str:
    """Return that a run is a learning-rate range test, with the rate where the loss is lowest; "" where it is none.

    Source: Smith, Cyclical Learning Rates for Training Neural Networks, 2017, section 3.3; the exponential form is
    that of fastai's `lr_find`.
    """
    rate = rate_of(run)
    if rate is None or "loss" not in run or len(rate) < MIN_RECORDS_OF_RANGE:
        return ""
    if rate.value[-1] < MIN_TIMES_OF_RANGE * rate.value[0] or float(rate.value.min()) <= 0:
        return ""
    factors = np.diff(np.log(rate.value))
    usual = median(factors)
    if usual <= 0 or float(np.abs(factors / usual - 1).max()) > ONE_FACTOR:
        return ""
    loss = run["loss"].finite
    lowest = int(np.argmin(loss.value))
    at = rate.at(float(loss.step[lowest]))
    best = "" if at is None else f" Its loss is lowest, {figure(float(loss.value[lowest]))}, at {figure(at)}."
    return (
        f"it is a learning-rate range test, whose rate rises from {figure(float(rate.value[0]))} to "
        f"{figure(float(rate.value[-1]))} by one factor a record.{best}"
    )


# Learning rates that come back: warm restarts and cycles, which the loss follows.


MIN_TIMES_LOWEST_RATE = 2.0
"""Times what it had come down to that a rate comes back to. Chosen: by hand."""
OF_PEAK = 0.2
"""Share of its highest that a rate comes back to. Chosen: by hand."""


def rate_comes_back(run: Run) -> list[float]:
    """Return the steps at which the learning rate, after it has come down, begins to rise again.

    The warmup is none of them: the rate has not come down before it.
    """
    series = finite_of(run, "learning_rate")
    value = sample(series.value)
    top = int(np.argmax(value)) if len(value) else 0
    if not (np.diff(value[: top + 1]) < 0).any() and not (np.diff(value[top:]) > 0).any():
        return []  # it rises once, and falls once
    rates, steps = value.tolist(), sample(series.step).tolist()
    least = OF_PEAK * max(rates)
    back: list[float] = []
    peak, low, at, down = 0.0, 0.0, 0.0, False
    for rate, step in zip(rates, steps, strict=True):
        if down and rate > MIN_TIMES_LOWEST_RATE * low and rate >= least:
            back.append(at)
            peak, down = rate, False
        elif (down and rate <= low) or (not down and rate * MIN_TIMES_LOWEST_RATE < peak):
            low, at, down = rate, step, True
        peak = rate if not down and rate > peak else peak
    return back
