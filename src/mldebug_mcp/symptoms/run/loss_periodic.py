"""The loss repeats a pattern with a fixed period."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.cycles import rate_comes_back
from mldebug_mcp.measure.statistics import last_decimal, mad, median, positive, row_medians
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

PERIODS = 4
"""A pattern must have repeated this often."""
LEAST = 0.25
"""Autocorrelation at the period: the pattern makes at least a quarter of the variance that is left."""
SIGMAS = 5.0
"""... and so far above the trough before it, in standard errors (Bartlett's, with the noise's own memory)."""
MAX_POINTS = 20_000
LEAST_PATTERN = 0.5
"""Share of a step down that is left of the pattern less the level of each period: of a staircase hardly any ..."""
MOST_LEVEL = 0.6
"""... and this share of its periods is level from end to end. Both chosen on synthetic curves."""

SAME = 0.1
"""Share of a period by which that of the learning rate may differ. Chosen by hand."""
ROUNDED = 2.0
"""Units of the last digit up to which a pattern is that of rounding: a smooth curve goes down it like stairs."""


@symptom(needs=("loss",), points=30, not_for=("grpo", "ppo", "rl"), background=0.01)
def loss_periodic(run: Run) -> Evidence | None:
    """The training loss goes up and down with a fixed period.

    Not this when: the noise has a memory but no period (a running mean); the pattern repeated fewer than 4 times; the
    records are not evenly spaced; the loss only steps down once a period and is level in between (`loss_epoch_steps`);
    the pattern is no higher than the last digit. Unknown where the learning rate has the same period.
    Judged on the autocorrelation of the loss without its trend; the thresholds were chosen on synthetic curves.
    """
    loss = run["loss"].finite
    values = loss.value[-MAX_POINTS:]
    gaps = np.diff(loss.step[-MAX_POINTS:])
    spacing = median(gaps)
    if spacing <= 0 or float(np.mean(np.abs(gaps - spacing) > 0.5 * spacing)) > 0.05:
        raise CannotTell("the records are not evenly spaced: a period cannot be told")
    rest = _without_trend(np.log(values) if positive(values) else values)
    spread = mad(rest)
    if spread == 0:
        return None
    rest = np.clip(rest, -4 * spread, 4 * spread)  # a single spike has no period
    correlation = _autocorrelation(rest)
    lag = _period(correlation, len(rest))
    if lag is None or _is_staircase(values, rest, lag):
        return None
    if _is_that_of_the_rate(run, lag * spacing):
        raise CannotTell("the learning rate comes back with the same period, which the loss follows")
    folded = np.array([median(values[phase::lag]) for phase in range(lag)])
    swing = float(folded.max() - folded.min())
    if swing <= ROUNDED * last_decimal(values):
        return None
    return Evidence(
        f"loss repeats every {figure(lag * spacing)} {run.step_name}s ({lag} records; autocorrelation "
        f"{correlation[lag]:.2f} over {len(rest) // lag} periods)",
        steps=(float(loss.step[-len(values)]),),
        values={"period": lag * spacing, "autocorrelation": float(correlation[lag]), "swing": swing},
    )


def _is_that_of_the_rate(run: Run, period: float) -> bool:
    """Say whether the learning rate restarts or goes round with the period of the loss."""
    between = np.diff(rate_comes_back(run))
    return len(between) > 0 and abs(median(between) - period) <= SAME * period


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
        keep = np.abs(rest) <= 4 * mad(rest)
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
    clear = (correlation[peaks] > LEAST) & (correlation[peaks] - trough[peaks] > SIGMAS * error[_half(peaks)])
    candidates = peaks[clear]
    if not len(candidates):
        return None
    lag = int(candidates[np.argmax(correlation[candidates] > 0.8 * correlation[candidates].max())])
    near = candidates[(candidates > 0.75 * lag) & (candidates < 1.33 * lag)]
    lag = int(near[np.argmax(correlation[near])])  # noise makes small peaks on the flank of a broad one
    again = correlation[max(0, 2 * lag - 2) : 2 * lag + 3]
    if 2 * lag < len(correlation) and float(again.max()) < 0.4 * correlation[lag]:
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
    parts = [float(part.mean()) for part in np.array_split(inside, min(8, lag))]
    step = median(levels[:-1] - levels[1:])
    side = max(1, lag // 4)
    begins, ends = whole[:, :side].mean(axis=1), whole[:, -side:].mean(axis=1)
    level = np.abs(ends - begins)[:-1] < LEAST_PATTERN * (ends[:-1] - begins[1:])
    return step > 0 and max(parts) - min(parts) < LEAST_PATTERN * step and float(level.mean()) >= MOST_LEVEL


def _half(peaks: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return half of each lag: up to there the noise's own memory counts, not the pattern."""
    return peaks // 2
