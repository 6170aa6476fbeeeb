"""TensorBoard event files: scalars in both encodings (simple_value and tensors), from one file or several of one run.

`tfrecord` finds the messages in a file, `event_scalars` reads them, and `points` makes records of the points.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.event_scalars import Scalars
from mldebug_mcp.logs.points import add_points
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.logs.tfrecord import CHECKED_BYTES, Records, equally_long
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

NAME = "tensorboard"

_BLOCK_BYTES = 8 * 1024 * 1024


def matches(file: LogFile) -> bool:
    """Its first record has the framing of an event file."""
    return file.binary == NAME


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the scalars of one event file."""
    read_together([file], builder)


def read_together(files: Sequence[LogFile], builder: RunBuilder) -> None:
    """Read the scalars of the event files of one run; which was written when is told by the clock in them."""
    scalars = Scalars()
    for file in files:
        _read_file(file, scalars, builder)
        scalars.end_of_file()
    add_points(builder, scalars.points())


def _read_file(file: LogFile, scalars: Scalars, builder: RunBuilder) -> None:
    records = Records()
    wrong, scalars.damaged = 0, 0
    with file.path.open("rb") as stream:
        rest = b""
        while not records.broken and (data := stream.read(_BLOCK_BYTES)):
            checkpoint(f"reading {shorten(file.path.name, 60)}: {stream.tell():,} of {file.size:,} bytes")
            whole = rest + data
            first = records.count
            starts, lengths, done = records.find(whole)
            wrong += int(np.count_nonzero(lengths <= CHECKED_BYTES))
            for numbers, rows in equally_long(whole, starts, lengths):
                wrong -= len(numbers)
                scalars.take_alike(numbers + first, rows)
            for number in np.flatnonzero(lengths > CHECKED_BYTES).tolist():
                scalars.take(first + number, whole[starts[number] : starts[number] + lengths[number]])
            rest = whole[done:]
            stream.seek(records.ahead, io.SEEK_CUR)
    name = shorten(file.path.name, 100)
    if records.broken:
        builder.note(f"{name}: broken after {records.count} records: the rest of it cannot be read")
    elif rest:
        builder.note(f"{name}: the last record is cut off: it is still being written, or the run was killed")
    if wrong + scalars.damaged:
        builder.note(f"{name}: skipped {wrong + scalars.damaged} damaged record(s)")
