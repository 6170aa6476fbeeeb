"""Does the training loss jump and come back, and what happens around the jump?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mldebug_mcp.checks.check import (
    MAX_LISTED_STEPS,
    Answers,
    CannotTell,
    Evidence,
    answers_of,
    by_outcome,
    outcome_of,
    question,
    require_values,
)
from mldebug_mcp.checks.curve import (
    Baseline,
    Spike,
    baseline,
    counted_up,
    end_level,
    heaviness,
    mad,
    median_of_three,
    noise,
    positive,
    relative_noise,
    rise_for_good,
    spikes,
    start_in_words,
    start_level,
    teeth_of,
    true_at_end,
)
from mldebug_mcp.checks.evaluation import term_set_in
from mldebug_mcp.checks.run.data_order import epochs_of
from mldebug_mcp.core.arrays import median, median_gap, median_in_place
from mldebug_mcp.core.conventions import STD_PER_MAD
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Run, Series

# Events of the loss: how a jump begins and ends, what it leaves behind, and what the rest did before it.


NOISE_RECORDS_BEFORE_JUMP = 20
"""Records before a jump whose noise it is measured in. Chosen: by hand."""
LEAST_AROUND = 6
"""Records without which that noise is not known. Chosen: by hand."""
BAND_SIGMAS = 3.0
"""Standard deviations above the level before at which a jump is over. Chosen: by hand."""
BAND_SHARE = 0.1
"""The same as a share of the height. Chosen: by hand."""


def fading_of(values: Floats, spike: Spike) -> tuple[int, int, float] | None:
    """Return how a jump ends, None where it does not, or where too few records before it tell the noise.

    That is the records from its peak to the first one below half of its height; those from there to the one at which
    at most `BAND_SHARE` of its height is left, or noise; and the value of that one.
    """
    before = values[max(0, spike.first - NOISE_RECORDS_BEFORE_JUMP) : spike.first]
    if len(before) < LEAST_AROUND or not spike.recovered:
        return None
    half, band = spike.height / 2, max(BAND_SIGMAS * noise(before), BAND_SHARE * spike.height)
    above = values[spike.peak :] - spike.level
    under = np.flatnonzero(above <= half)
    if not len(under) or band >= half:
        return None
    high = int(under[0])
    back = np.flatnonzero(above[high:] <= band)
    return (high, int(back[0]), float(values[spike.peak + high + back[0]])) if len(back) else None


def interval(series: Series) -> float:
    """Return the median number of steps from record to record, 0 for a single record."""
    return median_gap(series.step) if len(series) > 1 else 0.0


# The one jump of a noisy curve, seen by what stands on both sides of it.


LONE_SPIKE_SIGMAS = 7.0
"""Standard deviations that a lone spike is off. Chosen: at most 2 % of curves with noise of Student's t(3) have one."""
MIN_LONE_SPIKE_RATIO = 4.0
"""Times as far off as any other record, as it is or on the logarithm. Chosen: at most 2 % of such curves have one."""
SIGMAS_ON_LOG = 4.0
"""Standard deviations that it is off on the logarithm in any case. Chosen: by hand."""
MIN_RATIO_WITHOUT_LOGARITHM = 6.0
"""Times as far off as any other, from which the logarithm does not count. Chosen: by hand."""
MIN_RECORDS_AFTER_FALL = 24
"""Records behind the first fall without which none counts as alone. Chosen: by hand."""
_LEVEL_RECORDS_PER_SIDE = 3
"""Records on each side whose median is the level. Chosen: no second record and no slope moves a median of six."""
_BATCH = 1 << 15
"""Records looked at together. Chosen: what is worked out of them fits into the caches of a processor."""


def lone_spike(values: Floats, share_of_level: float, share_of_progress: float) -> list[Spike]:
    """Return the record, or two, of a curve that stand out from the three on both sides as none elsewhere do.

    Args:
        values: The curve, shape (n,).
        share_of_level: Least height, as a share of the level around it.
        share_of_progress: Least height, as a share of the way from the start of the curve to its lowest point.
    """
    start = start_level(values)
    # Noise that multiplies is large in the fall: of a curve that comes down to a tenth, what follows is judged.
    falls = start > 0 and float(values.min()) < start / 10
    fall = int(np.argmax(median_of_three(values) < start / 10)) if falls else 0
    rest = values[fall:]
    if len(rest) < MIN_RECORDS_AFTER_FALL:
        return []
    top = _farthest(rest)
    height = float(rest[top.at]) - top.level
    if height <= 0 or height < max(share_of_level * abs(top.level), share_of_progress * (start - float(rest.min()))):
        return []
    if not _stands_out(top, _farthest(np.log(rest)) if positive(rest) else None):
        return []
    sides = (rest[top.at - _LEVEL_RECORDS_PER_SIDE : top.at], rest[top.at + 1 :][:_LEVEL_RECORDS_PER_SIDE])
    if float(rest[top.at]) - max(map(median, sides)) < height / 2:
        return []  # the last record before a fall to another level, or the first behind a rise
    high = [at for at in (top.at - 1, top.at, top.at + 1) if rest[at] > top.level + height / 2]
    return [Spike(fall + high[0], fall + high[-1], fall + top.at, top.level, height, recovered=True)]


@dataclass(frozen=True, slots=True)
class _Farthest:
    """The record of a curve that is farthest above the median of the six around it, but for the first three and last.

    Args:
        at: Its index.
        level: The median of the six around it.
        times: Its distance in multiples of the largest one elsewhere.
        sigmas: Its distance in standard deviations of the distances of all records.
    """

    at: int
    level: float
    times: float
    sigmas: float


def _stands_out(top: _Farthest, on_log: _Farthest | None) -> bool:
    """Say whether a record stands alone, as it is or on the logarithm, where there is one."""
    if not any(
        farthest.times > MIN_LONE_SPIKE_RATIO and farthest.sigmas > LONE_SPIKE_SIGMAS
        for farthest in (top, on_log)
        if farthest is not None
    ):
        return False
    return on_log is None or (
        on_log.at == top.at and (top.times > MIN_RATIO_WITHOUT_LOGARITHM or on_log.sigmas > SIGMAS_ON_LOG)
    )


def _farthest(curve: Floats) -> _Farthest:
    away = np.empty_like(curve)
    for first in range(0, len(curve), _BATCH):
        last = min(first + _BATCH, len(curve))
        away[first:last] = curve[first:last] - level_around(curve, first, last)
    at = _LEVEL_RECORDS_PER_SIDE + int(np.argmax(away[_LEVEL_RECORDS_PER_SIDE:-1]))
    before, after = away[: max(0, at - _LEVEL_RECORDS_PER_SIDE)], away[at + _LEVEL_RECORDS_PER_SIDE + 1 :]
    elsewhere = max(_largest_size(before), _largest_size(after))
    level, highest = float(level_around(curve, at, at + 1)[0]), float(away[at])
    np.abs(away, out=away)
    sigma = STD_PER_MAD * median_in_place(away) * (1 + 10 / len(away))
    return _Farthest(
        at,
        level,
        times=highest / elsewhere if elsewhere > 0 else math.inf,
        sigmas=highest / sigma if sigma > 0 else math.inf,
    )


def _largest_size(values: Floats) -> float:
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def level_around(curve: Floats, first: int, last: int) -> Floats:
    """Return the median of the three records on each side of some records, mirrored at the ends, (last - first,)."""
    places = np.abs(np.arange(first - _LEVEL_RECORDS_PER_SIDE, last + _LEVEL_RECORDS_PER_SIDE))
    return _middle(curve[np.minimum(places, 2 * (len(curve) - 1) - places)])


def _middle(curve: Floats) -> Floats:
    """Return the median of the six around each record but the outer three, shape (n - 6,).

    Six by six they are not sorted: each three in a row are once, and of the threes on both sides the middle is taken.
    """
    lower, upper = np.minimum(curve[:-2], curve[1:-1]), np.maximum(curve[:-2], curve[1:-1])
    high, other = np.maximum(upper, curve[2:]), np.minimum(upper, curve[2:])
    threes = np.minimum(lower, other), np.maximum(lower, other), high
    (a, b, c), (d, e, f) = ([part[side] for part in threes] for side in (np.s_[:-4], np.s_[4:]))
    third = np.minimum(np.minimum(c, f), np.minimum(np.maximum(a, e), np.maximum(b, d)))
    fourth = np.maximum(np.maximum(a, d), np.maximum(np.minimum(b, f), np.minimum(c, e)))
    return np.asarray((third + fourth) / 2)


# Jumps of a loss curve: what stands far above its recent level, in long logs and in excerpts of a few records.


JUMPS_SIGMAS = 8.0
"""A spike is so far above the noise before it. Chosen: on curves with normal, lognormal and heavy-tailed noise."""
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
MIN_RECORDS_FOR_NOISE = 8
"""Records below which the factor of a jump counts, and a quiet level. Chosen: no noise can be estimated from fewer."""
EXCERPT_FACTOR = 1.5
"""The factor of such a jump. Chosen: by hand."""
MIN_LONG_LOG_RECORDS = 12
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

    def refuse_densities(self) -> None:
        """Raise CannotTell of a negative log-density, where one outlier costs any amount, unlike a cross-entropy."""
        worst, values = self.worst, self.loss.value
        if end_level(values) < 0 and worst.first and values[worst.peak] < values[: worst.first].max():
            raise CannotTell("the loss has come below zero, as a log-density's does: how far a jump goes says little")


def find_spikes(values: Floats) -> list[Spike]:
    """Return the jumps of a loss curve, those included that did not come back."""
    if len(values) < MIN_RECORDS_FOR_NOISE:
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
    once = [spike for spike in once if spike.height > JUMPS_SIGMAS * sigma[spike.first // base.stride] * farther]
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
    most = (len(curve) / 0.018) ** (1 / 3) / 1.134 / JUMPS_SIGMAS
    return float(min(max(1.0, heaviness(curve[quiet]) / 1.02) ** TAIL_POWER, max(1.0, most)))


def _with_peak(spike: Spike, values: Floats) -> Spike:
    """Return a spike of the median of three as high as the highest record in it."""
    first = max(0, spike.first - 1)
    peak = first + int(np.argmax(values[first : spike.last + 2]))
    return replace(spike, peak=peak, height=float(values[peak]) - spike.level)


def _overlap(spike: Spike, other: Spike) -> bool:
    return spike.first <= other.last + 1 and other.first <= spike.last + 1


def _sigma(values: Floats, base: Baseline, relative: float | None) -> Floats:
    """Return the standard deviation of the noise, of the shape of the level, larger where few points tell it.

    `relative` is the noise of the logarithm, where there is one.
    """
    overall = noise(values)
    spread = base.spread
    if len(values) < 2 * MIN_LONG_LOG_RECORDS:
        spread = np.minimum(spread, 2 * overall)  # so short a window holds more trend than noise
    # A window may happen to be quiet.
    floor = np.full_like(base.level, overall) if relative is None else relative * base.level
    return np.maximum(spread, 0.8 * np.minimum(floor, 2 * overall)) * (1 + 10 / len(values))


def _threshold(values: Floats, level: Floats, sigma: Floats, relative: float | None) -> Floats:
    """Return how far above the level before it each point must lie, of the shape of the level."""
    count = len(values)
    progress = max(0.0, start_level(values) - float(values.min()))
    share = SHARE_OF_LEVEL if count >= MIN_LONG_LOG_RECORDS else 0.5
    if relative is not None:
        share = max(share, math.expm1(min(SKEWED_SIGMAS * relative * (1 + 10 / count), 50.0)))
    return np.maximum(np.maximum(JUMPS_SIGMAS * sigma, share * np.abs(level)), SHARE_OF_PROGRESS * progress)


# What else moved where the loss jumped: at that step, and before it. Observations only; they decide nothing.


WATCHED = (
    "grad_norm", "learning_rate", "loss_scale", "batch_size", "bsz", "seq_len", "seqlen", "sequence_length",
    "batch_length", "max_length", "mean_length", "completion_length", "ntokens", "wpb", "batch_tokens",
    "tokens_per_batch", "num_tokens", "step_time",
)  # fmt: skip
"""Gradient, schedule, scaler, and how large or long the batch was, by whatever name; Bekman and OPT-175B look there."""
TOTALS = ("num_tokens",)
"""Those that are counted up from the beginning: what moves is how much each record adds."""
BESIDE_SIGMAS = 5.0
"""A metric moved if it lies so many standard deviations of records before from their median ... Chosen: by hand."""
LEAST_FACTOR = 1.2
"""... and differs from it by this factor. Chosen: by hand."""
JUST_BEFORE_RECORDS = 8
"""Records just before a jump, in which something may have moved first. Chosen: by hand."""
EARLIER_LEVEL_RECORDS = 40
"""Records before those to compare with. Chosen: by hand."""
MAX_SCHEDULE_STEP_RATIO = 4.0
"""Times its usual step that a schedule moves by at most. Chosen: a cosine does so within `EARLIER_LEVEL_RECORDS`."""
AT_ITS_PACE = 1.5
"""Times its largest step that a metric which rises or falls steadily may move by. Chosen: a schedule bends a little."""
MIN_METRIC_LEVEL_RECORDS = 5
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
        return f"{self.metric} goes from about {figure(self.before)} to {figure(self.there)}{early}"

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers behind the sentence, by name."""
        since = {} if self.since is None else {f"{self.metric}_moved_since": self.since}
        return {f"{self.metric}_before": self.before, f"{self.metric}_there": self.there, **since}


def moved(run: Run, first: float, last: float) -> list[Moved]:
    """Return the metrics that moved between the steps `first` and `last`, or just before."""
    return [metric for series in _watched(run) if (metric := _moved(series, first, last)) is not None]


def level_and_extreme(series: Series, first: float, last: float) -> tuple[float, float] | None:
    """Return the median of the 20 records before `first` and the highest value up to `last`, where enough is logged."""
    before, during = series.where(series.step < first).value[-20:], series.between(first, last).value
    return (median(before), float(during.max())) if len(before) >= 3 and len(during) else None


def _watched(run: Run) -> Iterator[Series]:
    for name in WATCHED:
        if name in run:
            series = run[name].finite
            total = counted_up(series.value) if name in TOTALS else None
            if total is not None:
                series = Series(f"{name} per record", series.step[1:], np.diff(total))
            yield series


def _goes_on(past: Floats, during: Floats) -> bool:
    """Say whether a metric rises or falls steadily, as a schedule does, and goes on so."""
    steps, further = np.diff(past), np.diff(np.append(past[-1], during))
    largest = float(np.abs(steps).max())
    steady = bool((steps <= 0).all() or (steps >= 0).all()) and 0 < largest <= MAX_SCHEDULE_STEP_RATIO * median(
        np.abs(steps)
    )
    return steady and float(np.abs(further).max(initial=0.0)) <= AT_ITS_PACE * largest


def _moved(series: Series, first: float, last: float) -> Moved | None:
    past, during = series.where(series.step < first), series.between(first, last).value
    if len(past) < MIN_METRIC_LEVEL_RECORDS or _goes_on(
        past.value[-EARLIER_LEVEL_RECORDS - JUST_BEFORE_RECORDS :], during
    ):
        return None
    logged = np.concatenate([past.value, during])
    scale = np.log if positive(logged) else np.asarray
    curve, there = scale(past.value), scale(during)
    earlier, just_before = (
        curve[-EARLIER_LEVEL_RECORDS - JUST_BEFORE_RECORDS : -JUST_BEFORE_RECORDS],
        curve[-JUST_BEFORE_RECORDS:],
    )
    base = earlier if len(earlier) >= MIN_METRIC_LEVEL_RECORDS else curve
    follows = _goes_on(past.value[-JUST_BEFORE_RECORDS:], np.empty(0))  # a schedule: its last record is its level
    level = float(curve[-1]) if follows else median(base)
    least = max(
        BESIDE_SIGMAS * mad(base), np.log(LEAST_FACTOR) if scale is np.log else (LEAST_FACTOR - 1) * abs(level), 1e-12
    )
    lead = 0 if follows else true_at_end(np.abs(just_before - level) > least)
    far = during[int(np.argmax(np.abs(there - level)))] if len(during) else past.value[-1]
    if lead < 2 and (not len(there) or float(np.abs(there - level).max()) <= least):
        return None
    since = float(past.step[-lead]) if lead >= 2 and len(earlier) >= MIN_METRIC_LEVEL_RECORDS else None
    return Moved(series.name, float(np.exp(level)) if scale is np.log else level, float(far), since)


# Does the training loss jump and come back, and if so, how?


MAX_JUMPS = 5
"""More jumps than this are noise. Chosen: on curves with heavy-tailed noise."""
RECORDS_PER_JUMP = 50
"""More jumps than one in so many records are noise. Chosen: on curves with heavy-tailed noise."""
LEAST_RECORDS = 12
"""Finite records from which on the height of a jump says something. Chosen: as many as the noise of a window takes."""
SEVERAL_RECORDS = 20
"""Finite records from which on several jumps say something. Chosen: as many as the noise of a window takes."""
SHARE_OF_START = 0.2
"""Of the loss at the start: a jump of this height. Chosen: hard batches of healthy runs make lower ones."""
AT_ONCE_SHARE = 0.02
"""Share of the log within which one jump is over. Chosen: what one batch does is over as soon."""
AT_ONCE_RECORDS = 3
"""Records within which one jump is over. Chosen: what one batch does is over as soon."""
MAX_STEPS_PER_RECORD = 5.0
"""Steps per record beyond which what fades seems over at once. Chosen: recoveries of our runs take as many steps."""
MIN_FADING_RECORDS = 2
"""Records between half of the height and the end of a jump. Chosen: what comes back over more was not one batch."""
LEAST_EVEN = 3
"""Jumps whose distance can be measured. Chosen: by hand."""
MAX_SPACING_SPREAD_SHARE = 0.1
"""Share by which the distance varies. Chosen: by chance one in twenty-five."""
MAX_STATED_SPACING_SPREAD_SHARE = 0.05
"""The same where the summary of a single jump states the distance. Chosen: half, as no question asks for it there."""
MAX_LISTED_JUMPS = 6
"""Jumps that a summary lists. Chosen: a line holds as many."""


def loss_spike(jumps: Jumps) -> Evidence:
    """The training loss jumps far above its recent level and comes back.

    Not this when: many points stand out, so that the curve is noisy; it stays up (`loss_divergence`); a term of the
    loss sets in there. A jump at the very end of the log counts, and the summary says that the log ends there.
    """
    run, worst, at = jumps.run, jumps.worst, jumps.at
    last, top = float(jumps.loss.step[worst.last]), float(jumps.loss.value[worst.peak])
    highest = float(jumps.loss.step[worst.peak])
    begun = f", beginning at {figure(at)}," if highest != at else ""
    gaps, others = np.diff(jumps.steps), moved(run, at, last)
    even = len(gaps) > 1 and float(gaps.std()) <= MAX_STATED_SPACING_SPREAD_SHARE * float(gaps.mean())
    spacing = {"spacing": float(gaps.mean())} if even else {}
    more = f"; {len(jumps.found)} such jumps in all" if len(jumps.found) > 1 else ""
    more += f", {figure(spacing['spacing'])} {run.step_name}s apart" if spacing else ""
    return Evidence(
        f"loss jumps from about {figure(worst.level)} to {figure(top)} at {run.place(highest)}{begun} "
        f"{_recovery_clause(jumps)}{more}"
        f"{_companion_summary(run, at, last, others)}",
        steps=(at, *(step for step in jumps.steps.tolist() if step != at))[:MAX_LISTED_STEPS],
        values={
            "loss_before": worst.level,
            "peak": top,
            "height": worst.height,
            "factor": top / worst.level if worst.level > 0 else float("nan"),
            "width_records": worst.last - worst.first + 1,
            "width_steps": last - at,
            "count": len(jumps.found),
            "recovered": float(bool(worst.recovered)),
            **spacing,
            **{name: number for other in others for name, number in other.numbers.items()},
        },
    )


def loss_spike_high(jumps: Jumps) -> Evidence | None:
    """A jump of the training loss is as high as a fifth of the loss at the start of the run.

    Not this when: it is lower, as those of hard batches are. Unknown for a log-density.
    """
    require_values(jumps.loss, LEAST_RECORDS)
    jumps.refuse_densities()
    height, start = jumps.worst.height, start_level(jumps.loss.value)
    if not start or height < SHARE_OF_START * abs(start):
        return None
    summary = f"{jumps.where} is {figure(height)} high; {start_in_words(jumps.loss.value)}"
    return Evidence(summary, steps=(jumps.at,), values={"height": height, "start": start, "share": height / abs(start)})


def loss_spike_single(jumps: Jumps) -> Evidence | None:
    """The training loss jumps once in the whole log and is back within a few records.

    Not this when: it jumps again, or takes long to come back. Unknown for a log-density.
    """
    require_values(jumps.loss, LEAST_RECORDS)
    jumps.refuse_densities()
    spike, count = jumps.found[0], len(jumps.loss)
    width = spike.last - spike.first + 1
    if len(jumps.found) > 1 or not spike.recovered or width > max(AT_ONCE_RECORDS, AT_ONCE_SHARE * count):
        return None
    summary = f"{jumps.where} is the only one in {count} records and lasts {width} of them"
    return Evidence(summary, steps=(jumps.at,), values={"width_records": width})


def loss_spikes_recur(jumps: Jumps) -> Evidence | None:
    """The training loss jumps far above its recent level more than once.

    Not this when: the noise is heavy-tailed (`loss_noisy`).
    """
    require_values(jumps.loss, SEVERAL_RECORDS)
    if len(jumps.found) < 2:
        return None
    steps, gaps = jumps.steps, np.diff(jumps.steps)
    listed = ", ".join(_described(spike, jumps.loss) for spike in jumps.found[:MAX_LISTED_JUMPS])
    return Evidence(
        f"loss jumps {len(steps)} times, {figure(gaps.min())} to {figure(gaps.max())} "
        f"{jumps.run.step_name}s apart: {listed}{', …' if len(steps) > MAX_LISTED_JUMPS else ''}",
        steps=tuple(steps.tolist()),
        values={
            "count": len(steps),
            "closest": float(gaps.min()),
            "farthest": float(gaps.max()),
            "highest": jumps.worst.height,
        },
    )


def loss_spikes_regular(jumps: Jumps) -> Evidence | None:
    """The training loss jumps at even distances, as when the same data comes again.

    Not this when: there are fewer than three jumps.
    """
    steps, run = jumps.steps, jumps.run
    require_values(jumps.loss, SEVERAL_RECORDS)
    if len(steps) < LEAST_EVEN:
        raise CannotTell(f"the loss jumps {len(steps)} times; {LEAST_EVEN} are needed to speak of a distance")
    gaps = np.diff(steps)
    distance = float(gaps.mean())
    if float(gaps.std()) > MAX_SPACING_SPREAD_SHARE * distance:
        return None
    summary = f"the {len(steps)} jumps are {figure(distance)} {run.step_name}s apart, the first at {figure(steps[0])}"
    return Evidence(summary, steps=tuple(steps.tolist()), values={"distance": distance, "count": len(steps)})


def spike_fades(jumps: Jumps) -> Evidence | None:
    """From half of its highest jump the loss comes down bit by bit, until a tenth of the jump or less is left.

    Not this when: it falls back from one record to the next, which means over many steps do not show.
    """
    found = fading_of(jumps.loss.value, jumps.worst)
    if found is None:
        raise CannotTell("the jump does not come back before the log ends, or too few records come before it")
    high, fading, left = found
    if fading < MIN_FADING_RECORDS:
        if jumps.run.step_name != "step" or interval(jumps.loss) > MAX_STEPS_PER_RECORD:
            raise CannotTell("the records are too many steps apart to show that a jump is over at once")
        return None
    return Evidence(
        f"{jumps.where} is below half of its height {counted(high, 'record')} after its peak and comes down "
        f"to {figure(left)} over {fading} more; the level before it is {figure(jumps.worst.level)}",
        steps=(jumps.at,),
        values={"records_high": high, "records_fading": fading, "height": jumps.worst.height},
    )


LEAST_ENDS = 5
"""Other last batches of epochs that show how these scatter. Chosen: by hand."""
ENDS_SCATTER = 2.0
"""Times the scatter of other records, from which on last batches have fewer rows. Chosen: a quarter of the rows."""
END_SIGMAS = 4.0
"""Of their scatter, by which a last batch is off at most. Chosen: a handful of values tells no more."""
FORMS = (loss_spike_single, loss_spikes_recur, loss_spikes_regular, loss_spike_high, spike_fades)


@question(
    outcome_of(
        loss_spike,
        0.1,  # a large healthy run has twenty (palm_2022)
        "axolotl_stability",
        instead=("logits_grow", "loss_divergence", "loss_nonfinite"),
        as_chosen=True,
    ),
    outcome_of(loss_spike_single, 0.4, "idefics_80b_chronicles", of="loss_spike"),
    outcome_of(loss_spikes_recur, 0.3, "palm_2022", of="loss_spike"),
    outcome_of(loss_spikes_regular, 0.04, "bekman_mle", of="loss_spike", follows=("loss_periodic",)),
    outcome_of(loss_spike_high, 0.3, "palm_2022", of="loss_spike"),
    outcome_of(spike_fades, 0.15, of="loss_spike"),
    needs=("loss",),
    points=3,
    not_for=("grpo", "ppo", "rl"),
)
def loss_events(run: Run) -> Answers:
    """Say whether the training loss jumps and comes back, and if so, how."""
    loss = run["loss"].finite
    if teeth_of(loss.value) is not None:
        raise CannotTell("the loss goes like the teeth of a saw, whose jumps are no spikes (`loss_sawtooth`)")
    ends = _ends_of_epochs(run, loss)
    every = [
        spike
        for spike in find_spikes(loss.value)
        if term_set_in(run, float(loss.step[spike.first])) is None and not _scatters_so(loss.value, ends, spike)
    ]
    found = [spike for spike in every if spike.recovered is not False]
    if not found or len(found) > max(MAX_JUMPS, len(loss) // RECORDS_PER_JUMP):
        return {}
    if not any(spike.recovered for spike in found) and rise_for_good(run) is not None:
        raise CannotTell("the loss has jumped and is still up where the log ends (`loss_divergence`)")
    jumps = Jumps(run, loss, every)
    return {"loss_spike": loss_spike(Jumps(run, loss, found)), **answers_of(by_outcome(FORMS, jumps))}


def _ends_of_epochs(run: Run, loss: Series) -> list[int]:
    """Return which records are the last of their epochs, where the log counts these next to steps."""
    if run.step_name != "step" or "epoch" not in run:
        return []
    epoch = epochs_of(run, loss)
    return [] if epoch is None else [*np.flatnonzero(np.diff(epoch)).tolist(), len(epoch) - 1]


def _scatters_so(values: Floats, ends: list[int], spike: Spike) -> bool:
    """Say whether a jump is of the last batch of an epoch, and no farther off than such batches are, of fewer rows."""
    others = [at for at in ends if at != spike.peak]
    if spike.first != spike.last or spike.peak not in ends or len(others) < LEAST_ENDS:
        return False
    spread = STD_PER_MAD * median(np.abs(values[others] - spike.level))
    rest = noise(np.delete(values, ends))
    return spread >= ENDS_SCATTER * rest and spike.height <= END_SIGMAS * spread


def _recovery_clause(jumps: Jumps) -> str:
    worst = jumps.worst
    if not worst.recovered:
        return "and the log ends before it could come back"
    # A jump counts as over once most of its height is gone, which need not be all.
    after = float(jumps.loss.value[worst.last + 1 : worst.last + 2].min(initial=worst.level + worst.height))
    return f"and is down to {figure(after)} after {counted(worst.last - worst.first + 1, 'record')}"


def _companion_summary(run: Run, first: float, last: float, others: list[Moved]) -> str:
    """Say what else was logged there: the learning rate, the gradient norm, and what moved."""
    by_metric = {other.metric: str(other) for other in others}
    rate = run["learning_rate"].at(first) if "learning_rate" in run else None
    if rate is not None:
        by_metric.setdefault("learning_rate", f"the learning rate there is {figure(rate)}")
    norm = level_and_extreme(run["grad_norm"].finite, first, last) if "grad_norm" in run else None
    if norm is not None:
        by_metric.setdefault("grad_norm", f"grad_norm goes from about {figure(norm[0])} to {figure(norm[1])}")
    return "".join(f"; {part}" for part in by_metric.values())


def _described(spike: Spike, loss: Series) -> str:
    top, width = figure(loss.value[spike.peak]), counted(spike.last - spike.first + 1, "record")
    return f"at {figure(loss.step[spike.first])} from {figure(spike.level)} to {top} for {width}"
