"""A metric as it is gathered: rows and values, one at a time or by the million.

Rows are kept as stretches of records that all hold the metric: a million records cost eight bytes per value.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats

Rows = NDArray[np.int64]

_SPARSE = 8
"""Values per stretch below which rows are kept one by one."""


class Column:
    """The values of one metric and the records that hold them, both in the order in which they came."""

    def __init__(self) -> None:
        self._new_rows: array[int] = array("q")
        self._new_values: array[float] = array("d")
        self._rows: list[Rows | range] = []
        self._values: list[Floats] = []

    def __len__(self) -> int:
        return len(self._new_values) + sum(map(len, self._values))

    def copy(self) -> Column:
        """Return a column of its own with the same values."""
        self._settle()
        other = Column()
        other._rows, other._values = list(self._rows), list(self._values)
        return other

    def append(self, row: int, value: float) -> None:
        """Take one value."""
        self._new_rows.append(row)
        self._new_values.append(value)

    def extend(self, rows: Rows | range, values: Floats) -> None:
        """Take many values, both of shape (n,); a `range` says that no record between lacks one."""
        self._settle()
        self._add(rows, values)

    def arrays(self) -> tuple[Rows, Floats]:
        """Return rows and values, both of shape (n,)."""
        self._settle()
        if not self._values:
            return np.empty(0, dtype=np.int64), np.empty(0)
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values)]
        rows = np.concatenate([_spelled_out(part) for part in self._rows]) if len(self._rows) > 1 else None
        if rows is not None and self.stretches is None:
            self._rows = [rows]
        return _spelled_out(self._rows[0]) if rows is None else rows, self._values[0]

    @property
    def stretches(self) -> tuple[range, ...] | None:
        """The rows as stretches, equal for metrics that stand in the same records; None if they are too scattered."""
        self._settle()
        ranges = tuple(rows for rows in self._rows if isinstance(rows, range))
        return ranges if len(ranges) == len(self._rows) else None

    def scale(self, factor: float) -> None:
        """Multiply every value."""
        self._settle()
        self._values = [values * factor for values in self._values]

    def _settle(self) -> None:
        """Turn the values taken one by one into a part."""
        if self._new_values:
            self._add(np.frombuffer(self._new_rows, dtype=np.int64), np.frombuffer(self._new_values, dtype=np.float64))
            self._new_rows, self._new_values = array("q"), array("d")

    def _add(self, rows: Rows | range, values: Floats) -> None:
        self._values.append(values)
        for part in [rows] if isinstance(rows, range) else _stretches_of(rows):
            last = self._rows[-1] if self._rows else None
            if isinstance(part, range) and isinstance(last, range) and last.stop == part.start:
                self._rows[-1] = range(last.start, part.stop)
            else:
                self._rows.append(part)


def _stretches_of(rows: Rows) -> list[Rows] | list[range]:
    """Return ascending rows as stretches, or as they are if those would be short."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    if (len(breaks) + 1) * _SPARSE > len(rows) and len(breaks):
        return [rows]
    starts = rows[np.append(0, breaks)].tolist() if len(rows) else []
    stops = (rows[np.append(breaks - 1, -1)] + 1).tolist() if len(rows) else []
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True)]


def _spelled_out(rows: Rows | range) -> Rows:
    return np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows
