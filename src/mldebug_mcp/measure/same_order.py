"""Whether what single batches differ in comes again record by record: the same rows in the same order, pass after pass.

A batch is harder or easier than its neighbours by chance of its rows. Where rows are drawn anew, these differences say
nothing of those of later records; where a pass is like the one before, they come again at the distance of a pass. They
are ranked, so that a few spikes do not decide, and compared with themselves at every distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.measure.statistics import mad

BESIDE = 2
"""Neighbours on each side, whose median each record is compared with. Chosen: a spike leaves it as it is."""
FEWEST, SHORTEST = 60, 8
"""Records, and the least distance that is looked at. Chosen: noise with a short memory is no pass."""
PAIRS = 30
"""Records that have one at that distance. Chosen: a correlation of as many has an error below 0.2."""
SIGMAS = 6.5
"""Standard errors of a rank correlation, 1 / sqrt(pairs). Chosen: of 10,000 distances one in a million is there."""
ALIKE = 0.5
"""Rank correlation. Chosen: a spike at each tenth record makes 0.4, batches that recur 0.6 and more."""

SMOOTH = 0.3
"""Rank correlation of a record with the next. Chosen: of single batches it is none, of a smooth curve nearly 1."""


@dataclass(frozen=True, slots=True)
class Again:
    """What comes again.

    Args:
        lag: The distance in records.
        correlation: The rank correlation of the differences at that distance.
        pairs: Records that are compared.
    """

    lag: int
    correlation: float
    pairs: int


def comes_again(values: Floats) -> Again | None:
    """Return the distance at which the differences from neighbours come again most clearly, None if they do not.

    Args:
        values: Evenly spaced values, in time order, shape (n,).
    """
    if len(values) < FEWEST:
        return None
    around = np.lib.stride_tricks.sliding_window_view(values, 2 * BESIDE + 1)
    beside = values[BESIDE:-BESIDE] - np.median(around, axis=1)
    if not float(np.ptp(beside)):
        return None
    centred = _ranks(beside)
    size = 1 << (2 * len(centred)).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    pairs = len(centred) - np.arange(len(centred))
    alike = np.fft.irfft(power, size)[: len(centred)] / pairs / float(np.mean(centred**2))
    clear = alike * np.sqrt(pairs)
    clear[:SHORTEST] = clear[max(SHORTEST, len(clear) - PAIRS + 1) :] = 0.0
    lag = int(np.argmax(clear))
    if clear[lag] < SIGMAS or alike[lag] < ALIKE or alike[1] > SMOOTH:
        return None
    return Again(lag, min(1.0, float(alike[lag])), int(pairs[lag]))


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
    profile = np.median(each - np.median(each, axis=1, keepdims=True), axis=0)
    spread = mad(profile)
    return float(profile.max() - np.median(profile)) / spread if spread > 0 else None


def _ranks(values: Floats) -> Floats:
    """Return ranks as shares about zero; values that are alike, as rounded ones are, share their mean rank."""
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    shared = np.cumsum(count) - count / 2
    return np.asarray(shared[which] / len(values) - 0.5)
