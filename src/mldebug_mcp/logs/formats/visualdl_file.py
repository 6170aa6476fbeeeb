"""The `vdlrecords.*.log` of VisualDL: messages, each behind its length, with the values that were added together.

Source: written by visualdl 2.5.3. A value holds its step (1), its tag (2), its time (3) and, for a scalar, its number
as a float (4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from mldebug_mcp.core import protobuf
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.formats.long_columns import Row, read_messages
from mldebug_mcp.logs.log_file import LogFile

NAME = "visualdl"

PIECE = 1 << 20
MAX_RECORD = 1 << 24
"""Bytes of a record: images and embeddings are passed over, and no more is kept of a broken length."""
_LENGTH = struct.Struct("<Q")
_VALUES = 1
_STEP, _TAG, _SCALAR = 1, 2, 4


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read every scalar; images, histograms and the like are passed over."""
    read_messages(file, builder, _records(file.pieces(PIECE)), _VALUES, _row)


def _records(pieces: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield the records, and None for what is cut off or broken at the end."""
    data = b""
    for piece in pieces:
        data += piece
        at = 0
        while len(data) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(data, at)
            if size > MAX_RECORD:
                yield None
                return
            if len(data) - at - _LENGTH.size < size:
                break
            at += _LENGTH.size
            yield data[at : at + size]
            at += size
        data = data[at:]
    if data:
        yield None


def _row(data: bytes, value: protobuf.Field) -> Row | None:
    step, tag, number = 0, "", None  # a field that is 0 is not written
    for part in protobuf.fields(data, value.start, value.end):
        if part.number == _STEP and part.wire == protobuf.VARINT:
            step = protobuf.signed(part.value)
        elif part.number == _TAG and part.wire == protobuf.BYTES:
            tag = protobuf.text(data, part)
        elif part.number == _SCALAR and part.wire == protobuf.FIXED32:
            number = float(struct.unpack("<f", data[part.start : part.end])[0])
    return (tag, step, number) if tag and number is not None else None
