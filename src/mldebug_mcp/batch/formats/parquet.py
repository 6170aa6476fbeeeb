"""Parquet files, read through pyarrow one record batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mldebug_mcp.access import is_folder, library_path, open_input
from mldebug_mcp.batch.formats.arrow import MOST_BYTES, Foreign, check_rows, pieces_of, require, table_of
from mldebug_mcp.batch.part import Part, packed
from mldebug_mcp.batch.table import Table
from mldebug_mcp.errors import InputError
from mldebug_mcp.folders import matching
from mldebug_mcp.text import shorten

NAME = "parquet"
MOST_ROWS = 16_384


def matches(path: Path, head: bytes) -> bool:
    """A parquet file, or a folder of them."""
    return head.startswith(b"PAR1") or (is_folder(path) and bool(matching(path, ".parquet")))


def rows(path: Path) -> int:
    """Return how many rows the files say that they hold."""
    count = 0
    for file in _files(path):
        with _opened(file) as opened:
            count += opened.metadata.num_rows
    return count


def _files(path: Path) -> list[Path]:
    return matching(path, ".parquet") if is_folder(path) else [path]


def tables(path: Path) -> Iterator[Table]:
    """Yield the record batches of the file, or of all files of the folder in order of their names."""
    for part in parts(path):
        yield from part_tables(part)


def parts(path: Path) -> list[Part]:
    """Return groups of rows that lie together, of about `MOST_BYTES` in the files."""
    found: list[Part] = []
    rows = 0
    for file in _files(path):
        with _opened(file) as opened:
            about = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
            groups = [(group.num_rows, group.total_byte_size) for group in about]
        found += packed(file, groups, rows, MOST_BYTES)
        rows += sum(count for count, _ in groups)
    return found


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
