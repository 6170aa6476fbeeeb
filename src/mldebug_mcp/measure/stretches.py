"""The level of a curve over equal stretches of steps, which a shorter or longer logging interval does not move."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Series
from mldebug_mcp.measure.statistics import MEDIAN_ERROR, median, noise


@dataclass(frozen=True, slots=True)
class Stretches:
    """The levels of a curve over stretches of its steps.

    Args:
        level: Median of each stretch that holds a record, shape (stretches,).
        first: Step of the first record of each, shape (stretches,).
        error: Standard error of a level, from the noise between neighbouring records.
    """

    level: Floats
    first: Floats
    error: float


def stretches_of(series: Series, count: int) -> Stretches:
    """Cut a curve with records into `count` stretches that are equally long in steps."""
    step, value = series.step, series.value
    place = np.linspace(0, count, 1 + count)[1:-1] / count
    part = np.searchsorted(step[0] + place * (step[-1] - step[0]), step, side="right")
    parts = np.unique(part)
    level = np.array([median(value[part == one]) for one in parts])
    first = step[np.searchsorted(part, parts)]
    return Stretches(level, first, MEDIAN_ERROR * noise(value) / math.sqrt(len(value) / len(parts)))
