"""Rows of different length as one flat array: all checks work on this, at the speed of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.generic]

HUGE = 2**62
"""What integers beyond 64 bits are read as: outside any vocabulary, as they are."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Stretches of positions of a flat array, none across a row's end: `start[i]` up to `stop[i]`, in `row[i]`."""

    start: Ints
    stop: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of integers.

    Args:
        flat: All rows one after the other, of any integer type.
        offsets: Row i is `flat[offsets[i]:offsets[i + 1]]`; one more than there are rows.
    """

    flat: npt.NDArray[np.integer]
    offsets: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        """Make it from lists. Raises TypeError or ValueError if a row holds anything but whole numbers."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return cls(whole_numbers(list(chain.from_iterable(rows))), offsets_of(lengths))

    @classmethod
    def rectangle(cls, array: npt.NDArray[np.integer]) -> Ragged:
        """Make it from an array of rows of equal length."""
        rows, width = array.shape
        return cls(np.ascontiguousarray(array).reshape(-1), np.arange(rows + 1, dtype=np.int64) * width)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """The length of each row."""
        return np.diff(self.offsets)

    def row(self, index: int) -> npt.NDArray[np.integer]:
        """Return one row."""
        return self.flat[self.offsets[index] : self.offsets[index + 1]]

    def take(self, rows: Ints) -> Ragged:
        """Return the given rows."""
        parts = [self.row(int(row)) for row in rows]
        flat = np.concatenate(parts) if parts else self.flat[:0]
        return Ragged(flat, offsets_of(self.lengths[rows]))

    def row_of(self, positions: Ints) -> Ints:
        """Return the row in which each flat position lies."""
        return np.searchsorted(self.offsets, positions, side="right") - 1

    def runs(self, where: Bools) -> Runs:
        """Return the stretches of positions for which `where` holds, in order."""
        return runs(where, self.offsets)


def offsets_of(lengths: Ints) -> Ints:
    """Return where rows of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def runs(where: Bools, offsets: Ints) -> Runs:
    """Return the stretches of positions for which `where` holds, cut at the row ends given by `offsets`."""
    if not len(where):
        nothing = np.empty(0, np.int64)
        return Runs(nothing, nothing, nothing)
    change = np.flatnonzero(where[1:] != where[:-1]) + 1
    edges = np.concatenate([[0] if where[0] else [], change, [len(where)] if where[-1] else []]).astype(np.int64)
    inner = offsets[1:-1]
    inner = np.unique(inner[(inner > 0) & (inner < len(where))])
    inner = inner[where[inner] & where[inner - 1]]
    start, stop = np.sort(np.concatenate([edges[::2], inner])), np.sort(np.concatenate([edges[1::2], inner]))
    return Runs(start, stop, np.searchsorted(offsets, start, side="right") - 1)


def per_row(found: Runs, rows: int) -> Ints:
    """Return how many positions the runs cover in each row."""
    return np.bincount(found.row, weights=found.stop - found.start, minlength=rows).astype(np.int64)


def count_rows(positions: Ints, rows: Ragged) -> Ints:
    """Return how many of the flat positions lie in each row."""
    return np.bincount(rows.row_of(positions), minlength=rows.rows).astype(np.int64)


def whole_numbers(values: list[object]) -> npt.NDArray[np.integer]:
    """Return an integer array. Raises TypeError or ValueError if a value is not a whole number."""
    if not values:
        return np.empty(0, np.int64)
    if any(isinstance(value, (str, bytes, list, dict, tuple)) or value is None for value in values):
        raise TypeError("holds something that is not a number")
    array = np.asarray(values)
    if array.dtype == object or array.dtype.kind == "u":
        try:
            return np.array([int(np.clip(float(value), -HUGE, HUGE)) for value in values], np.int64)  # type: ignore[arg-type]
        except OverflowError:
            raise ValueError("holds numbers beyond all token ids") from None
    return as_integers(array)


def as_integers(array: Array) -> npt.NDArray[np.integer]:
    """Return an array as integers. Raises ValueError if that would change a value."""
    if array.dtype.kind in "iu":
        return array  # type: ignore[return-value]
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "f" and bool(np.all(np.isfinite(array.astype(np.float64)))):
        whole = np.clip(array.astype(np.float64), -HUGE, HUGE).astype(np.int64)
        if bool(np.all(whole == array)):
            return whole
        raise ValueError("holds fractions where token ids or labels are due")
    raise ValueError(f"holds values of type {array.dtype}, not whole numbers")
