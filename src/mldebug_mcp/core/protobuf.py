"""As much of the protocol buffer wire format as event files, W&B files and examples of TensorFlow need.

Event files frame their messages as TFRecord: length, its checksum, a message, its checksum. Sources:
https://protobuf.dev/programming-guides/encoding/ and https://www.tensorflow.org/tutorials/load_data/tfrecord
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.crc32c import masked_crc32c, masked_crc32c_of

# As much of the protocol buffer wire format as event files, W&B files and examples of TensorFlow need.
#
# Source of the format: https://protobuf.dev/programming-guides/encoding/


VARINT = 0
FIXED64 = 1
BYTES = 2
FIXED32 = 5


class Field(NamedTuple):
    """One field of a message.

    Args:
        number: Its number in the schema.
        wire: Its wire type.
        value: The number of a varint, 0 for other types.
        start, end: Where its bytes stand in the buffer.
    """

    number: int
    wire: int
    value: int
    start: int
    end: int


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
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


def fields(data: bytes | memoryview, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message in data[start:end]; raises ValueError where it is broken."""
    at = start
    while at < end:
        key, at = varint(data, at)
        wire, value, begin = key & 7, 0, at
        if wire == VARINT:
            value, at = varint(data, at)
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


def map_entry(data: bytes, entry: Field) -> tuple[str, Field | None]:
    """Return the key of an entry of a map with messages as values, and its value; "" and None where it lacks them.

    Source: https://protobuf.dev/programming-guides/encoding/#maps
    """
    key, value = "", None
    for part in fields(data, entry.start, entry.end):
        if part.number == 1 and part.wire == BYTES:
            key = text(data, part)
        elif part.number == 2 and part.wire == BYTES:
            value = part
    return key, value


# The framing of event files: length, its checksum, a message, its checksum (TFRecord).
#
# Source: https://www.tensorflow.org/tutorials/load_data/tfrecord


HEADER = 12
FOOTER = 4
CHECKED_BYTES = 1024
"""Records up to this size are checked; larger ones are images and histograms."""
LARGE_BYTES = 8 * 1024 * 1024
"""Records from this size on are passed over unread."""

_MAX_LENGTH = 1 << 40
_REMEMBERED = 10_000

Numbers = NDArray[np.int64]


class Records:
    """Finds the records of a file in pieces of it.

    Attributes:
        count: Whole records found so far.
        broken: A length had a wrong checksum: what follows cannot be read.
        ahead: Bytes behind the last piece that belong to a large record.
    """

    def __init__(self) -> None:
        self._lengths: dict[bytes, int] = {}
        self.count = 0
        self.ahead = 0
        self.broken = False

    def find(self, data: bytes) -> tuple[Numbers, Numbers, int]:
        """Return starts and lengths of the whole messages in `data`, and where the first that is cut off begins."""
        starts: list[int] = []
        lengths: list[int] = []
        at = self.ahead = 0
        known = self._lengths.get
        while (header := data[at : at + HEADER]) and len(header) == HEADER:
            length = known(header)
            if length is None:
                length = self._checked_length(header)
            end = at + HEADER + length + FOOTER
            if length < 0:
                self.broken = True
                break
            if end > len(data):
                if length > LARGE_BYTES:
                    self.ahead, at = end - len(data), len(data)
                break
            starts.append(at + HEADER)
            lengths.append(length)
            at = end
        self.count += len(starts)
        return np.array(starts, dtype=np.int64), np.array(lengths, dtype=np.int64), at

    def _checked_length(self, header: bytes) -> int:
        """Return the length that a record's header tells, or -1 if its checksum is wrong."""
        length, checksum = struct.unpack("<QI", header)
        if length > _MAX_LENGTH or masked_crc32c_of(header[:8]) != checksum:
            return -1
        if len(self._lengths) < _REMEMBERED:
            self._lengths[header] = length
        return int(length)


def equally_long(data: bytes, starts: Numbers, lengths: Numbers) -> Iterator[tuple[Numbers, NDArray[np.uint8]]]:
    """Yield the small messages grouped by length: their numbers, shape (n,), and their bytes, shape (n, length).

    Those whose checksum is wrong are left out.
    """
    content = np.frombuffer(data, dtype=np.uint8)
    for length in np.unique(lengths[lengths <= CHECKED_BYTES]).tolist():
        numbers = np.flatnonzero(lengths == length)
        rows = np.lib.stride_tricks.sliding_window_view(content, length + FOOTER)
        for some in np.array_split(numbers, 1 + len(numbers) * length // LARGE_BYTES):
            records = rows[starts[some]]
            stored = np.ascontiguousarray(records[:, length:]).view("<u4")[:, 0]
            right = masked_crc32c(records[:, :length]) == stored
            yield some[right], records[right, :length]
