"""A metric as it is gathered: rows and values, one at a time or by the million.

Where every record has the metric, its rows are not stored: a million records cost eight bytes per value.
"""

from __future__ import annotations

from array import array
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats

Rows = NDArray[np.int64]


class Column:
    """The values of one metric and the records that hold them, both in the order in which they came."""

    def __init__(self) -> None:
        self._rows: array[int] = array("q")
        self._values: array[float] = array("d")
        self._parts: list[tuple[Rows | range, Floats]] = []

    def __len__(self) -> int:
        return len(self._values) + sum(len(values) for _, values in self._parts)

    def copy(self) -> Column:
        """Return a column of its own with the same values."""
        self._settle()
        other = Column()
        other._parts = list(self._parts)
        return other

    def append(self, row: int, value: float) -> None:
        """Take one value."""
        self._rows.append(row)
        self._values.append(value)

    def extend(self, rows: Rows | range, values: Floats) -> None:
        """Take many values, both of shape (n,); a `range` says that no record between lacks one."""
        self._settle()
        self._parts.append((rows, values))

    def arrays(self) -> tuple[Rows, Floats]:
        """Return rows and values, both of shape (n,)."""
        self._settle()
        if len(self._parts) > 1:
            values = np.concatenate([values for _, values in self._parts])
            self._parts = [(_joined([rows for rows, _ in self._parts]), values)]
        if not self._parts:
            return np.empty(0, dtype=np.int64), np.empty(0)
        rows, values = self._parts[0]
        return _spelled_out(rows), values

    def scale(self, factor: float) -> None:
        """Multiply every value."""
        rows, values = self.arrays()
        self._parts = [(rows, values * factor)] if len(values) else []

    def _settle(self) -> None:
        """Turn the values taken one by one into a part."""
        if self._values:
            rows = np.frombuffer(self._rows, dtype=np.int64)
            dense = len(rows) == rows[-1] - rows[0] + 1
            span = range(int(rows[0]), int(rows[-1]) + 1) if dense else rows
            self._parts.append((span, np.frombuffer(self._values, dtype=np.float64)))
            self._rows, self._values = array("q"), array("d")


def _joined(parts: list[Rows | range]) -> Rows | range:
    spans = [rows for rows in parts if isinstance(rows, range)]
    if len(spans) == len(parts) and all(one.stop == other.start for one, other in pairwise(spans)):
        return range(spans[0].start, spans[-1].stop)
    return np.concatenate([_spelled_out(rows) for rows in parts])


def _spelled_out(rows: Rows | range) -> Rows:
    return np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows
