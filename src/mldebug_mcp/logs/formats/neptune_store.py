"""The operations of a run of neptune-scale, in the SQLite database of its offline mode: a message for each.

Source: neptune_api/proto/neptune_pb/ingest/v1/pub/ingest.proto, as neptune-scale 0.30 writes it.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator

from mldebug_mcp.core import protobuf
from mldebug_mcp.core.protobuf import Field
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.formats.long_columns import LongTable

FORMAT = "neptune"
COLUMNS = frozenset({"operation_type", "operation"})
TABLE = "run_operations"

_UPDATE = 0
_STEP_FIELD, _ASSIGN, _APPEND = 1, 4, 8
_KEY, _ENTRY = 1, 2
_FLOAT, _INTEGER, _BOOLEAN, _TEXT = 1, 3, 4, 5
_MILLIONTHS = 1e-6


def read(database: sqlite3.Connection, builder: RunBuilder) -> None:
    """Read the metrics and configurations of all updates."""
    builder.formats[-1:] = [FORMAT]
    table, settings, damaged = LongTable(), dict[str, object](), 0
    query = "SELECT operation FROM run_operations WHERE operation_type = ? ORDER BY sequence_id"
    for (operation,) in database.execute(query, (_UPDATE,)):
        try:
            _take(bytes(operation), table, settings)
        except (ValueError, TypeError, struct.error):
            damaged += 1
    table.give(builder)
    builder.configure(settings, FORMAT)
    if damaged:
        builder.note(f"{damaged} operation(s) of the database are damaged and left out")


def _take(data: bytes, table: LongTable, settings: dict[str, object]) -> None:
    step = 0.0
    for part in protobuf.fields(data, 0, len(data)):
        if part.wire != protobuf.BYTES:
            continue
        if part.number == _STEP_FIELD:
            step = _step(data, part)
        elif part.number == _ASSIGN:
            settings.update(_entry(data, part))
        elif part.number == _APPEND:
            for name, value in _entry(data, part):
                if isinstance(value, float):
                    table.add(name, step, value)


def _step(data: bytes, message: Field) -> float:
    parts = {part.number: part.value for part in protobuf.fields(data, message.start, message.end)}
    return parts.get(1, 0) + _MILLIONTHS * parts.get(2, 0)


def _entry(data: bytes, message: Field) -> Iterator[tuple[str, object]]:
    """Yield the name and the value of an entry of a map, nothing for one of another kind, such as text."""
    name, value = "", None
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _KEY and part.wire == protobuf.BYTES:
            name = protobuf.text(data, part)
        elif part.number == _ENTRY and part.wire == protobuf.BYTES:
            value = _value(data, part)
    if name and value is not None:
        yield name, value


def _value(data: bytes, message: Field) -> object:
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _FLOAT and part.wire == protobuf.FIXED64:
            return float(struct.unpack("<d", data[part.start : part.end])[0])
        if part.number == _INTEGER and part.wire == protobuf.VARINT:
            return protobuf.signed(part.value)
        if part.number == _BOOLEAN and part.wire == protobuf.VARINT:
            return bool(part.value)
        if part.number == _TEXT and part.wire == protobuf.BYTES:
            return protobuf.text(data, part)
    return 0.0
