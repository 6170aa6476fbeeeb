"""Long tables: rows of the name of a metric, a step and a value, whatever holds them, → the points of each metric."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

import numpy as np

from mldebug_mcp.core import protobuf
from mldebug_mcp.logs.builder import MAX_METRICS, RunBuilder
from mldebug_mcp.logs.documents import Points, add_points
from mldebug_mcp.logs.log_file import LogFile

NO_STEP = frozenset({-(2**31), -(2**63)})
"""Steps that stand for none: ClearML writes a single value at the smallest integer."""


class LongTable:
    """Gathers rows in file order."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[list[float], list[float], list[float]]] = {}
        self._count = 0
        self.single: dict[str, float] = {}
        self.left_out = 0

    def add(self, name: str, step: float, value: float, time: float | None = None) -> None:
        """Take a row, by default as one written after those before it.

        A step that stands for none makes the value a result of the run, and no point of a curve.
        """
        if step in NO_STEP:
            self.single[name] = value
            return
        if name not in self._rows and len(self._rows) >= MAX_METRICS:
            self.left_out += 1
            return
        times, steps, values = self._rows.setdefault(name, ([], [], []))
        times.append(self._count if time is None else time)
        steps.append(step)
        values.append(value)
        self._count += 1

    def give(self, builder: RunBuilder) -> None:
        """Put the metrics into the builder, and name what is not a curve."""
        points = {
            name: Points(*(np.array(axis, dtype=np.float64) for axis in axes)) for name, axes in self._rows.items()
        }
        add_points(builder, points)
        if self.single:
            shown = ", ".join(list(self.single)[:5])
            builder.note(f"{len(self.single)} value(s) were logged without a step and are no curve: {shown}")
        if self.left_out:
            builder.note(f"left out {self.left_out:,} row(s) of more than {MAX_METRICS} metrics")


Row = tuple[str, float, float]
"""The name of a metric, its step and its value."""


def read_messages(
    file: LogFile,
    builder: RunBuilder,
    records: Iterable[bytes | None],
    number: int,
    row_of: Callable[[bytes, protobuf.Field], Row | None],
) -> None:
    """Read the rows that stand in messages of protocol buffers; what is damaged is counted.

    Args:
        file: Where they are from.
        builder: Where the metrics go.
        records: The messages, None for one that is damaged.
        number: The field of a message that holds a row.
        row_of: Returns the row in such a field, None if it holds none; raises ValueError where it is broken.
    """
    table = LongTable()
    damaged = 0
    for record in records:
        try:
            damaged += record is None
            for part in protobuf.fields(record or b"", 0, len(record or b"")):
                if part.number == number and part.wire == protobuf.BYTES and (row := row_of(record or b"", part)):
                    table.add(*row)
        except (ValueError, struct.error):
            damaged += 1
    table.give(builder)
    if damaged:
        builder.note(f"{file.path.name}: {damaged} record(s) damaged or cut off are left out")
