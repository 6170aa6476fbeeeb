"""Arrow record batches → tables, without copying where the numbers lie one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from mldebug_mcp.batch.ragged import Ragged
from mldebug_mcp.batch.table import Column, Table
from mldebug_mcp.errors import MissingExtraError

Foreign: TypeAlias = Any
"""An object of pyarrow, which is optional and has no types."""

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of columns that are looked at together. Smaller parts cost more calls, larger ones more memory."""

MANY_ROWS = 1_000_000
ROWS_PER_BYTE = 100
"""More rows than this are not a data set. Chosen by hand: each row holds at least a token, compressed or not."""


def require() -> None:
    """Raise MissingExtraError if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtraError("pyarrow", "batch") from None


def check_rows(rows: int, file: BinaryIO) -> None:
    """Raise ValueError if a file claims far more rows than data sets have for its bytes: empty rows take none."""
    size = os.fstat(file.fileno()).st_size
    if rows > MANY_ROWS + ROWS_PER_BYTE * size:
        raise ValueError(f"{rows:,} rows in {size:,} bytes")


def pieces_of(batch: Foreign) -> Iterator[Foreign]:
    """Yield a record batch in parts of at most about `MOST_BYTES`."""
    rows = min(MANY_ROWS, max(1, batch.num_rows * MOST_BYTES // max(batch.nbytes, 1)))
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def table_of(piece: Foreign) -> Table:
    """Return a record batch as a table."""
    return Table({str(name): _column(piece.column(number)) for number, name in enumerate(piece.schema.names)})


def _column(column: Foreign) -> Column:
    import pyarrow as pa

    kind = column.type
    if column.null_count:
        return list(column.to_pylist())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = kind.value_type
        if pa.types.is_integer(values) or pa.types.is_boolean(values):
            return _ragged(column)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return list(column.to_pylist())


def _ragged(column: Foreign) -> Column:
    offsets = np.asarray(column.offsets.to_numpy(), np.int64)
    values = column.values
    if values.null_count:
        return list(column.to_pylist())
    first, last = int(offsets[0]), int(offsets[-1])
    flat = np.asarray(values.slice(first, last - first).to_numpy(zero_copy_only=False))
    return Ragged(flat.astype(np.int8) if flat.dtype == np.bool_ else flat, offsets - first)
