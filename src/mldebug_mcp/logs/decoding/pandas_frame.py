"""A pandas DataFrame → one of polars, with NaN told from what was not logged.

A DataFrame has one mark for both. Files, records and polars have two; here the rows beside one decide, and in doubt a
cell was not logged: a NaN that is none would accuse a sound run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.decoding.plain import plain_value
from mldebug_mcp.logs.roles import Quantity, role_of
from mldebug_mcp.text import counted

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Flags: TypeAlias = "NDArray[np.bool_]"

DENSE = 0.75
"""Share of the rows in which a metric has to stand so that one without it is told from one that does not measure it.
Chosen: above a half, as an evaluation in every other epoch has."""
CLOSING = 3
"""Rows at the end that hold nothing but places and clocks: so few are what a logger writes when it closes (chosen)."""
_PLACES = frozenset({
    Quantity.STEP, Quantity.EPOCH, Quantity.EPISODE, Quantity.TOKENS_SEEN, Quantity.SAMPLES_SEEN, Quantity.ELAPSED,
    Quantity.TIMESTAMP,
})  # fmt: skip
"""What stands in each row, whatever is measured there."""


def polars_frame(frame: pd.DataFrame, note: Callable[[str], None]) -> pl.DataFrame:
    """Return the table with nulls where nothing was logged; an index with a name is a column, too.

    Args:
        frame: One row per record.
        note: Takes what was guessed.
    """
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    logged = ~frame.isna().to_numpy()
    floats = np.array([isinstance(kind, np.dtype) and kind.kind == "f" for kind in frame.dtypes], dtype=np.bool_)
    names = _distinct(frame)
    values = _are_values(logged, floats, np.array([_is_place(name) for name in names], dtype=np.bool_))
    missing = int(np.count_nonzero(~logged & ~values & floats))
    if missing:
        note(
            f"{counted(missing, 'NaN cell')} of the DataFrame taken for not logged, {np.count_nonzero(values)} for "
            "NaN; records (dicts) without the keys that were not logged tell them apart"
        )
    held = logged | values
    import polars as pl

    return pl.DataFrame([_series(name, frame.iloc[:, at], held[:, at]) for at, name in enumerate(names)])


def _distinct(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns, those of several levels as `outer/inner`, a second of one name numbered."""
    seen: Counter[str] = Counter()
    names = []
    columns: list[object] = list(frame.columns)
    for column in columns:
        name = "/".join(map(str, column)) if isinstance(column, tuple) else str(column)
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return names


def _series(name: str, column: pd.Series[Any], held: Flags) -> pl.Series:
    import polars as pl

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu":
        series = pl.Series(name, column.to_numpy(np.float64))
        return series if held.all() else pl.select(pl.when(pl.Series(held)).then(series).alias(name)).to_series()
    cells = zip(column.tolist(), held.tolist(), strict=True)
    return pl.Series(name, [plain_value(cell) if is_held else None for cell, is_held in cells], strict=False)


def _is_place(name: str) -> bool:
    role = role_of(name)
    return role is not None and role.quantity in _PLACES


def _are_values(logged: Flags, floats: Flags, places: Flags) -> Flags:
    """Return which NaN are values, shape (rows, columns).

    Those of a metric that stands in nearly all rows of its kind, where something else was measured that is measured
    with it; where nothing was, those at the end.

    Args:
        logged: Which cells are not NaN, shape (rows, columns).
        floats: Which columns hold floats, shape (columns,).
        places: Which columns say where a row stands, shape (columns,).
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
        if np.count_nonzero(own) < DENSE * np.count_nonzero(alike):
            continue
        closing = ~anything
        closing[:last] = False
        closing &= np.count_nonzero(closing) >= CLOSING
        found[:, column] = ~own & ((anything & ~other_kind) | closing)
    return found
