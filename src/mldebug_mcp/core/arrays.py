"""Medians, quantiles and distinct values as numpy gives them; for its own, numpy loads masked arrays, which is slow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

NumberT = TypeVar("NumberT", bound=np.number[Any])
VALUES_TOGETHER = 1 << 16
"""Values of a long curve that are looked at together: what is derived from them fits a processor's cache."""


def slices_of(count: int, also: int = 0) -> Iterator[slice]:
    """Yield where the parts of so many values begin and end; each overlaps the next by so many as `also` says."""
    starts = range(0, max(1, count - also), VALUES_TOGETHER)
    return (slice(start, min(count, start + VALUES_TOGETHER + also)) for start in starts)


def median(values: ArrayLike) -> float:
    """Return the median, NaN if a value is NaN or there is none: numpy's number, sooner, as most curves are short."""
    return median_in_place(np.array(values))


def median_in_place(values: NDArray[Any]) -> float:
    """Return the `median` of values that nobody needs any more: they get another order, and no copy is made.

    numpy finds one place of an order many times sooner than several.
    """
    count = len(values)
    if not count:
        return math.nan
    half = count // 2
    values.partition(half)
    if np.isnan(values[half:].max()):  # NaN comes last
        return math.nan
    return float(values[half] if count % 2 else (values[:half].max() + values[half]) / 2)


def median_gap(values: NDArray[np.float64]) -> float:
    """Return the median of the differences of neighbours, as of the steps of a curve; most are evenly spaced."""
    gaps = np.diff(values)
    if len(gaps) and gaps.min() == gaps.max():
        return float(gaps[0])
    return median_in_place(gaps)


def where_true(flags: NDArray[np.bool_]) -> slice | NDArray[np.bool_]:
    """Return what takes the values that are flagged: a slice, which copies nothing, where they follow one another."""
    count = int(np.count_nonzero(flags))
    if not count:
        return slice(0, 0)
    first = int(np.argmax(flags))
    return slice(first, first + count) if flags[first : first + count].all() else flags


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
    return median_in_place(array[~np.isnan(array)])


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


def grouped(values: NDArray[NumberT], keys: NDArray[Any]) -> list[NDArray[NumberT]]:
    """Return the values of each distinct key, by ascending keys and as they came: in one pass, however many keys."""
    if not len(keys):
        return []
    if bool(np.any(keys[1:] < keys[:-1])):
        order = np.argsort(keys, kind="stable")
        values, keys = values[order], keys[order]
    return np.split(values, np.flatnonzero(keys[1:] != keys[:-1]) + 1)


SPREAD_VALUES = 1024
"""Values of a long curve, all over it, that mostly are enough to show that it has several."""


def has_distinct(values: NDArray[np.float64], least: int) -> bool:
    """Say whether there are at least so many distinct values."""
    some = values[:: max(1, len(values) // SPREAD_VALUES)]
    return len(distinct(some)) >= least or (len(some) < len(values) and len(distinct(values)) >= least)


def are_whole(values: NDArray[np.floating[Any]]) -> bool:
    """Say whether all values are whole numbers; the first ones mostly show that they are not."""
    return all(bool(np.all(part == np.floor(part))) for part in (values[:SPREAD_VALUES], values[SPREAD_VALUES:]))


def nearest_sum(total: NDArray[np.float64], terms: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the weights with which terms, shape (n, terms), come nearest to a total, and what is left over.

    By least squares; what is left over is its standard deviation.
    """
    weights: NDArray[np.float64] = np.asarray(np.linalg.lstsq(terms, total, rcond=None)[0], dtype=np.float64)
    return weights, float(np.std(total - terms @ weights))
