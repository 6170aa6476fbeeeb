"""Tables in memory (polars) → records: what JSON lines, CSV and parquet have in common once they are parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mldebug_mcp.logs.builder import MAX_DEPTH, RunBuilder
from mldebug_mcp.logs.run import Floats

_MAY_SPELL_A_NUMBER = r"(?i)^\s*\[?\s*[-+]?[\d.,]+(?:e[-+]?\d+)?[\s%]*\]?\s*$|nan|inf|tensor\(|1\.#"
"""Matches at least what `numbers.parse_number` takes."""


def add_frame(builder: RunBuilder, frame: pl.DataFrame, stand_ins: Mapping[float, float] | None = None) -> int | None:
    """Add the rows of a table as records and return how many of them hold no number.

    Flags, times, lists and text are passed over. Return None, with nothing added, if text in it may spell a number.

    Args:
        builder: Where the records go.
        frame: The table; nested columns become `outer/inner`.
        stand_ins: Numbers that stand for others, such as for NaN; their negatives stand for the negatives.
    """
    numbers: dict[str, pl.Series] = {}
    for name, column in _leaves(frame):
        if column.dtype.is_numeric():
            numbers[name] = column.cast(pl.Float64, strict=False)
        elif _may_spell_numbers(column):
            return None
    values: dict[str, Floats] = {}
    logged: dict[str, NDArray[np.bool_]] = {}
    # All at once: column by column, each value of one that has nulls would be looked at by itself.
    table = pl.DataFrame(numbers).to_numpy(order="fortran")
    for (name, column), floats in zip(numbers.items(), table.T, strict=True):
        if column.null_count():
            logged[name] = _shared(_present(column, floats), logged.values())
        values[name] = _with_stand_ins(floats, stand_ins or {})
    rows = frame.height
    if values and len(logged) < len(values):
        builder.columns(values, logged)
        return 0
    filled = np.any(list(logged.values()), axis=0) if values else np.zeros(rows, dtype=np.bool_)
    builder.columns(
        {name: column[filled] for name, column in values.items()},
        {name: mask[filled] for name, mask in logged.items()},
    )
    return rows - int(filled.sum())


def _leaves(frame: pl.DataFrame, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, pl.Series]]:
    for column in frame.iter_columns():
        if isinstance(column.dtype, pl.Struct):
            if depth < MAX_DEPTH:
                yield from _leaves(column.struct.unnest(), f"{prefix}{column.name}/", depth + 1)
        else:
            yield prefix + column.name, column


def _present(column: pl.Series, floats: Floats) -> NDArray[np.bool_]:
    """Return where a column is not null, shape (rows,); a null became NaN."""
    missing = np.isnan(floats)
    if np.count_nonzero(missing) == column.null_count():
        return ~missing
    return np.asarray(column.is_not_null().to_numpy())


def _shared(mask: NDArray[np.bool_], others: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return the one of the others that equals a mask, if any does: equal rows are then worked out once."""
    return next((other for other in others if np.array_equal(other, mask)), mask)


def _with_stand_ins(values: Floats, stand_ins: Mapping[float, float]) -> Floats:
    for stand_in, meant in stand_ins.items():
        found = np.abs(values) == abs(stand_in)
        if found.any():
            values = np.where(found, np.where(values == stand_in, meant, -meant), values)
    return values


def _may_spell_numbers(column: pl.Series) -> bool:
    return column.dtype == pl.String and bool(column.str.contains(_MAY_SPELL_A_NUMBER).any())
