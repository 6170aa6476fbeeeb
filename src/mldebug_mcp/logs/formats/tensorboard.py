"""TensorBoard event files: scalars in both encodings (simple_value and tensors), from one file or several of one run.

`tfrecord` finds the messages in a file, `event_scalars` reads them, and `points` makes records of the points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.decoding.event_scalars import Scalars
from mldebug_mcp.logs.decoding.points import add_points
from mldebug_mcp.logs.decoding.tfrecord import CHECKED_BYTES, LARGE_BYTES, Records, equally_long
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

NAME = "tensorboard"


def matches(file: LogFile) -> bool:
    """Its first record has the framing of an event file."""
    return file.binary == NAME


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the scalars of one event file."""
    read_together([file], builder)


def follow(file: LogFile, builder: RunBuilder) -> EventFile:
    """Return what reads the events as they come."""
    del builder
    return EventFile(file.path.name, Scalars())


def read_together(files: Sequence[LogFile], builder: RunBuilder) -> None:
    """Read the scalars of the event files of one run; which was written when is told by the clock in them."""
    scalars = Scalars()
    for file in files:
        events = EventFile(file.path.name, scalars)
        with file.stream() as stream:
            at, size = 0, file.size
            while at < size and (taken := events.take(stream.read(min(events.block_bytes, size - at)))):
                checkpoint(f"reading {shorten(file.path.name, 60)}: {at:,} of {size:,} bytes")
                at += taken
                stream.seek(at)
        events.remark(builder, cut_off=at != size)
        for problem in file.problems:
            builder.note(problem)
        scalars.end_of_file()
    builder.configure(scalars.settings())
    add_points(builder, scalars.points())


class EventFile:
    """What has been read of one event file so far.

    Args:
        name: Its name, for the notes.
        scalars: Where the points go.
    """

    block_bytes = 2 * LARGE_BYTES

    def __init__(self, name: str, scalars: Scalars) -> None:
        self._name = shorten(name, 100)
        self._scalars = scalars
        self._records = Records()
        self._wrong = -scalars.damaged

    def take(self, data: bytes) -> int:
        """Read the whole records at the beginning of `data`; return where the next one begins, 0 if there is none."""
        records = self._records
        if records.broken:
            return 0
        first = records.count
        starts, lengths, done = records.find(data)
        self._wrong += int(np.count_nonzero(lengths <= CHECKED_BYTES))
        for numbers, rows in equally_long(data, starts, lengths):
            self._wrong -= len(numbers)
            self._scalars.take_alike(numbers + first, rows)
        for number in np.flatnonzero(lengths > CHECKED_BYTES).tolist():
            self._scalars.take(first + number, data[starts[number] : starts[number] + lengths[number]])
        return done + records.ahead

    def tell(self, builder: RunBuilder) -> None:
        """Give the points so far to a builder that is thrown away."""
        self.remark(builder, cut_off=False)
        builder.configure(self._scalars.settings())
        add_points(builder, self._scalars.points())

    def remark(self, builder: RunBuilder, *, cut_off: bool) -> None:
        """Say in the notes what could not be read."""
        damaged = self._wrong + self._scalars.damaged
        if self._records.broken:
            builder.note(f"{self._name}: broken after {self._records.count} records: the rest of it cannot be read")
        elif cut_off:
            builder.note(f"{self._name}: the last record is cut off: it is still being written, or the run was killed")
        if damaged:
            builder.note(f"{self._name}: skipped {damaged} damaged record(s)")
