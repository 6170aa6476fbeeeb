"""A metric as it is gathered: rows and values, one at a time or by the million.

Rows are kept as stretches of records that all hold the metric: a million records cost eight bytes per value.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_MIN_VALUES_PER_STRETCH = 8
"""Values per stretch below which rows are kept one by one."""
_GROWTH_DIVISOR = 4
"""A full column grows by this part of itself. Chosen: what stays unused takes memory while a log is read."""


class Column:
    """The values of one metric and the records that hold them, both in the order in which they came."""

    def __init__(self) -> None:
        self._new_rows: array[int] = array("q")
        self._new_values: array[float] = array("d")
        self._rows: list[Rows | range] = []
        self._room: Floats = np.empty(0)
        self._count = 0  # values in the room
        self._lent = False  # whether somebody else reads what is in the room
        self._stretches: tuple[range, ...] | None = None
        self.logged_as = ""
        """The name that it was logged with, where it has got another."""

    @classmethod
    def of(cls, rows: Rows, values: Floats) -> Column:
        """Return a column of values and their rows, which ascend, both of shape (n,)."""
        column = cls()
        column.extend(stretches_of(rows), values)
        return column

    def __len__(self) -> int:
        return len(self._new_values) + self._count

    def copy(self) -> Column:
        """Return a column of its own with the same values."""
        self._settle()
        other = Column()
        other._rows, other._room, other._count = list(self._rows), self._room, self._count
        self._lent = other._lent = True
        other.logged_as = self.logged_as
        return other

    def append(self, row: int, value: float) -> None:
        """Take one value."""
        self._new_rows.append(row)
        self._new_values.append(value)

    def extend(self, parts: Sequence[Rows | range], values: Floats, at: Rows | None = None) -> None:
        """Take many values and their rows, in ascending parts such as `stretches_of` makes.

        `at` says which of the values are taken, by index; by default all.
        """
        self._settle()
        self._add(parts, values, at)

    def arrays(self) -> tuple[Rows, Floats]:
        """Return rows and values, both of shape (n,)."""
        values, stretches = self.values(), self.stretches
        if stretches is None:
            if len(self._rows) > 1:
                self._rows = [np.concatenate([_spelled_out([part]) for part in self._rows])]
            return _spelled_out(self._rows), values
        return _spelled_out(stretches), values

    def values(self) -> Floats:
        """Return the values, shape (n,)."""
        self._settle()
        if not self._lent:
            self._room.resize(self._count, refcheck=False)
        self._lent = True
        return self._room[: self._count]

    def finite(self) -> Floats:
        """Return the values that are finite, shape (n,)."""
        values = self.values()
        return values[np.isfinite(values)]

    def joined(self, other: Column) -> Column | None:
        """Return the values of both, by record; None if a record holds both."""
        (at, value), (other_at, other_value) = self.arrays(), other.arrays()
        rows = np.concatenate([at, other_at])
        order = np.argsort(rows, kind="stable")
        if bool(np.any(np.diff(rows[order]) == 0)):
            return None
        return Column.of(rows[order], np.concatenate([value, other_value])[order])

    def before(self, row: int) -> int:
        """Return how many of the values stand in records before a row."""
        self._settle()
        if row <= 0 or not self._rows or row > self._rows[-1][-1]:
            return 0 if row <= 0 else len(self)
        return sum(
            min(max(row - part.start, 0), len(part)) if isinstance(part, range) else int(np.searchsorted(part, row))
            for part in self._rows
        )

    @property
    def stretches(self) -> tuple[range, ...] | None:
        """The rows as stretches, equal for metrics that stand in the same records; None if they are too scattered."""
        self._settle()
        if self._stretches is None:
            ranges = tuple(part for part in self._rows if isinstance(part, range))
            self._stretches = ranges if len(ranges) == len(self._rows) else None
        return self._stretches

    def mark(self, rows: NDArray[np.bool_]) -> None:
        """Set each row that holds a value to true, in flags of shape (rows,)."""
        self._settle()
        for part in self._rows:
            rows[slice(part.start, part.stop) if isinstance(part, range) else part] = True

    def scale(self, factor: float) -> None:
        """Multiply every value."""
        self._room, self._lent = self.values() * factor, False

    def _settle(self) -> None:
        """Turn the values taken one by one into a part."""
        if self._new_values:
            rows = np.frombuffer(self._new_rows, dtype=np.int64)
            self._add(stretches_of(rows), np.frombuffer(self._new_values, dtype=np.float64))
            self._new_rows, self._new_values = array("q"), array("d")

    def _add(self, parts: Sequence[Rows | range], values: Floats, at: Rows | None = None) -> None:
        self._stretches = None
        end = self._count + len(values if at is None else at)
        if self._lent or end > len(self._room):
            self._make_room(end)
        if at is None:
            self._room[self._count : end] = values
        else:
            values.take(at, out=self._room[self._count : end], mode="clip")  # other modes make a copy first
        self._count = end
        for part in parts:
            last = self._rows[-1] if self._rows else None
            if isinstance(part, range) and isinstance(last, range) and last.stop == part.start:
                self._rows[-1] = range(last.start, part.stop)
            else:
                self._rows.append(part)

    def _make_room(self, least: int) -> None:
        size = max(least, self._count + self._count // _GROWTH_DIVISOR)
        if self._lent:
            before, self._room = self._room[: self._count], np.empty(size)
            self._room[: self._count] = before
            self._lent = False
        else:
            self._room.resize(size, refcheck=False)  # the system moves a large one without a copy


Columns = dict[str, Column]
"""The columns of a log by name."""


def rename(columns: Columns, name: str, new: str) -> None:
    """Give a column another name, and keep the one that it was logged with."""
    columns[new] = columns.pop(name)
    columns[new].logged_as = columns[new].logged_as or name


def stretches_of(rows: Rows) -> list[Rows] | list[range]:
    """Return ascending rows as stretches, or as they are if those would be short."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return [range(int(rows[0]), int(rows[-1]) + 1)]
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    if (len(breaks) + 1) * _MIN_VALUES_PER_STRETCH > len(rows) and len(breaks):
        return [rows]
    starts = rows[np.append(0, breaks)].tolist() if len(rows) else []
    stops = (rows[np.append(breaks - 1, -1)] + 1).tolist() if len(rows) else []
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True)]


def carried_forward(at: Rows, value: Floats, rows: int) -> Floats:
    """Return the value at each row, shape (rows,): a row without one has that of the last row before it."""
    if len(at) == rows:
        return value
    rows_per_value = np.diff(np.append(at, rows))
    rows_per_value[0] += at[0]
    return np.repeat(value, rows_per_value)


def _spelled_out(parts: Sequence[Rows | range]) -> Rows:
    """Return the rows of stretches, or of a single part of any kind, shape (n,)."""
    if len(parts) == 1:
        (only,) = parts
        return np.arange(only.start, only.stop) if isinstance(only, range) else only
    starts = np.array([part.start for part in parts if isinstance(part, range)], dtype=np.int64)
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    rows: Rows = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return rows + np.arange(len(rows))


def ascends(values: Floats) -> bool:
    """Say whether each value is larger than the one before."""
    return bool(np.all(values[1:] > values[:-1]))
