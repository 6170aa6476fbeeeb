"""Jumps of a loss curve: what stands far above its recent level, in long logs and in excerpts of a few records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.lone_spike import lone_spike
from mldebug_mcp.measure.spikes import Baseline, Spike, baseline, spikes
from mldebug_mcp.measure.statistics import (
    end_level,
    heaviness,
    median,
    median_of_three,
    noise,
    positive,
    relative_noise,
    start_level,
)
from mldebug_mcp.measure.unknown import CannotTell
from mldebug_mcp.text import counted

SIGMAS = 8.0
"""A spike stands this far above the noise of the points before it. Chosen: on simulated curves with normal, lognormal
and heavy-tailed noise."""
SKEWED_SIGMAS = 5.0
"""... and this far on the logarithm. Chosen: on simulated curves, as noise that multiplies reaches far up."""
SHARE_OF_LEVEL = 0.15
"""... and this share of the level above it. Chosen: axolotl_stability speaks of factors of 2 to 10; large models show
smaller jumps."""
SHARE_OF_PROGRESS = 0.05
"""... and this share of all the progress made. Chosen: near zero loss, a factor of ten is nothing."""
TAIL_POWER = 8
"""Power of `heaviness` by which single outliers must reach farther, up to where 1 % of curves have their largest.
Fitted: Student's t with 3 degrees of freedom, 60 to 2000 points; at most 2 % of such curves show one."""
EXCERPT, EXCERPT_FACTOR = 8, 1.5
"""Below so many records a jump is by this factor, and the records before it lie close together. Chosen: no noise can be
estimated from fewer."""
SHORT = 12
"""In a log of fewer records a jump must be by half the level. Chosen: the noise is hardly known."""


@dataclass(frozen=True, slots=True)
class Jumps:
    """The jumps of the loss of a run.

    Args:
        run: The run.
        loss: Its finite losses.
        found: Its jumps in order, at least one.
    """

    run: Run
    loss: Series
    found: list[Spike]

    @property
    def worst(self) -> Spike:
        """The highest of them."""
        return max(self.found, key=lambda spike: spike.height)

    @property
    def steps(self) -> Floats:
        """The steps at which they begin, shape (jumps,)."""
        return self.loss.step[[spike.first for spike in self.found]]

    @property
    def at(self) -> float:
        """The step at which the highest begins."""
        return float(self.loss.step[self.worst.first])

    @property
    def where(self) -> str:
        """Where the highest begins, in words."""
        return f"the jump at {self.run.place(self.at)}"

    def need(self, records: int) -> None:
        """Raise CannotTell if fewer finite losses are logged."""
        if len(self.loss) < records:
            raise CannotTell(f"loss has {counted(len(self.loss), 'finite value')} here; {records} are needed")

    def refuse_densities(self) -> None:
        """Raise CannotTell of a negative log-density, of which one row far out costs any amount: no cross-entropy."""
        worst, values = self.worst, self.loss.value
        if end_level(values) < 0 and worst.first and values[worst.peak] < values[: worst.first].max():
            raise CannotTell("the loss has come below zero, as a log-density's does: how far a jump goes says little")


def find_spikes(values: Floats) -> list[Spike]:
    """Return the jumps of a loss curve, those included that did not come back."""
    if len(values) < EXCERPT:
        return _in_excerpt(values)
    width = int(np.clip(len(values) // 20, 6, 50))
    base = baseline(values, width)
    return _above_the_noise(values, width, base) or lone_spike(values, SHARE_OF_LEVEL, SHARE_OF_PROGRESS)


def _above_the_noise(values: Floats, width: int, base: Baseline) -> list[Spike]:
    relative = relative_noise(values) if positive(values) else None
    sigma = _sigma(values, base, relative)
    threshold = _threshold(values, base.level, sigma, relative)
    if not base.is_exceeded(values, threshold):
        return []
    once = spikes(values, width, threshold, base, skip=3)
    lasting = spikes(median_of_three(values), width, threshold, base, skip=3)
    farther = _farther(values if relative is None else np.log(values), [*once, *lasting]) if once else 1.0
    # Heavy-tailed noise makes single outliers, hardly ever two side by side: only they must reach farther.
    once = [spike for spike in once if spike.height > SIGMAS * sigma[spike.first // base.stride] * farther]
    more = [_with_peak(spike, values) for spike in lasting if not any(_overlap(spike, other) for other in once)]
    return sorted([*once, *more], key=lambda spike: spike.first)


def _in_excerpt(values: Floats) -> list[Spike]:
    """Return the first jump in a handful of records, if the others are close together by comparison."""
    for at in range(1, len(values)):
        before, others = values[:at], np.delete(values, at)
        level = median(before)
        height = float(values[at]) - level
        alone = at >= 2 or values[at] > EXCERPT_FACTOR * others.max()
        if level <= 0 or values[at] < EXCERPT_FACTOR * level or height < 5 * float(np.ptp(before)) or not alone:
            continue
        back = np.flatnonzero(values[at + 1 :] < level + height / 3)
        recovered = True if len(back) else (False if len(values) - at > 3 else None)
        return [Spike(at, at + int(back[0]) if len(back) else len(values) - 1, at, level, height, recovered)]
    return []


def _farther(curve: Floats, candidates: list[Spike]) -> float:
    """Return how many times farther an outlier must reach, for the tails that the noise has outside the candidates."""
    quiet = np.ones(len(curve), dtype=np.bool_)
    for spike in candidates:
        quiet[max(0, spike.first - 1) : spike.last + 2 + 2 * (spike.last - spike.first + 1)] = False
    most = (len(curve) / 0.018) ** (1 / 3) / 1.134 / SIGMAS
    return float(min(max(1.0, heaviness(curve[quiet]) / 1.02) ** TAIL_POWER, max(1.0, most)))


def _with_peak(spike: Spike, values: Floats) -> Spike:
    """Return a spike of the median of three as high as the highest record in it."""
    first = max(0, spike.first - 1)
    peak = first + int(np.argmax(values[first : spike.last + 2]))
    return replace(spike, peak=peak, height=float(values[peak]) - spike.level)


def _overlap(one: Spike, other: Spike) -> bool:
    return one.first <= other.last + 1 and other.first <= one.last + 1


def _sigma(values: Floats, base: Baseline, relative: float | None) -> Floats:
    """Return the standard deviation of the noise, of the shape of the level, larger where few points tell it.

    `relative` is the noise of the logarithm, where there is one.
    """
    overall = noise(values)
    spread = base.spread
    if len(values) < 2 * SHORT:
        spread = np.minimum(spread, 2 * overall)  # so short a window holds more trend than noise
    # A window may happen to be quiet.
    floor = np.full_like(base.level, overall) if relative is None else relative * base.level
    return np.maximum(spread, 0.8 * np.minimum(floor, 2 * overall)) * (1 + 10 / len(values))


def _threshold(values: Floats, level: Floats, sigma: Floats, relative: float | None) -> Floats:
    """Return how far above the level before it each point must lie, of the shape of the level."""
    count = len(values)
    progress = max(0.0, start_level(values) - float(values.min()))
    share = SHARE_OF_LEVEL if count >= SHORT else 0.5
    if relative is not None:
        share = max(share, math.expm1(min(SKEWED_SIGMAS * relative * (1 + 10 / count), 50.0)))
    return np.maximum(np.maximum(SIGMAS * sigma, share * np.abs(level)), SHARE_OF_PROGRESS * progress)
