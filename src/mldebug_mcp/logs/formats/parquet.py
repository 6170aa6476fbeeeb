"""Parquet: a table of metrics, such as a history exported from a tracker."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mldebug_mcp.core.access import library_path
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import seconds_left
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.formats.frames import add_frame
from mldebug_mcp.logs.log_file import LogFile

if TYPE_CHECKING:
    import polars as pl

NAME = "parquet"

_WORKER = Path(__file__).with_name("parquet_worker.py")
_SECONDS = 300.0
_START_SECONDS = 2.0
"""Processor time to import the library that decodes."""
_ROWS_AT_A_TIME = 500_000
_MAX_CELLS = 2_000_000_000
_MANY_CELLS = 10_000_000
_CELLS_PER_BYTE = 20
"""A small file can stand for a huge table: runs of one value take no space. Up to `_MANY_CELLS` that does no harm."""
_MAX_COLUMNS = 5000
_MAX_PROBLEM = 1000


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the rows in order; columns without numbers are passed over."""
    empty = 0
    for frame in _frames(file):
        without = add_frame(builder, frame)
        if without is None:  # numbers spelled as text
            without = sum(not builder.record(row) for row in frame.iter_rows(named=True))
        empty += without
    if empty:
        builder.note(f"skipped {empty} row(s) without a number")


def _frames(file: LogFile) -> Iterator[pl.DataFrame]:
    """Yield the table by pieces, as `parquet_worker` decodes them."""
    import polars as pl

    cells = min(_MAX_CELLS, max(_MANY_CELLS, _CELLS_PER_BYTE * file.size))
    with file.stream() as stream:
        place = "/proc/self/fd/0" if library_path(stream).startswith("/proc") else str(file.path)
        seconds = seconds_left()
        allowed = int(_SECONDS if seconds is None else seconds + _START_SECONDS)
        limits = map(str, (cells, _MAX_COLUMNS, _ROWS_AT_A_TIME, allowed))
        worker = subprocess.Popen(  # noqa: S603 - a script of our own
            [sys.executable, "-P", str(_WORKER), place, *limits],
            stdin=stream, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    timer = threading.Timer(_SECONDS, worker.kill)
    timer.start()
    try:
        assert worker.stdout is not None  # noqa: S101 - it was asked for
        while head := worker.stdout.read(8):
            (length,) = struct.unpack("<Q", head)
            if not length:
                problem = worker.stdout.read(_MAX_PROBLEM).decode("utf-8", errors="replace")
                raise InputError(f"{file.name}: {shorten(problem, 160)}")
            yield pl.read_ipc_stream(worker.stdout.read(length))
        if worker.wait():
            raise InputError(
                f"{file.name}: a damaged parquet file, or one too large: decoding it ended early; write it again"
            )
    finally:
        timer.cancel()
        worker.kill()
        worker.communicate()
