"""Tables in memory (polars) → records: what JSON lines, CSV and parquet have in common once they are parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mldebug_mcp.logs.beside import ENVELOPES, MAX_DEPTH, is_long, named_of_evaluation, phase_in, tells_kind
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats

_MAY_SPELL_A_NUMBER = r"(?i)^\s*\[?\s*[-+]?[\d.,]+(?:e[-+]?\d+)?[\s%]*\]?\s*$|nan|inf|tensor\(|1\.#"
"""Matches at least what `numbers.parse_number` takes."""


def add_frame(builder: RunBuilder, frame: pl.DataFrame, stand_ins: Mapping[float, float] | None = None) -> int | None:
    """Add the rows of a table as records and return how many of them hold no number.

    Flags, times, lists and text are passed over, but for text that tells which rows are of evaluation. Return None,
    with nothing added, where each record has to be looked at: text may spell a number, or a name and a value be a
    metric.

    Args:
        builder: Where the records go.
        frame: The table; nested columns become `outer/inner`.
        stand_ins: Numbers that stand for others, such as for NaN; their negatives stand for the negatives.
    """
    found = None if is_long(frame.columns) else _numbers_in(frame)
    if found is None:
        return None
    numbers, evaluated = found
    values: dict[str, Floats] = {}
    logged: dict[str, NDArray[np.bool_]] = {}
    # All at once: column by column, each value of one that has nulls would be looked at by itself.
    table = pl.DataFrame(numbers).to_numpy(order="fortran")
    for (name, column), floats in zip(numbers.items(), table.T, strict=True):
        if column.null_count():
            logged[name] = _shared(_present(column, floats), logged.values())
        values[name] = _with_stand_ins(floats, stand_ins or {})
    rows = frame.height
    if evaluated.any():
        values, logged = _parted(values, logged, evaluated)
    if values and len(logged) < len(values):
        builder.columns(values, logged)
        return 0
    filled = np.any(list(logged.values()), axis=0) if values else np.zeros(rows, dtype=np.bool_)
    builder.columns(
        {name: column[filled] for name, column in values.items()},
        {name: mask[filled] for name, mask in logged.items()},
    )
    return rows - int(filled.sum())


def _numbers_in(frame: pl.DataFrame) -> tuple[dict[str, pl.Series], NDArray[np.bool_]] | None:
    """Return the columns of numbers, and which rows a text tells to be of evaluation, shape (rows,).

    None where a text may spell a number, or where two columns have one name.
    """
    numbers: dict[str, pl.Series] = {}
    evaluated = np.zeros(frame.height, dtype=np.bool_)
    for name, column in _leaves(frame):
        if column.dtype.is_numeric():
            if name in numbers:
                return None
            numbers[name] = column.cast(pl.Float64, strict=False)
        elif _may_spell_numbers(column):
            return None
        elif column.dtype == pl.String and tells_kind(name):
            evaluated |= _of_evaluation(column)
    own = [name for name in numbers if named_of_evaluation(name) != name]
    if evaluated.any() and any(named_of_evaluation(name) in numbers for name in own):
        return None
    return numbers, evaluated


def _leaves(frame: pl.DataFrame, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, pl.Series]]:
    for column in frame.iter_columns():
        if isinstance(column.dtype, pl.Struct):
            if depth < MAX_DEPTH:
                inside = prefix if column.name in ENVELOPES else f"{prefix}{column.name}/"
                yield from _leaves(column.struct.unnest(), inside, depth + 1)
        else:
            yield prefix + column.name, column


def _of_evaluation(column: pl.Series) -> NDArray[np.bool_]:
    """Return in which rows a text tells that they are of evaluation, shape (rows,)."""
    telling = [text for text in column.unique().to_list() if text is not None and phase_in(text) == "eval"]
    return np.asarray(column.is_in(telling).fill_null(value=False).to_numpy())


def _parted(
    values: Mapping[str, Floats], logged: Mapping[str, NDArray[np.bool_]], evaluated: NDArray[np.bool_]
) -> tuple[dict[str, Floats], dict[str, NDArray[np.bool_]]]:
    """Return the columns of some rows of training and some of evaluation, those of evaluation under its names."""
    parted: dict[str, Floats] = {}
    where: dict[str, NDArray[np.bool_]] = {}
    everywhere = np.ones(len(evaluated), dtype=np.bool_)
    for name, column in values.items():
        held, own = logged.get(name, everywhere), named_of_evaluation(name)
        masks = {name: held} if own == name else {name: held & ~evaluated, own: held & evaluated}
        for one, mask in masks.items():
            if mask.any():
                parted[one], where[one] = column, _shared(mask, where.values())
    return parted, where


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
