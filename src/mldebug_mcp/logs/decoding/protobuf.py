"""As much of the protocol buffer wire format as event files and W&B files need.

Source of the format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """One field of a message.

    Args:
        number: Its number in the schema.
        wire: Its wire type.
        value: The number of a varint, 0 for other types.
        start, end: Where its bytes stand in the buffer; empty for a varint.
    """

    number: int
    wire: int
    value: int
    start: int
    end: int


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint and where it ends; raises ValueError if it does not end within ten bytes."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
    raise ValueError("cut off varint")


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message in data[start:end]; raises ValueError where it is broken."""
    at = start
    while at < end:
        key, at = varint(data, at)
        wire, value, begin = key & 7, 0, at
        if wire == VARINT:
            value, at = varint(data, at)
            begin = at
        elif wire == BYTES:
            size, begin = varint(data, at)
            at = begin + size
        elif wire in (FIXED32, FIXED64):
            at += 4 if wire == FIXED32 else 8
        else:
            raise ValueError(f"unknown wire type {wire}")
        if at > end:
            raise ValueError("a field goes on behind its message")
        yield Field(key >> 3, wire, value, begin, at)


def signed(value: int) -> int:
    """Return a varint as the int64 that it encodes."""
    return value - (1 << 64) if value >= 1 << 63 else value


def zigzag(value: int) -> int:
    """Return a varint as the sint64 that it encodes."""
    return (value >> 1) ^ -(value & 1)


def text(data: bytes, field: Field) -> str:
    """Return a field as text; broken UTF-8 becomes U+FFFD."""
    return data[field.start : field.end].decode("utf-8", errors="replace")
