"""Medians, quantiles and distinct values as numpy gives them; for its own, numpy loads masked arrays, which is slow."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

NumberT = TypeVar("NumberT", bound=np.number[Any])


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


def quantile(values: ArrayLike, share: float) -> float:
    """Return a quantile, between two values by a straight line; NaN if a value is NaN or there is none."""
    ordered: NDArray[Any] = np.sort(np.asarray(values, dtype=float))
    if not len(ordered) or np.isnan(ordered[-1]):
        return math.nan
    place = share * (len(ordered) - 1)
    low = int(place)
    below, above = float(ordered[low]), float(ordered[min(low + 1, len(ordered) - 1)])
    gap, weight = above - below, place - low
    return above - gap * (1 - weight) if weight >= 0.5 else below + gap * weight


def median_of_numbers(values: ArrayLike) -> float:
    """Return the median of the values that are no NaN, NaN if there is none."""
    array: NDArray[Any] = np.asarray(values)
    return median(array[~np.isnan(array)])


def entropy(counts: NDArray[Any], total: float = 1.0) -> float:
    """Return the entropy in bits of counts with this total, or of shares."""
    shares = counts[counts > 0] / total
    return float(-(shares * np.log2(shares)).sum())


def distinct(values: NDArray[NumberT]) -> NDArray[NumberT]:
    """Return the distinct values in their order, as `numpy.unique` does; NaN counts as one.

    Values that ascend already are not sorted, but copied.
    """
    if values.ndim == 1 and bool(np.all(values[1:] > values[:-1])):
        return values.copy()
    ordered = np.sort(values, axis=None)
    after, before = ordered[1:], ordered[:-1]
    differs = (after != before) & ~((after != after) & (before != before))  # noqa: PLR0124 - NaN alone differs so
    found: NDArray[NumberT] = ordered[np.append(np.ones(min(len(ordered), 1), dtype=bool), differs)]
    return found


def nearest_sum(total: NDArray[np.float64], terms: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the weights with which terms, shape (n, terms), come nearest to a total, and what is left over.

    By least squares; what is left over is its standard deviation.
    """
    weights: NDArray[np.float64] = np.asarray(np.linalg.lstsq(terms, total, rcond=None)[0], dtype=np.float64)
    return weights, float(np.std(total - terms @ weights))
