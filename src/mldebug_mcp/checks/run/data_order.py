"""Does the training loss show the order of the data?"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.checks.check import CannotTell, Evidence, ask_in_turn, known, outcome_of, symptom
from mldebug_mcp.checks.curve import (
    curves_in_turn,
    finite_of,
    last_decimal,
    mad,
    noise,
    positive,
    row_medians,
    stretch_medians,
    teeth_of,
)
from mldebug_mcp.checks.learning_rate import rate_comes_back
from mldebug_mcp.core.arrays import are_whole, grouped, median
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Run, Series

# Patterns that come again with a fixed period, by the autocorrelation of a curve without its trend.


MAX_POINTS = 20_000
"""Records that are looked at, the last. Chosen: enough for any period, and a bound on the time."""
MAX_GAP_DEVIATION_SHARE = 0.5
"""Share by which a gap may differ from the usual one. Chosen: a period needs even records."""
MAX_UNEVEN_GAP_SHARE = 0.05
"""Share of gaps that may differ by more. Chosen: a period needs even records."""
MIN_REPEATED_PERIODS = 4
"""A pattern must have repeated this often. Chosen: noise with a memory makes two or three."""
MIN_AUTOCORRELATION = 0.25
"""Autocorrelation at the period. Chosen: the pattern makes at least a quarter of the variance that is left."""
PERIODS_SIGMAS = 5.0
"""... and so far above the trough before it, in standard errors. Source: Bartlett's formula."""
MIN_REPEATED_PEAK_SHARE = 0.4
"""... and this share of it comes again at twice the period. Chosen: on synthetic curves."""
MIN_FIRST_PEAK_SHARE = 0.8
"""Share of the highest peak that the first of several has. Chosen: multiples of a period are as high."""
FLANK = (0.75, 1.33)
"""Times the period within which the highest peak counts. Chosen: the flank of a broad one has small ones."""
MAX_RESIDUAL_SIGMAS = 4
"""Standard deviations beyond which a record is cut off. Chosen: a single spike has no period."""
LEAST_PATTERN = 0.5
"""Share of a step down that is left of a pattern within its periods. Chosen: on synthetic staircases."""
MOST_LEVEL = 0.6
"""Share of periods that are level. Chosen: on synthetic staircases."""
PERIODS_PARTS = 8
"""Stretches of a period whose means are compared. Chosen: enough to show a slope."""


def last_records(series: Series, what: str) -> tuple[Series, float]:
    """Return the last records and their usual distance; raise CannotTell, naming what is unknown, if it varies.

    So it is of records that lie on two curves in turn.
    """
    last = series.since_record(len(series) - MAX_POINTS)
    gaps = np.diff(last.step)
    spacing = median(gaps)
    if (
        spacing <= 0
        or float(np.mean(np.abs(gaps - spacing) > MAX_GAP_DEVIATION_SHARE * spacing)) > MAX_UNEVEN_GAP_SHARE
    ):
        raise CannotTell(f"the records are not evenly spaced: {what} is unknown")
    if curves_in_turn(last.value) is not None:
        raise CannotTell(f"the records lie on two curves in turn: {what} of either is unknown")
    return last, spacing


def _pattern(values: Floats) -> tuple[int, float, float] | None:
    """Return the pattern that evenly spaced values repeat, None if there is none or they only step down.

    It is the length in records, the autocorrelation there, and how far the pattern goes up and down.
    """
    rest = _without_trend(np.log(values) if positive(values) else values)
    spread = mad(rest)
    if spread == 0:
        return None
    rest = np.clip(rest, -MAX_RESIDUAL_SIGMAS * spread, MAX_RESIDUAL_SIGMAS * spread)
    full = _products(rest - rest.mean())[: len(rest) // MIN_REPEATED_PERIODS + 2]
    correlation = np.asarray(full / full[0] * len(rest) / (len(rest) - np.arange(len(full))))
    lag = _period(correlation, len(rest))
    if lag is None or _is_staircase(values, rest, lag):
        return None
    folded = np.array([median(values[phase::lag]) for phase in range(lag)])
    return lag, float(correlation[lag]), float(np.ptp(folded))


def _without_trend(values: Floats) -> Floats:
    """Return the curve less its trend, without the first twentieth, shape (m,).

    The trend is a cubic in time and a square in its logarithm: it bends as learning curves do and too little to follow
    a pattern that repeats four times. It is fitted again without the outliers of the first fit.
    """
    time = (np.arange(len(values)) + 1) / len(values)
    basis = np.stack([np.ones_like(time), time, time**2, time**3, np.log(time), np.log(time) ** 2], axis=1)
    basis, values = basis[len(values) // 20 :], values[len(values) // 20 :]
    keep = np.ones(len(values), dtype=np.bool_)
    rest = values
    for _ in range(2):
        rest = np.asarray(values - basis @ np.linalg.lstsq(basis[keep], values[keep], rcond=None)[0])
        keep = np.abs(rest) <= MAX_RESIDUAL_SIGMAS * mad(rest)
        if keep.sum() < len(values) // 2:
            break
    return rest


MAX_DIRECT_PRODUCTS = 1000
"""Values up to which products are summed one lag at a time. Chosen: loading Fourier transforms takes longer then."""


def _products(values: Floats) -> Floats:
    """Return the sum of the products of values with those that follow at each lag from 0 to n - 1, shape (n,)."""
    if len(values) <= MAX_DIRECT_PRODUCTS:
        return np.correlate(values, values, "full")[len(values) - 1 :]
    size = 1 << (2 * len(values) - 1).bit_length()
    return np.asarray(np.fft.irfft(np.abs(np.fft.rfft(values, size)) ** 2, size)[: len(values)])


def _period(correlation: Floats, count: int) -> int | None:
    """Return the lag of the first significant peak that comes again at twice the lag, or None."""
    error = np.sqrt((1 + 2 * np.cumsum(correlation**2)) / count)
    trough = np.minimum.accumulate(correlation)
    inner = correlation[1:-1]
    peaks = 1 + np.flatnonzero((inner >= correlation[:-2]) & (inner > correlation[2:]))
    peaks = peaks[peaks >= 3]
    clear = (correlation[peaks] > MIN_AUTOCORRELATION) & (
        correlation[peaks] - trough[peaks] > PERIODS_SIGMAS * error[peaks // 2]
    )
    candidates = peaks[clear]  # up to half a lag the memory of the noise counts, not the pattern
    if not len(candidates):
        return None
    lag = int(candidates[np.argmax(correlation[candidates] > MIN_FIRST_PEAK_SHARE * correlation[candidates].max())])
    near = candidates[(candidates > FLANK[0] * lag) & (candidates < FLANK[1] * lag)]
    lag = int(near[np.argmax(correlation[near])])
    again = correlation[max(0, 2 * lag - 2) : 2 * lag + 3]
    if 2 * lag < len(correlation) and float(again.max()) < MIN_REPEATED_PEAK_SHARE * correlation[lag]:
        return None
    return lag


def _is_staircase(values: Floats, rest: Floats, lag: int) -> bool:
    """Say whether the curve has a level for each period and steps down between them, instead of a pattern within.

    A staircase without its trend (`rest`, the end of the curve) repeats like a saw. Cut at its steps, each period is
    level: less their levels, nothing repeats.
    """
    folded = np.array([median(rest[phase::lag]) for phase in range(lag)])
    side = max(1, lag // 8)
    around = np.concatenate([folded[-side:], folded, folded[:side]])
    drops = [around[at : at + side].mean() - around[at + side : at + 2 * side].mean() for at in range(lag)]
    cut = (int(np.argmax(drops)) + len(values) - len(rest)) % lag
    whole = values[cut : cut + (len(values) - cut) // lag * lag].reshape(-1, lag)
    levels = row_medians(whole)
    inside = row_medians((whole - levels[:, np.newaxis]).T)
    parts = [float(part.mean()) for part in np.array_split(inside, min(PERIODS_PARTS, lag))]
    step = median(levels[:-1] - levels[1:])
    side = max(1, lag // 4)
    begins, ends = whole[:, :side].mean(axis=1), whole[:, -side:].mean(axis=1)
    level = np.abs(ends - begins)[:-1] < LEAST_PATTERN * (ends[:-1] - begins[1:])
    return step > 0 and max(parts) - min(parts) < LEAST_PATTERN * step and float(level.mean()) >= MOST_LEVEL


# What the loss does within each pass over the data: a profile by the place in the pass, and whether it comes again.


UNKNOWN_EPOCHS = "neither the epoch nor the steps per epoch are known"
"""Why `epochs_of` returns nothing."""
MIN_WHOLE_PASS_SHARE = 0.9
"""Of the records of the first pass: what the last one must have to be compared. Chosen: by hand."""
PASS_PROFILE_PARTS = 8
"""Stretches of an epoch that compare with the next. Chosen: eight levels tell an order."""
PER_PART = 2
"""Records of each stretch. Chosen: by hand."""
FEW_PARTS = 5
"""Records of a short epoch. Chosen: more epochs make up for fewer stretches."""
MANY_EPOCHS = 6
"""How many such epochs there are. Chosen: more epochs make up for fewer stretches."""


Epochs = NDArray[np.int64] | None
_KNOWN_EPOCHS: WeakKeyDictionary[Run, tuple[Series, Epochs]] = WeakKeyDictionary()
"""The epochs of the losses that were asked about last: several questions of a run ask."""


def epochs_of(run: Run, loss: Series) -> Epochs:
    """Return the epoch that each record belongs to, counted from 0, or None where neither it nor its length is known.

    A record that ends an epoch belongs to it. Where the log does not count epochs, the settings give their steps.
    """
    before = _KNOWN_EPOCHS.get(run)
    if before is not None and before[0] is loss:
        return before[1]
    epochs = _epochs_at(run, loss)
    _KNOWN_EPOCHS[run] = loss, epochs
    return epochs


def _epochs_at(run: Run, loss: Series) -> Epochs:
    if len(series := finite_of(run, "epoch")) > 1:
        if are_whole(series.value):
            return np.asarray(series.held(loss.step), dtype=np.int64)
        value = np.round(series.interpolated(loss.step), 6)
        np.maximum(np.ceil(value, out=value), 1, out=value)
        return np.asarray(value, dtype=np.int64) - 1
    per_pass = run.facts.steps_per_pass if run.step_name == "step" else run.setting("steps_per_epoch")
    if per_pass is None or per_pass < 1:
        return None
    return np.asarray(np.maximum(np.ceil(loss.step / per_pass) - 1, 0), dtype=np.int64)


def whole_passes(values: Floats, epoch: NDArray[np.int64]) -> list[Floats]:
    """Return the values of each pass; the last one only where it is whole."""
    found = grouped(values, epoch)
    if found and len(found[-1]) < MIN_WHOLE_PASS_SHARE * len(found[0]):
        found.pop()
    return found


def parts_of(values: Floats, epoch: NDArray[np.int64]) -> int:
    """Return into how many parts epochs are cut; CannotTell if they have too few records, for as many as there are."""
    whole = whole_passes(values, epoch)
    fewest = min(map(len, whole), default=0)
    if fewest >= PASS_PROFILE_PARTS * PER_PART:
        return PASS_PROFILE_PARTS
    if fewest < FEW_PARTS or len(whole) < MANY_EPOCHS:
        raise CannotTell(f"an epoch has fewer than {PASS_PROFILE_PARTS * PER_PART} records, and there are {len(whole)}")
    return min(PASS_PROFILE_PARTS, fewest)


def _levels(passes: list[Floats], parts: int) -> Floats:
    """Return the median of each part of each pass, shape (passes, parts)."""
    lengths, part = np.array(list(map(len, passes)))[:, np.newaxis], np.arange(parts)
    begins = np.cumsum(lengths)[:, np.newaxis] - lengths
    edges = begins + part * (lengths // parts) + np.minimum(part, lengths % parts)  # as numpy.array_split cuts
    return stretch_medians(np.concatenate(passes), np.append(edges, lengths.sum())).reshape(edges.shape)


def _shapes(levels: Floats) -> Floats:
    """Return the levels of each pass relative to the line along which it falls, if it does, shape (passes, parts)."""
    place = np.arange(levels.shape[1]) - (levels.shape[1] - 1) / 2
    level = levels - levels.mean(axis=1, keepdims=True)
    slope = level @ place / (place @ place)
    return np.asarray(level - np.minimum(slope, 0.0)[:, np.newaxis] * place)


def _pass_correlations(shapes: Floats) -> Floats:
    """Return the correlation of each pass but the first with the mean of the others, shape (passes - 1,)."""
    later = shapes[1:]  # learning bends the first pass
    others = shapes[:1] if len(later) == 1 else later.sum(axis=0) - later
    later, others = (rows - rows.mean(axis=1, keepdims=True) for rows in (later, others))
    sizes = (later**2).sum(axis=1) * (others**2).sum(axis=1)
    return np.asarray((later * others).sum(axis=1) / np.sqrt(sizes))


def _begins_anew(levels: Floats, shapes: Floats) -> bool:
    """Say whether the step from each pass to the next is the one from the end of its shape to the beginning."""
    stepped = (levels[1:, 0] - levels[:-1, -1]) - (shapes[1:, 0] - shapes[:-1, -1])
    swings = np.ptp(shapes, axis=1)
    return bool(np.all(np.abs(stepped) < STARTS_OVER * np.maximum(swings[:-1], swings[1:])))


# By how much the training loss falls where one pass over the data ends and the next begins.


LEAST_PER_EPOCH = 8
"""Records of an epoch. Chosen: a median of fewer is noise."""
MIN_RECORDS_PER_SIDE = 3
"""Records on either side of its boundary. Chosen: a median of fewer is noise."""
MAX_CUT_RATE_RATIO = 0.67
"""Times the rate before. Chosen: step schedules cut it by a half or more."""


def _boundaries(run: Run) -> tuple[NDArray[np.int64], int]:
    """Return the records that begin an epoch, with enough on both sides, and how many of these are compared."""
    loss = run["loss"].finite
    epoch = known(epochs_of(run, loss), UNKNOWN_EPOCHS)
    bounds = np.flatnonzero(np.diff(epoch) > 0) + 1
    if not len(bounds):
        raise CannotTell("the log does not reach a second epoch")
    length = int(median(np.diff(np.concatenate([[0], bounds])))) if len(bounds) > 1 else int(bounds[0])
    bounds = bounds[
        (bounds >= LEAST_PER_EPOCH) & (bounds <= len(loss) - max(MIN_RECORDS_PER_SIDE, LEAST_PER_EPOCH // 2))
    ]
    if length < LEAST_PER_EPOCH or not len(bounds):
        raise CannotTell(f"about {counted(length, 'record')} per epoch; {LEAST_PER_EPOCH} are needed")
    return bounds, max(MIN_RECORDS_PER_SIDE, length // 4)


def _rate_is_cut(run: Run, steps: Floats) -> bool:
    """Say whether the learning rate falls by a third or more at most of the boundaries."""
    rate = finite_of(run, "learning_rate")
    if run.step_name != "step" or len(rate) < 4:
        return False
    at = np.clip(np.searchsorted(rate.step, steps), 1, len(rate) - 1)
    return bool(np.mean(rate.value[at] < MAX_CUT_RATE_RATIO * rate.value[at - 1]) * 2 > 1)


# Does the training loss tell the order of the data: a period, a pattern of each pass, steps between passes?


MAX_PERIOD_DIFFERENCE_SHARE = 0.1
"""Share of a period by which cycles of the learning rate may differ. Chosen: schedules are logged now and then."""
MAX_ROUNDED_SWING_UNITS = 2.0
"""Units of the last digit up to which a pattern is that of rounding. Chosen: a smooth curve falls like stairs."""
DATA_ORDER_ALIKE = 0.85
"""Correlation of the levels of one epoch with the next. Chosen: eight in random order have it once in a hundred."""
STARTS_OVER = 0.5
"""Of that swing: how far the step to the next may be from the one that starts it over. Chosen: climbs have none."""
MIN_PATTERN_SWING_SHARE = 0.15
"""Of the level of the loss: how far the pattern goes up and down. Chosen: what batches differ in is less."""
MIN_SMALL_SWING_SHARE = 0.05
"""The same where many passes agree. Fitted: of 100 healthy runs of benchmarks/corpus none shows it."""
MIN_AGREEING_PASSES = 3
"""Passes after the first that agree in a small pattern. Chosen: two may agree by chance."""
MOST_CLEAR = 0.6
"""Share of the boundaries of epochs that are clear. Chosen: on synthetic curves."""
MIN_SHARE_OF_FALL = 0.5
"""Share of the fall since the first epoch that comes at boundaries. Chosen: on synthetic curves."""
LEAST_DROP = 0.04
"""Share of the level by which the loss drops at a boundary. Chosen: on synthetic curves."""
DATA_ORDER_SIGMAS = 4.0
"""Standard errors of a drop. Chosen: on synthetic curves."""
MIN_EPOCH_DROP_SHARE = 0.125
"""Share of the level below which a step is a remark. Chosen: healthy fine-tunes lose 5 to 10 %."""
MUCH_OF_PAIRS = 0.4
"""The same of preference training. Chosen: DPO loses more."""


def loss_pattern_by_epoch(run: Run) -> Evidence | None:
    """The training loss goes through the same ups and downs in each epoch, apart from how far it has come.

    Not this when: the pattern is small for the loss; rows of like length are put together on purpose (a remark).
    """
    loss = run["loss"].finite
    epoch = known(epochs_of(run, loss), UNKNOWN_EPOCHS)
    parts = parts_of(loss.value, epoch)
    passes = whole_passes(loss.value, epoch)
    if len(passes) < 2:
        raise CannotTell("the log does not hold two whole epochs")
    levels = _levels(passes, parts)
    shapes = _shapes(levels)
    swing, least = float(np.ptp(shapes[1:], axis=1).min()), float(_pass_correlations(shapes).min())
    share = MIN_SMALL_SWING_SHARE if len(levels) > MIN_AGREEING_PASSES else MIN_PATTERN_SWING_SHARE
    if swing < share * median(np.abs(loss.value)) or not least > DATA_ORDER_ALIKE or not _begins_anew(levels, shapes):
        return None
    second = float(loss.step[int(np.argmax(epoch > epoch[0]))])
    _refuse_that_of_the_rate(run, second - float(loss.step[0]))
    by_length = run.settings.flag("group_by_length") is True
    meant = "; rows of like length are put together, as configured" if by_length else ""
    return Evidence(
        f"in each of {len(levels)} epochs the loss goes the same way, up and down by {figure(swing)} or more "
        f"around its trend (correlation from epoch to epoch {least:.2f}); the second begins at "
        f"{run.place(second)}{meant}",
        steps=(second,),
        values={"swing": swing, "correlation": least, "epochs": len(levels)},
        present=not by_length,
    )


def loss_periodic(run: Run) -> Evidence | None:
    """The training loss goes up and down with a fixed period, four times or more.

    Not this when: it only steps down once a period; the learning rate has that period; records are uneven.
    """
    loss, spacing = last_records(run["loss"].finite, "a period")
    values = loss.value
    found = _pattern(values)
    if found is None:
        return None
    lag, correlation, swing = found
    length = lag * spacing
    _refuse_that_of_the_rate(run, length)
    if swing <= MAX_ROUNDED_SWING_UNITS * last_decimal(values):
        return None
    return Evidence(
        f"loss repeats every {figure(length)} {run.step_name}s ({lag} records; autocorrelation "
        f"{correlation:.2f} over {(len(values) - len(values) // 20) // lag} periods)",
        steps=(float(loss.step[0]),),
        values={"period": length, "autocorrelation": correlation, "swing": swing},
    )


def loss_epoch_steps(run: Run) -> Evidence | None:
    """The training loss falls in a step at each epoch boundary and is flat in between; small steps are a remark.

    Not this when: it falls evenly; the learning rate is cut there; the records are means over whole epochs.
    """
    loss = run["loss"].finite
    bounds, side = _boundaries(run)
    before = np.array([median(loss.value[max(0, at - side) : at]) for at in bounds])
    drop = before - np.array([median(loss.value[at : at + side]) for at in bounds])
    level, error = median(before), noise(loss.value[side:]) * float(np.sqrt(np.pi / side))
    clear = drop > max(DATA_ORDER_SIGMAS * error, LEAST_DROP / 2 * level)
    typical, total = median(drop), float(drop.sum())
    fall = median(loss.value[2 * side : 3 * side]) - median(loss.value[-side:])
    if clear.mean() < MOST_CLEAR or typical < LEAST_DROP * level or total < MIN_SHARE_OF_FALL * fall:
        return None
    steps = loss.step[bounds]
    if _rate_is_cut(run, steps):
        return None
    first = int(np.argmax(clear))
    return Evidence(
        f"loss falls by {figure(typical)} (median) at {int(clear.sum())} of {len(clear)} epoch boundaries, first at "
        f"{run.place(steps[first])} from about {figure(before[first])}; that is "
        f"{min(1.0, total / fall if fall > 0 else 1.0):.0%} of the fall since the first epoch",
        steps=tuple(steps[clear].tolist()),
        values={"drop": typical, "boundaries": len(clear), "clear": int(clear.sum())},
        present=typical >= (MUCH_OF_PAIRS if run.kind == "preference" else MIN_EPOCH_DROP_SHARE) * level,
    )


def loss_sawtooth(run: Run) -> Evidence | None:
    """The training loss jumps up and comes down bit by bit until it jumps again, three times or more.

    Not this when: it comes down as suddenly (`loss_spike`); all records go up and down alike; the learning rate has
    that period.
    """
    loss = run["loss"].finite
    teeth = teeth_of(loss.value)
    if teeth is None:
        return None
    steps = loss.step[teeth.first + 1]
    _refuse_that_of_the_rate(run, median(np.diff(steps)))
    return Evidence(
        f"loss jumps up by {figure(teeth.height)} (median) {len(steps)} times, first at {run.place(steps[0])}, some "
        f"{figure(teeth.length)} records apart, and comes down by nine tenths of that within some "
        f"{figure(teeth.fall)} records each time",
        steps=tuple(steps.tolist()),
        values={"teeth": len(steps), "height": teeth.height, "records": teeth.length, "fall": teeth.fall},
    )


def _refuse_that_of_the_rate(run: Run, period: float) -> None:
    turns = np.diff(rate_comes_back(run))
    cycles = period / median(turns) if len(turns) else 0.0
    if round(cycles) and abs(cycles - round(cycles)) <= MAX_PERIOD_DIFFERENCE_SHARE * cycles:
        raise CannotTell("the learning rate comes back with the same period, which the loss follows")


ask_in_turn(
    "data_order",
    outcome_of(loss_sawtooth, 0.003, needs=("loss",), points=20),
    outcome_of(loss_pattern_by_epoch, 0.004, "smol_playbook", needs=("loss",), points=FEW_PARTS * MANY_EPOCHS),
    outcome_of(loss_periodic, 0.01, needs=("loss",), points=30, follows=("batches_recur", "few_batches_stand_out")),
    outcome_of(loss_epoch_steps, 0.08, "smol_playbook", needs=("loss",), points=24),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl"),
)


# Whether what single batches differ in comes again record by record: the same rows in the same order, pass after pass.
#
# A batch is harder or easier than its neighbours by chance of its rows. Where rows are drawn anew, these differences
# say nothing of those of later records; where a pass is like the one before, they come again at the distance of a pass.
# They are ranked, so that a few spikes do not decide, and compared with themselves at every distance.


NEIGHBOURS_PER_SIDE = 2
"""Neighbours on each side, whose median each record is compared with. Chosen: a spike leaves it as it is."""
MIN_RECORDS_FOR_PASS = 60
"""Records in which a pass is looked for. Chosen: by hand."""
MIN_LAG_RECORDS = 8
"""The least distance that is looked at. Chosen: noise with a short memory is not a pass."""
MIN_PAIRS_AT_LAG = 30
"""Records that have one at that distance. Chosen: a correlation of as many has an error below 0.2."""
MEASURE_SAME_ORDER_SIGMAS = 6.5
"""Standard errors of a rank correlation, 1 / sqrt(pairs). Chosen: of 10,000 distances one in a million is there."""
SAME_ORDER_SIGMAS_OF_PASS = 4.0
"""The same at the length of a pass with a pattern. Fitted: no run of another order in benchmarks/corpus has 3.5."""
MEASURE_SAME_ORDER_ALIKE = 0.5
"""Rank correlation. Chosen: a spike at each tenth record makes 0.4, batches that recur 0.6 and more."""
MAX_NEXT_RECORD_CORRELATION = 0.3
"""Rank correlation of a record with the next. Chosen: of single batches it is none, of a smooth curve nearly 1."""


def comes_again(values: Floats, of_pass: int | None = None) -> tuple[int, float, int] | None:
    """Return the distance in records at which the differences from neighbours come again most clearly, None if never.

    With it stand their rank correlation at that distance, and how many records are compared.

    Args:
        values: Evenly spaced values, in time order, shape (n,).
        of_pass: The records of a pass with a pattern, if there is one: a distance that needs less to be clear.
    """
    if len(values) < MIN_RECORDS_FOR_PASS:
        return None
    around = np.lib.stride_tricks.sliding_window_view(values, 2 * NEIGHBOURS_PER_SIDE + 1)
    departures = values[NEIGHBOURS_PER_SIDE:-NEIGHBOURS_PER_SIDE] - row_medians(around)
    if not float(np.ptp(departures)):
        return None
    centred = _ranks(departures)
    pairs = len(centred) - np.arange(len(centred))
    alike = _products(centred) / pairs / float(np.mean(centred**2))
    clear = alike * np.sqrt(pairs)
    clear[:MIN_LAG_RECORDS] = clear[max(MIN_LAG_RECORDS, len(clear) - MIN_PAIRS_AT_LAG + 1) :] = 0.0
    lags = [(int(np.argmax(clear)), MEASURE_SAME_ORDER_SIGMAS)]
    if of_pass is not None and of_pass < len(clear):
        lags.append((of_pass, SAME_ORDER_SIGMAS_OF_PASS))
    if alike[1] > MAX_NEXT_RECORD_CORRELATION:
        return None
    for lag, least in lags:
        if clear[lag] >= least and alike[lag] >= MEASURE_SAME_ORDER_ALIKE:
            return lag, min(1.0, float(alike[lag])), int(pairs[lag])
    return None


def stands_out(values: Floats, lag: int) -> float | None:
    """Return how far the hardest place of a stretch that comes again is from the others, in their spread.

    None where it comes fewer than twice, or all places are alike.

    Args:
        values: The values of `comes_again`, shape (n,).
        lag: The distance at which they come again.
    """
    passes = len(values) // lag
    if passes < 2:
        return None
    each = values[len(values) - passes * lag :].reshape(passes, lag)
    profile = row_medians((each - row_medians(each)[:, None]).T)
    spread = mad(profile)
    return float(profile.max() - median(profile)) / spread if spread > 0 else None


def _ranks(values: Floats) -> Floats:
    """Return ranks as shares about zero; values that are alike, as rounded ones are, share their mean rank."""
    ordered = np.sort(values)
    place = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(place / 2 / len(values) - 0.5)


# Do the same batches come again in the same order?


MIN_HARD_PLACE_SPREADS = 4.0
"""Spreads of the places of a pass by which a hard one stands out. Fitted: whole orders that come again have up to 3.2
(benchmarks/faults and loops), pockets of bad rows 4.7 to 14."""


def _records_of_pattern(run: Run, loss: Series) -> int | None:
    """Return the records of a pass whose stretches go up and down as in each other; None where that is not known."""
    try:
        epoch = epochs_of(run, loss) if loss_pattern_by_epoch(run) else None
    except CannotTell:
        return None
    lengths = [] if epoch is None else list(map(len, whole_passes(loss.value, epoch)))
    return lengths[0] if lengths[1:] and np.ptp(lengths[:-1]) == 0 else None


def batches_recur(run: Run) -> Evidence | None:
    """What single records of the loss differ in from their neighbours comes again, record by record, at one distance.

    So the batches are the same ones: of each pass, or of before a resume. Not this when: rows are drawn anew for each
    pass; records are uneven, or means over many batches.
    """
    if run.step_name == "epoch":
        raise CannotTell("the records are means over whole epochs")
    loss, spacing = last_records(run["loss"].finite, "a distance")
    values = loss.value
    values = np.log(values) if positive(values) else values
    found = comes_again(values, _records_of_pattern(run, loss))
    if found is None:
        return None
    lag, correlation, pairs = found
    hardest = stands_out(values, lag)
    per_pass = run.facts.steps_per_pass
    pass_clause = f"; a pass over the data has {figure(per_pass)}" if per_pass and run.step_name == "step" else ""
    return Evidence(
        f"the ups and downs of single records of the loss come again after {figure(lag * spacing)} "
        f"{run.step_name}s (rank correlation {correlation:.2f} over {pairs} pairs of records){pass_clause}",
        steps=(float(loss.step[lag]),),
        values={"distance": lag * spacing, "correlation": correlation, "pairs": pairs}
        | ({} if hardest is None else {"hardest": hardest}),
    )


def few_batches_stand_out(recur: Evidence, _: Run) -> Evidence | None:
    """Of the batches that come again in the same order, one or a few are far harder than all others.

    Not this when: the loss goes up and down over the whole pass; it comes again once.
    """
    return recur if recur.values.get("hardest", 0.0) >= MIN_HARD_PLACE_SPREADS else None


ask_in_turn(
    "same_order",
    outcome_of(batches_recur, 0.01, "smol_playbook"),
    outcome_of(few_batches_stand_out, 0.1, of="batches_recur"),
    needs=("loss",),
    points=MIN_RECORDS_FOR_PASS,
    not_for=("grpo", "ppo", "rl"),
)


@symptom(
    sources=("alpaca_lora",), not_for=("grpo", "ppo", "rl", "boosting"), whole=True, background=0.05, as_chosen=True
)
def rows_grouped_by_length(run: Run) -> Evidence | None:
    """The configuration puts rows of like length into one batch, so that the loss goes with the length.

    Not this when: the setting is off; where it is not given it is unknown.
    """
    grouped = run.settings.flag("group_by_length")
    if grouped is None:
        raise CannotTell("the configuration does not say whether rows are grouped by length")
    return Evidence("the configuration sets group_by_length to true", values={"grouped": 1}) if grouped else None
