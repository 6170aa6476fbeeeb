"""Sudden jump of the loss that recovers."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.beside import Moved, level_and_extreme, moved
from mldebug_mcp.measure.lone_spike import lone_spike
from mldebug_mcp.measure.spikes import Baseline, Spike, baseline, spikes
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_divergence import loss_divergence
from mldebug_mcp.symptoms.statistics import (
    end_level,
    heaviness,
    median,
    median_of_three,
    noise,
    positive,
    relative_noise,
    start_level,
)
from mldebug_mcp.symptoms.terms import term_set_in
from mldebug_mcp.text import counted, figure

SIGMAS = 8.0
"""A spike stands this far above the noise of the points before it."""
SKEWED_SIGMAS = 5.0
"""... and this far on the logarithm: noise that multiplies reaches far up."""
SHARE_OF_LEVEL = 0.15
"""... and this share of the level above it.

Axolotl speaks of jumps by a factor of 2 to 10; large models show smaller ones.
"""
SHARE_OF_PROGRESS = 0.05
"""... and this share of all the progress made: near zero loss, a factor of ten is nothing."""
TAIL_POWER = 8
"""How much farther, by powers of `heaviness`, a single outlier must reach in heavy-tailed noise.

Fitted on Student's t with 3 degrees of freedom, 60 to 2000 points: at most 2 % of such curves show one. The bound is
where 1 % of such curves have their largest value.
"""
EXCERPT, EXCERPT_FACTOR = 8, 1.5
"""Below so many records no noise can be estimated: the records before the jump must lie close together."""
SHORT = 12
"""In a log of fewer records the noise is hardly known: a jump must be by half the level and leave no doubt."""


@symptom(
    needs=("loss",),
    sources=("axolotl_stability",),
    points=3,
    not_for=("grpo", "ppo", "rl"),
    background=0.1,  # a large healthy run has twenty (palm_2022)
    as_chosen=True,
    instead=("logits_grow", "loss_divergence", "loss_nonfinite"),
)
def loss_spike(run: Run) -> Evidence | None:
    """The training loss jumps far above its recent level and comes back.

    Not this when: the curve is just noisy (many such points, or heavy tails); it stays up (`loss_divergence`); a term
    of the loss, zero until then, sets in there. A jump at the very end of the log counts, and the summary says that the
    log ends there. The factors were chosen on synthetic curves with normal, lognormal and heavy-tailed noise
    (`benchmarks/symptoms.py`).
    """
    loss = run["loss"].finite
    found = passing_jumps(run)
    if not found or len(found) > max(5, len(loss) // 50):
        return None
    if not any(spike.recovered for spike in found) and loss_divergence(run) is not None:
        raise CannotTell("the loss has jumped and is still up where the log ends (`loss_divergence`)")
    worst = max(found, key=lambda spike: spike.height)
    return _evidence(run, loss.step, loss.value, found, worst)


def passing_jumps(run: Run) -> list[Spike]:
    """Return the jumps of the loss of a run but for those that stay up."""
    return [spike for spike in jumps(run) if spike.recovered is not False]


@lru_cache(maxsize=1)
def jumps(run: Run) -> list[Spike]:
    """Return the jumps of the loss of a run but for those where a term sets in; other symptoms ask for the same."""
    loss = run["loss"].finite
    return [one for one in find_spikes(loss.value) if term_set_in(run, float(loss.step[one.first])) is None]


def refuse_densities(loss: Series, spike: Spike) -> None:
    """Raise CannotTell if a loss has come below zero and a jump stays below where it was before.

    So do negative log-densities, and no cross-entropy. A density has no bound, and one row far out costs any amount:
    single records stand out of sound flows.
    """
    if end_level(loss.value) < 0 and loss.value[spike.peak] < loss.value[: spike.first].max(initial=-math.inf):
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


def _evidence(run: Run, step: Floats, value: Floats, found: list[Spike], worst: Spike) -> Evidence:
    at, top = float(step[worst.first]), float(value[worst.peak])
    times = top / worst.level if worst.level > 0 else float("nan")
    width = worst.last - worst.first + 1
    back = "and the log ends before it could come back"
    if worst.recovered:
        # A jump counts as over once most of its height is gone, which need not be all.
        after = float(value[worst.last + 1 : worst.last + 2].min(initial=worst.level + worst.height))
        back = f"and is down to {figure(after)} after {counted(width, 'record')}"
    spacing = _spacing(step, found)
    more = f"; {len(found)} such jumps in all" if len(found) > 1 else ""
    more += f", {figure(spacing['spacing'])} {run.step_name}s apart" if spacing else ""
    others = moved(run, at, float(step[worst.last]))
    return Evidence(
        f"loss jumps from {figure(worst.level)} to {figure(top)} at {run.step_name} {figure(at)} {back}{more}"
        f"{_beside(run, at, float(step[worst.last]), others)}",
        steps=(at, *(float(step[spike.first]) for spike in found if spike is not worst))[:10],
        values={
            "level_before": worst.level,
            "peak": top,
            "height": worst.height,
            "factor": times,
            "width_records": width,
            "width_steps": float(step[worst.last]) - at,
            "count": len(found),
            "recovered": float(bool(worst.recovered)),
            **spacing,
            **_numbers(others),
        },
    )


def _spacing(step: Floats, found: list[Spike]) -> dict[str, float]:
    """Return the distance in steps between spikes, if there are several at one distance."""
    gaps = np.diff([step[spike.first] for spike in found])
    if len(gaps) < 2 or float(gaps.std()) > 0.05 * float(gaps.mean()):
        return {}
    return {"spacing": float(gaps.mean())}


def _beside(run: Run, first: float, last: float, others: list[Moved]) -> str:
    """Say what else was logged there: the learning rate, the gradient norm, and what moved."""
    said = {one.metric: str(one) for one in others}
    rate = run["learning_rate"].at(first) if "learning_rate" in run else None
    if rate is not None:
        said.setdefault("learning_rate", f"the learning rate there is {figure(rate)}")
    norm = level_and_extreme(run["grad_norm"].finite, first, last) if "grad_norm" in run else None
    if norm is not None:
        said.setdefault("grad_norm", f"grad_norm goes from {figure(norm[0])} to {figure(norm[1])}")
    return "".join(f"; {part}" for part in said.values())


def _numbers(others: list[Moved]) -> dict[str, float]:
    numbers = {}
    for one in others:
        numbers[f"{one.metric}_before"], numbers[f"{one.metric}_there"] = one.before, one.there
        if one.since is not None:
            numbers[f"{one.metric}_moved_since"] = one.since
    return numbers
