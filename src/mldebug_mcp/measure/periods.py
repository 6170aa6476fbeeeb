"""Patterns that come again with a fixed period, by the autocorrelation of a curve without its trend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Series
from mldebug_mcp.measure.statistics import mad, median, positive, row_medians
from mldebug_mcp.measure.unknown import CannotTell

MAX_POINTS = 20_000
"""Records that are looked at, the last. Chosen: enough for any period, and a bound on the time."""
EVENLY, UNEVEN = 0.5, 0.05
"""Share by which a gap may differ from the usual one, and of gaps that may. Chosen: a period needs even records."""
PERIODS = 4
"""A pattern must have repeated this often. Chosen: noise with a memory makes two or three."""
LEAST = 0.25
"""Autocorrelation at the period. Chosen: the pattern makes at least a quarter of the variance that is left."""
SIGMAS = 5.0
"""... and so far above the trough before it, in standard errors. Source: Bartlett's formula."""
AGAIN = 0.4
"""... and this share of it comes again at twice the period. Chosen: on synthetic curves."""
FIRST = 0.8
"""Share of the highest peak that the first of several has. Chosen: multiples of a period are as high."""
FLANK = (0.75, 1.33)
"""Times the period within which the highest peak counts. Chosen: the flank of a broad one has small ones."""
CLIP = 4
"""Standard deviations beyond which a record is cut off. Chosen: a single spike has no period."""
LEAST_PATTERN, MOST_LEVEL = 0.5, 0.6
"""Share of a step down that is left of a pattern within its periods, and share of periods that are level. Chosen: on
synthetic staircases."""
PARTS = 8
"""Stretches of a period whose means are compared. Chosen: enough to show a slope."""


@dataclass(frozen=True, slots=True)
class Period:
    """A pattern that repeats.

    Args:
        lag: Its length in records.
        correlation: The autocorrelation there.
        times: How often it fits into the records.
        swing: How far it goes up and down.
    """

    lag: int
    correlation: float
    times: int
    swing: float


def last_records(series: Series, what: str) -> tuple[Series, float]:
    """Return the last records and their usual distance; raise CannotTell, naming what is not told, if it varies."""
    last = series.where(np.arange(len(series)) >= len(series) - MAX_POINTS)
    gaps = np.diff(last.step)
    spacing = median(gaps)
    if spacing <= 0 or float(np.mean(np.abs(gaps - spacing) > EVENLY * spacing)) > UNEVEN:
        raise CannotTell(f"the records are not evenly spaced: {what} cannot be told")
    return last, spacing


def period_of(values: Floats) -> Period | None:
    """Return the pattern that evenly spaced values repeat, None if there is none or they only step down."""
    rest = _without_trend(np.log(values) if positive(values) else values)
    spread = mad(rest)
    if spread == 0:
        return None
    rest = np.clip(rest, -CLIP * spread, CLIP * spread)
    correlation = _autocorrelation(rest)
    lag = _period(correlation, len(rest))
    if lag is None or _is_staircase(values, rest, lag):
        return None
    folded = np.array([median(values[phase::lag]) for phase in range(lag)])
    return Period(lag, float(correlation[lag]), len(rest) // lag, float(folded.max() - folded.min()))


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
        keep = np.abs(rest) <= CLIP * mad(rest)
        if keep.sum() < len(values) // 2:
            break
    return rest


def _autocorrelation(values: Floats) -> Floats:
    """Return the autocorrelation at lags 0 to n / PERIODS."""
    centred = values - values.mean()
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    full = np.fft.irfft(power, size)[: len(values) // PERIODS + 2]
    return np.asarray(full / full[0] * len(values) / (len(values) - np.arange(len(full))))


def _period(correlation: Floats, count: int) -> int | None:
    """Return the lag of the first significant peak that comes again at twice the lag, or None."""
    error = np.sqrt((1 + 2 * np.cumsum(correlation**2)) / count)
    trough = np.minimum.accumulate(correlation)
    inner = correlation[1:-1]
    peaks = 1 + np.flatnonzero((inner >= correlation[:-2]) & (inner > correlation[2:]))
    peaks = peaks[peaks >= 3]
    clear = (correlation[peaks] > LEAST) & (correlation[peaks] - trough[peaks] > SIGMAS * error[peaks // 2])
    candidates = peaks[clear]  # up to half a lag the memory of the noise counts, not the pattern
    if not len(candidates):
        return None
    lag = int(candidates[np.argmax(correlation[candidates] > FIRST * correlation[candidates].max())])
    near = candidates[(candidates > FLANK[0] * lag) & (candidates < FLANK[1] * lag)]
    lag = int(near[np.argmax(correlation[near])])
    again = correlation[max(0, 2 * lag - 2) : 2 * lag + 3]
    if 2 * lag < len(correlation) and float(again.max()) < AGAIN * correlation[lag]:
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
    parts = [float(part.mean()) for part in np.array_split(inside, min(PARTS, lag))]
    step = median(levels[:-1] - levels[1:])
    side = max(1, lag // 4)
    begins, ends = whole[:, :side].mean(axis=1), whole[:, -side:].mean(axis=1)
    level = np.abs(ends - begins)[:-1] < LEAST_PATTERN * (ends[:-1] - begins[1:])
    return step > 0 and max(parts) - min(parts) < LEAST_PATTERN * step and float(level.mean()) >= MOST_LEVEL
