"""What a program holds in memory → a `Run`: a DataFrame, a mapping of columns, or records.

Records with different keys are read as those of a JSON log are: a key that is not there was not logged, NaN is a value.
A table has one mark for both, be it a DataFrame, columns, or records with the same keys. There the rows around a NaN
decide, and in doubt it was not logged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.documents import take_document
from mldebug_mcp.logs.kinds import concluded
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.grammar import given_names
from mldebug_mcp.logs.names.quantities import PLACES
from mldebug_mcp.logs.run import Run, require_logged

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

# Values of a Python program as a JSON document would hold them.


def plain_record(record: Mapping[Any, object]) -> dict[str, object]:
    """Return a record with plain values under names that are text."""
    return {str(key): plain_value(value) for key, value in record.items()}


def plain_value(value: object) -> object:
    """Return a number of numpy, torch or decimal as that number; None for whole arrays and objects."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return plain_record(value)
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        return cast("Any", value).tolist() if math.prod(value.shape) == 1 else None
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value] if len(value) == 1 else None
    try:
        return float(cast("Any", value))  # Decimal, Fraction
    except (TypeError, ValueError):
        return None


# A pandas DataFrame → one of polars, with NaN told from what was not logged.
#
# A DataFrame has one mark for both. Files, records of different keys and polars have two; here the rows beside one
# decide, and in doubt a cell was not logged: a NaN that is none would accuse a sound run.

Flags: TypeAlias = "NDArray[np.bool_]"

MIN_SHARE_OF_ROWS = 0.75
"""Share of the rows in which a metric has to stand so that a row without it means a gap.
Chosen: above a half, as an evaluation in every other epoch has."""
MAX_CLOSING_ROWS = 3
"""Rows at the end that hold nothing but places and clocks: so few are what a logger writes when it closes (chosen)."""


def polars_frame(frame: pd.DataFrame, note: Callable[[str], None]) -> pl.DataFrame:
    """Return the table with nulls where nothing was logged; an index with a name is a column, too.

    `note` takes what was guessed.
    """
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    logged = ~frame.isna().to_numpy()
    floats = np.array([isinstance(kind, np.dtype) and kind.kind == "f" for kind in frame.dtypes], dtype=np.bool_)
    names = _distinct(frame)
    values = _are_values(logged, floats, np.array([_is_place(name) for name in names], dtype=np.bool_))
    missing = int(np.count_nonzero(~logged & ~values & floats))
    if missing:
        note(_missing_note("DataFrame", missing, int(np.count_nonzero(values))))
    is_logged = logged | values
    import polars as pl

    return pl.DataFrame([_series(name, frame.iloc[:, at], is_logged[:, at]) for at, name in enumerate(names)])


def _missing_note(table: str, missing: int, values: int) -> str:
    return (
        f"{counted(missing, 'NaN cell')} of the {table} taken for not logged, {values} for NaN; "
        "records (dicts) without the keys that were not logged tell them apart"
    )


def _without_padding(columns: Mapping[str, list[Any]], note: Callable[[str], None]) -> Mapping[str, list[Any]]:
    """Return columns of one length with None for each NaN that only fills a row, as lists of one length need.

    Unlike in a DataFrame, which a logger may end with empty rows, a row without any measurement has its NaN measured.
    """
    nan = np.array([[isinstance(cell, float) and math.isnan(cell) for cell in cells] for cells in columns.values()]).T
    if not nan.any():
        return columns
    logged = ~nan & np.array([[cell is not None for cell in cells] for cells in columns.values()]).T
    places = np.array([_is_place(name) for name in columns], dtype=np.bool_)
    usual = logged.mean(axis=0) >= MIN_SHARE_OF_ROWS
    empty = ~(logged & ~places).any(axis=1)
    padding = nan & ~_are_values(logged, np.any(nan, axis=0, keepdims=True)[0], places) & ~(empty[:, None] & usual)
    if missing := int(np.count_nonzero(padding)):
        note(_missing_note("table", missing, int(np.count_nonzero(nan)) - missing))
    return {
        name: [None if fills else cell for cell, fills in zip(cells, padding[:, at].tolist(), strict=True)]
        for at, (name, cells) in enumerate(columns.items())
    }


def _distinct(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns, those of several levels as `outer/inner`, a second of one name numbered."""
    counts: Counter[str] = Counter()
    names = []
    columns: list[object] = list(frame.columns)
    for column in columns:
        name = "/".join(map(str, column)) if isinstance(column, tuple) else str(column)
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name}.{counts[name]}")
    return names


def _series(name: str, column: pd.Series[Any], logged: Flags) -> pl.Series:
    import polars as pl

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu":
        series = pl.Series(name, column.to_numpy(np.float64))
        return series if logged.all() else pl.select(pl.when(pl.Series(logged)).then(series).alias(name)).to_series()
    cells = zip(column.tolist(), logged.tolist(), strict=True)
    return pl.Series(name, [plain_value(cell) if is_logged else None for cell, is_logged in cells], strict=False)


def _is_place(name: str) -> bool:
    role = role_of(name)
    return role is not None and role.quantity in PLACES


def _are_values(logged: Flags, floats: Flags, places: Flags) -> Flags:
    """Return which NaN are values, shape (rows, columns).

    Those of a metric that stands in nearly all rows of its kind, where something else was measured that is measured
    with it; where nothing was, those at the end.
    """
    found = np.zeros_like(logged)
    measured = logged & ~places
    counts = measured.astype(np.float32)
    never_together = (counts.T @ counts == 0) & measured.any(axis=0)
    anything: Flags = np.asarray(measured.any(axis=1))
    for column in np.flatnonzero(floats & ~places & ~logged.all(axis=0)).tolist():
        own = logged[:, column]
        if not own.any():  # something wrote a NaN each time
            found[:, column] = True
            continue
        other_kind: Flags = np.asarray(measured[:, never_together[column]].any(axis=1))
        last = int(np.flatnonzero(own)[-1])
        alike = ~other_kind[: last + 1] & anything[: last + 1]
        if np.count_nonzero(own) < MIN_SHARE_OF_ROWS * np.count_nonzero(alike):
            continue
        closing = ~anything
        closing[:last] = False
        closing &= np.count_nonzero(closing) >= MAX_CLOSING_ROWS
        found[:, column] = ~own & ((anything & ~other_kind) | closing)
    return found


# What a program holds in memory → a `Run`: a DataFrame, a mapping of columns, or records.

Table: TypeAlias = "pd.DataFrame | pl.DataFrame"
Data: TypeAlias = "Table | Mapping[str, Any] | Iterable[Mapping[str, Any]]"

IN_MEMORY = "DATA_IN_MEMORY"
"""The path of such a run: a placeholder, so that no call is offered that would look for it on a disk."""
ALLOWED = "a path, a DataFrame, a dict of lists, or records (dicts such as {'step': 1, 'loss': 2.3})"


def run_of_data(data: Data, names: Mapping[str, str] | None = None) -> Run:
    """Make a run of data.

    Args:
        data: A DataFrame of pandas or polars with a row per record; a mapping of columns such as the `history` of
            Keras; or records in the order in which they were logged.
        names: What names mean that do not say it, such as {"L": "loss"}.

    Raises:
        InputError: it is of another type, holds no metrics, or has nothing of a name that `names` explains.
    """
    builder = RunBuilder()
    with given_names(names or {}):
        _take(data, builder)
        run = builder.build(IN_MEMORY)
    if not run.series:
        raise InputError(f"no metrics in the {builder.formats[0]}: no number stands under a name; give {ALLOWED}")
    require_logged(names or {}, run, IN_MEMORY)
    return concluded(run)


def _take(data: object, builder: RunBuilder) -> None:
    """Put the records of data into a builder, and say in which form they came."""
    if hasattr(data, "iter_rows"):
        builder.formats.append("DataFrame")
        _take_frame(cast("pl.DataFrame", data), builder)
    elif hasattr(data, "isna") and hasattr(data, "columns"):
        builder.formats.append("DataFrame")
        _take_frame(polars_frame(cast("pd.DataFrame", data), builder.note), builder)
    elif isinstance(data, Mapping):
        builder.formats.append("columns")
        _take_columns(_columns(data), builder)
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes):
        builder.formats.append("records")
        for record in _distinguished(list(_records(data)), builder.note):
            builder.record(record)
    else:
        raise InputError(f"a run cannot be read from {type(data).__name__}; give {ALLOWED}")


def _records(data: Iterable[object]) -> Iterator[dict[str, object]]:
    for number, record in enumerate(data, start=1):
        if not isinstance(record, Mapping):
            raise InputError(f"record {number} is not a dict but {type(record).__name__}; give {ALLOWED}")
        yield plain_record(record)


def _distinguished(records: list[dict[str, object]], note: Callable[[str], None]) -> Iterable[dict[str, object]]:
    """Return records whose NaN are values: where all have the same keys, they are the rows of a table."""
    names = records[0].keys() if records else {}
    if any(record.keys() != names for record in records):
        return records
    columns = _without_padding({name: [record[name] for record in records] for name in names}, note)
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _take_frame(frame: pl.DataFrame, builder: RunBuilder) -> None:
    from mldebug_mcp.logs.formats.frames import add_frame

    if add_frame(builder, frame) is None:  # numbers spelled as text
        for row in frame.iter_rows(named=True):
            builder.record(row)


def _columns(data: Mapping[Any, object]) -> dict[str, object]:
    """Return columns, nested or not, as lists of plain values."""
    return {str(key): _columns(value) if isinstance(value, Mapping) else _column(value) for key, value in data.items()}


def _column(values: object) -> object:
    if hasattr(values, "tolist") and len(getattr(values, "shape", ())) == 1:
        return cast("Any", values).tolist()
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [plain_value(value) for value in values]
    return plain_value(values)


def _take_columns(columns: Mapping[str, object], builder: RunBuilder) -> None:
    """Give columns to the builder; those of one length are aligned, and None is not logged."""
    lists = [column for column in columns.values() if isinstance(column, list)]
    if not lists or len(lists) < len(columns) or len({len(list_) for list_ in lists}) > 1:
        take_document(columns, builder)
        return
    for cells in zip(*_without_padding(cast("Mapping[str, list[Any]]", columns), builder.note).values(), strict=True):
        builder.record(dict(zip(columns, cells, strict=True)))
