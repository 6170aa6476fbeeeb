"""Decodes the parquet file on its standard input, in a process of its own.

    python -P parquet_worker.py PLACE MOST_CELLS MOST_COLUMNS ROWS_AT_A_TIME SECONDS

A damaged file can make the library end its process, and a server must not end. What is written to the
standard output is a length in eight bytes, then a table as an Arrow stream, again and again; or a length of zero, then
a line that says what is wrong. A standalone script: it imports nothing of this package.
"""

from __future__ import annotations

import contextlib
import io
import struct
import sys

import polars as pl

MEMORY = 16 << 30
"""Bytes of address space: more than any table within the limits takes."""


def main(place: str, most_cells: int, most_columns: int, rows_at_a_time: int) -> None:
    """Write the tables, or what is wrong."""
    try:
        table = pl.scan_parquet(place, glob=False)
        schema = table.collect_schema()
        rows = int(table.select(pl.len()).collect().item())
        if rows * len(schema) > most_cells or len(schema) > most_columns:
            _say(f"{rows:,} rows of {len(schema)} columns are too many; export the metrics alone")
            return
        kept = [
            column
            for column, kind in schema.items()
            if kind.is_numeric() or isinstance(kind, pl.Struct) or kind == pl.String
        ]
        for first in range(0, rows if kept else 0, rows_at_a_time):
            written = io.BytesIO()
            table.select(kept).slice(first, rows_at_a_time).collect().write_ipc_stream(written)
            sys.stdout.buffer.write(struct.pack("<Q", len(written.getbuffer())) + written.getbuffer())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        _say(f"a parquet file that cannot be read ({error})")


def _say(problem: str) -> None:
    sys.stdout.buffer.write(struct.pack("<Q", 0) + problem.encode("utf-8", errors="replace"))


if __name__ == "__main__":
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        seconds = int(sys.argv[5])
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    main(sys.argv[1], *map(int, sys.argv[2:5]))
