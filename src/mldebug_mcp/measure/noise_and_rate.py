"""The noise of the loss relative to its level, stretch by stretch, while the learning rate comes down from its peak.

The warmup before is left out: a model that has learnt nothing gives all rows the same loss, and its noise is nearly
nil, whatever the rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mldebug_mcp.logs.run import Floats, Run
from mldebug_mcp.measure.statistics import median, noise, sample, start_level

STRETCHES, LEAST_RECORDS = 12, 5
"""Stretches that a log is cut into, and the records that each needs for its noise to be known to a third."""
LEAST_ABOVE = 8
"""Stretches that must lie above the floor."""
FLOOR = 0.2
"""Of the loss at the start: below this level a loss and its noise both go to zero, whatever the rate."""
ALIKE = 1.02
"""Rates that differ by about this factor or less are one rate."""


@dataclass(frozen=True, slots=True)
class NoiseAndRate:
    """Noise and rate of the stretches of a log from the peak of the rate on, whose loss is above the floor.

    Args:
        noise: Standard deviation from record to record over the level, shape (stretches,).
        rate: Mean learning rate, shape (stretches,).
        alike: Rank correlation of the two, from -1 to 1.
        first: Step of the first stretch.
    """

    noise: Floats
    rate: Floats
    alike: float
    first: float

    @property
    def span(self) -> float:
        """How many times the lowest rate the highest is."""
        low = float(self.rate.min())
        return float(self.rate.max()) / low if low > 0 else np.inf

    def at_low_and_high(self) -> tuple[float, float]:
        """Return the median noise of the third of the stretches with the lowest rates, and with the highest."""
        order, third = np.argsort(self.rate, kind="stable"), max(1, len(self.rate) // 3)
        return median(self.noise[order[:third]]), median(self.noise[order[-third:]])


def noise_and_rate(run: Run) -> NoiseAndRate | None:
    """Return how the noise of the loss goes with the learning rate, None where too little is logged to tell."""
    if "loss" not in run or "learning_rate" not in run:
        return None
    loss, rate = run["loss"].finite, run["learning_rate"].finite
    if len(loss) < STRETCHES * LEAST_RECORDS or len(rate) < STRETCHES:
        return None
    there = rate.interpolated(loss.step)
    peak = int(np.argmax(there))
    if len(loss) - peak < STRETCHES * LEAST_RECORDS:
        return None
    edges = np.linspace(peak, len(loss), STRETCHES + 1).astype(int)
    floor = FLOOR * abs(start_level(loss.value))
    parts = [
        (level, noise(loss.value[a:b]) / level, float(there[a:b].mean()), float(loss.step[a]))
        for a, b in pairwise(edges.tolist())
        if (level := median(sample(loss.value[a:b]))) > floor
    ]
    if len(parts) < LEAST_ABOVE:
        return None
    size, rates = np.array([part[1] for part in parts]), np.array([part[2] for part in parts])
    return NoiseAndRate(size, rates, _rank_correlation(size, rates), parts[0][3])


def _rank_correlation(one: Floats, other: Floats) -> float:
    """Return Spearman's correlation of some numbers with rates, those that are alike sharing a rank."""
    shared = np.round(np.log(np.maximum(other, 1e-30)) / np.log(ALIKE))
    ranks = [np.array([((v < x).sum() + (v <= x).sum()) / 2 for x in v]) for v in (one, shared)]
    spreads = [float(np.std(rank)) for rank in ranks]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1]) if min(spreads) > 0 else 0.0
