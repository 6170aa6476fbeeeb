"""What a program holds in memory → a `Run`: a DataFrame, a mapping of columns, or records.

Records and columns are read as those of a JSON log are: a key that is not there was not logged, NaN is a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.decoding.documents import take_document
from mldebug_mcp.logs.decoding.pandas_frame import polars_frame
from mldebug_mcp.logs.decoding.plain import plain_record, plain_value
from mldebug_mcp.logs.plan import concluded
from mldebug_mcp.logs.roles.given import given_names
from mldebug_mcp.logs.run import Run, require_logged

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Table: TypeAlias = "pd.DataFrame | pl.DataFrame"
Data: TypeAlias = "Table | Mapping[str, Any] | Iterable[Mapping[str, Any]]"

IN_MEMORY = "DATA_IN_MEMORY"
"""The path of such a run: a placeholder, so that no call is offered that would look for it on a disk."""
ALLOWED = "a path, a DataFrame, a dict of lists, or records (dicts such as {'step': 1, 'loss': 2.3})"


def run_of_data(data: Data, names: Mapping[str, str] | None = None) -> Run:
    """Make a run of data.

    Args:
        data: A DataFrame of pandas or polars with a row per record, a mapping of columns such as the `history` of
            Keras, or records in the order in which they were logged.
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
        for number, record in enumerate(data, start=1):
            if not isinstance(record, Mapping):
                raise InputError(f"record {number} is no dict but {type(record).__name__}; give {ALLOWED}")
            builder.record(plain_record(record))
    else:
        raise InputError(f"a run cannot be read from {type(data).__name__}; give {ALLOWED}")


def _take_frame(frame: pl.DataFrame, builder: RunBuilder) -> None:
    from mldebug_mcp.logs.decoding.frames import add_frame

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
    """Give columns to the builder; those of one length stand beside each other, and None is not logged."""
    lists = [column for column in columns.values() if isinstance(column, list)]
    if not lists or len(lists) < len(columns) or len({len(one) for one in lists}) > 1:
        take_document(columns, builder)
        return
    for cells in zip(*lists, strict=True):
        builder.record(dict(zip(columns, cells, strict=True)))
