"""The scale on which curves are drawn: linear or logarithmic, and not flattened by outliers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.measure.statistics import sample

WIDE = 30.0
"""From the lowest fortieth of the values to the highest, beyond which a logarithmic scale shows more. Chosen by eye."""
FAR_OUT = 10.0
"""... or from there to the highest of all: then a spike would flatten the rest."""
SMALLEST, LARGEST = 1e-300, 1e300
"""Beyond these the arithmetic of a picture would overflow."""
MIDDLE = (0.025, 0.975)
ROOM = 5.0
"""Ranges of the middle 95 % of the values that are shown with them; what lies farther is named in words."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of values shown, and whether it is logarithmic; values beyond it are drawn at its edge."""

    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: Floats) -> Floats:
        """Return how high values stand in the panel, 0 at the bottom and 1 at the top, shape (n,)."""
        value = np.clip(value, self.low, self.high)
        if self.logarithmic:
            return np.asarray(np.log(value / self.low) / math.log(self.high / self.low))
        return np.asarray((value - self.low) / (self.high - self.low))

    def share_of(self, part: Scale) -> float:
        """Return which part of the height another scale of the same kind takes, if it lies within."""
        if self.logarithmic:
            return math.log(part.high / part.low) / math.log(self.high / self.low)
        return (part.high / 2 - part.low / 2) / (self.high / 2 - self.low / 2)

    def ticks(self) -> list[float]:
        """Return round values to label, three to seven of them as a rule."""
        if self.logarithmic and self.high >= 10 * self.low:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            every = max(1, -(-(last - first + 1) // 7))
            return [10.0**power for power in range(first, last + 1, every)]
        return round_values(self.low, self.high)


def scale_of(values: Iterable[Floats], *, linear: bool = False) -> Scale:
    """Return a scale on which the curves can be read: logarithmic where they span far, unless it is to be linear.

    Outliers do not flatten the rest.
    """
    shown = np.clip(np.concatenate(list(values)), -LARGEST, LARGEST)
    if not len(shown):
        return Scale(0.0, 1.0)
    low, high = float(shown.min()), float(shown.max())
    below, above = (float(edge) for edge in np.quantile(sample(shown), MIDDLE))
    if low > SMALLEST and not linear and (above > WIDE * below or high > FAR_OUT * above):
        return Scale(low / 1.1, high * 1.1, logarithmic=True)
    if above > below:
        span = above - below
        low, high = max(low, below - ROOM * span), min(high, above + ROOM * span)
    room = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    return Scale(low - room, high + room)


def round_values(low: float, high: float, about: int = 5) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten within a range, about so many."""
    rough = high / about - low / about
    if not SMALLEST < rough < LARGEST:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    every = next(power * times for times in (1, 2, 5, 10) if power * times >= rough)
    first, last = math.ceil(low / every), math.floor(high / every)
    return [round(number * every, 12) if every < 1 else number * every for number in range(first, last + 1)]
