"""The `.swanlab` file of a run of SwanLab: framed as W&B's file is, with a message for each scalar.

Source: written by swanlab 0.10.3. A record holds field 13 for a scalar: its key, its step, its time and its value.
"""

from __future__ import annotations

import struct

from mldebug_mcp.core import protobuf
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.formats.long_columns import Row, read_messages
from mldebug_mcp.logs.formats.wandb_file import BLOCK, records
from mldebug_mcp.logs.log_file import LogFile

NAME = "swanlab"

_SCALAR = 13
_KEY, _STEP, _VALUE = 1, 2, 5
_NUMBER = 1


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read every scalar; media and console lines are passed over."""
    read_messages(file, builder, records(file.pieces(BLOCK)), _SCALAR, _row)


def _row(data: bytes, scalar: protobuf.Field) -> Row | None:
    name, step, value = "", 0, 0.0  # a field that is 0 is not written
    for part in protobuf.fields(data, scalar.start, scalar.end):
        if part.number == _KEY and part.wire == protobuf.BYTES:
            name = protobuf.text(data, part)
        elif part.number == _STEP and part.wire == protobuf.VARINT:
            step = protobuf.signed(part.value)
        elif part.number == _VALUE and part.wire == protobuf.BYTES:
            value = _number(data, part)
    return (name, step, value) if name else None


def _number(data: bytes, message: protobuf.Field) -> float:
    for part in protobuf.fields(data, message.start, message.end):
        if part.number == _NUMBER and part.wire == protobuf.FIXED64:
            return float(struct.unpack("<d", data[part.start : part.end])[0])
    return 0.0
