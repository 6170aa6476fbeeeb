"""Parquet: a table of metrics, such as a history exported from a tracker."""

from __future__ import annotations

from mldebug_mcp.access import library_path
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.frames import add_frame
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import shorten

NAME = "parquet"

_ROWS_AT_A_TIME = 500_000
_MAX_CELLS = 2_000_000_000
_MANY_CELLS = 50_000_000
_CELLS_PER_BYTE = 100
"""A small file can stand for a huge table: runs of one value take no space. Up to `_MANY_CELLS` that does no harm."""
_MAX_COLUMNS = 5000


def matches(file: LogFile) -> bool:
    """It begins as a parquet file."""
    return file.binary == NAME


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the rows in order; columns without numbers are passed over."""
    import polars as pl

    name = shorten(str(file.path), 200)
    empty = 0
    try:
        with file.stream() as stream:
            table = pl.scan_parquet(library_path(stream), glob=False)
            schema = table.collect_schema()
            rows = int(table.select(pl.len()).collect().item())
            cells = rows * len(schema)
            too_many = cells > min(_MAX_CELLS, max(_MANY_CELLS, _CELLS_PER_BYTE * file.size))
            if too_many or len(schema) > _MAX_COLUMNS:
                raise InputError(
                    f"{name}: {rows:,} rows of {len(schema)} columns are too many; export the metrics alone"
                )
            kept = [
                column
                for column, kind in schema.items()
                if kind.is_numeric() or isinstance(kind, pl.Struct) or kind == pl.String
            ]
            for first in range(0, rows if kept else 0, _ROWS_AT_A_TIME):
                frame = table.select(kept).slice(first, _ROWS_AT_A_TIME).collect()
                without = add_frame(builder, frame)
                if without is None:  # numbers spelled as text
                    without = sum(not builder.record(row) for row in frame.iter_rows(named=True))
                empty += without
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"{name}: a parquet file that cannot be read ({shorten(str(error), 120)})") from None
    if empty:
        builder.note(f"skipped {empty} row(s) without a number")
