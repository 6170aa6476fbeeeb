"""A table of measurements: one number or one word for each row and column, and what is counted of each column."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.batch.columns import depth, row_count
from mldebug_mcp.batch.other_columns import ROW_NUMBERS
from mldebug_mcp.batch.ragged import Floats, Ints, Ragged
from mldebug_mcp.batch.table import Column, Table

MOST_COLUMNS = 1000
LEAST_ROWS = 10
"""Rows from which a file of single numbers is taken for a table of measurements, not for a few settings. Chosen."""
_STEP, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd constants of the generator SplitMix64."""


def cells_of(table: Table) -> dict[str, Column]:
    """Return the columns of a table that has one value for each row and column, else nothing."""
    columns = dict(list(table.columns.items())[:MOST_COLUMNS])
    if len(columns) < 2 or any(isinstance(one, Ragged) or depth(one) != 1 for one in columns.values()):
        return {}
    if len({row_count(one) for one in columns.values()}) != 1:
        return {}
    return {name: one for name, one in columns.items() if name.lower() not in ROW_NUMBERS}


def is_numeric(column: Column) -> bool:
    """Return whether a column of cells holds numbers."""
    return _numbers(column) is not None


def _numbers(column: Column) -> Floats | None:
    """Return the cells as numbers, what is missing as NaN; None if they are words."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64) if column.dtype.kind in "fiub" else None
    if isinstance(column, Ragged) or not isinstance(next(filter(None, column), 0), (int, float)):
        return None
    try:
        return np.asarray(column, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(slots=True)
class CellCounts:
    """What is counted of one column.

    Args:
        rows: Its cells.
        value: The first of them, as text.
        constant: Whether all others are the same.
        numeric: Whether they are numbers.
        sum: Equal for columns that hold the same values in the same rows.
    """

    rows: int = 0
    value: str = ""
    constant: bool = True
    numeric: bool = True
    sum: int = 0

    @classmethod
    def of(cls, column: Column, numbers: Ints) -> CellCounts:
        """Count the cells of one piece; `numbers` are those of its rows."""
        found = _numbers(column)
        array = _keys(column) if found is None else found
        mixed = (array.view(np.uint64) + numbers.astype(np.uint64) * _STEP) * _MIX
        mixed ^= mixed >> np.uint64(29)
        first = str(column[0]) if len(array) else ""  # type: ignore[index]
        constant = bool(np.all(array == array[:1]))
        return cls(len(array), first, constant, found is not None, int((mixed * _STEP).sum(dtype=np.uint64)))

    def merge(self, later: CellCounts) -> None:
        """Add the cells of rows further on in the file."""
        if not later.rows:
            return
        self.constant &= later.constant and (not self.rows or self.value == later.value)
        self.value = self.value if self.rows else later.value
        self.numeric &= later.numeric
        self.rows += later.rows
        self.sum = (self.sum + later.sum) % 2**64


def _keys(column: Column) -> Floats:
    """Return a number for each text."""
    texts = [repr(value) for value in column]  # type: ignore[union-attr]
    known = {text: float(zlib.crc32(text.encode("utf-8", "surrogatepass"))) for text in set(texts)}
    return np.array([known[text] for text in texts], np.float64)
