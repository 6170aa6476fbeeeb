"""Parquet files, read through pyarrow one record batch at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from mldebug_mcp.batch.columns import Column, Part, Table, packed
from mldebug_mcp.batch.formats.files import files_to_read
from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.core.access import is_folder, library_path, matching, open_input
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.text import shorten

# Arrow record batches → tables, without copying where the numbers lie one after the other.


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


NAME = "parquet"
MOST_ROWS = 16_384


def matches(path: Path, head: bytes) -> bool:
    """A parquet file, or a folder of them."""
    return head.startswith(b"PAR1") or (is_folder(path) and bool(matching(path, ".parquet")))


def rows(path: Path) -> int:
    """Return how many rows the files say that they hold."""
    count = 0
    for file in files_to_read(path, files_in):
        with _opened(file) as opened:
            count += opened.metadata.num_rows
    return count


def files_in(folder: Path) -> list[Path]:
    """Return the files of this format in a folder."""
    return matching(folder, ".parquet")


def tables(path: Path) -> Iterator[Table]:
    """Yield the record batches of the file, or of all files of the folder in order of their names."""
    for part in parts(path):
        yield from part_tables(part)


def parts(path: Path) -> list[Part]:
    """Return groups of rows that lie together, of about `MOST_BYTES` in the files."""
    return packed(((file, _groups(file)) for file in files_to_read(path, files_in)), MOST_BYTES)


def _groups(file: Path) -> list[tuple[int, int]]:
    with _opened(file) as opened:
        about = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
        return [(group.num_rows, group.total_byte_size) for group in about]


def part_tables(part: Part) -> Iterator[Table]:
    """Yield the record batches of a part."""
    with _opened(part.file) as opened:
        groups = range(part.start, part.stop)
        for batch in opened.iter_batches(batch_size=_rows_at_once(opened.metadata), row_groups=groups):
            yield from map(table_of, pieces_of(batch))


@contextmanager
def _opened(file: Path) -> Iterator[Foreign]:
    require()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_input(file) as held, pq.ParquetFile(library_path(held)) as opened:
            check_rows(opened.metadata.num_rows, held)
            yield opened
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(file), 200)}: a broken parquet file ({problem}); write it again") from None


def _rows_at_once(metadata: Foreign) -> int:
    """Return how many rows to read together: files store numbers in about half of what they take in memory."""
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    rows: int = MOST_BYTES // 2 * metadata.num_rows // max(size, 1)
    return max(1, min(MOST_ROWS, rows))
