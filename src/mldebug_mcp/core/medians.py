"""The median as numpy gives it. numpy's own loads its masked arrays, a twentieth of the time of a short command."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def median(values: ArrayLike) -> float:
    """Return the median, NaN if a value is NaN or there is none: numpy's number, sooner, as most curves are short."""
    array: NDArray[Any] = np.asarray(values)
    count = len(array)
    if not count:
        return math.nan
    half = count // 2
    ordered = np.partition(array, (half - 1, half, count - 1) if count > 1 else 0)
    if np.isnan(ordered[-1]):
        return math.nan
    return float(ordered[half] if count % 2 else (ordered[half - 1] + ordered[half]) / 2)


def median_of_numbers(values: ArrayLike) -> float:
    """Return the median of the values that are no NaN, NaN if there is none."""
    array: NDArray[Any] = np.asarray(values)
    return median(array[~np.isnan(array)])
