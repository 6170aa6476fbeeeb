"""As much of the protocol buffer wire format as event files, W&B files and examples of TensorFlow need.

Event files frame their messages as TFRecord: length, its checksum, a message, its checksum. Sources:
https://protobuf.dev/programming-guides/encoding/ and https://www.tensorflow.org/tutorials/load_data/tfrecord
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# The checksums of TFRecord files: CRC-32C (Castagnoli), masked.
#
# Sources: https://www.tensorflow.org/tutorials/load_data/tfrecord (the format) and RFC 3720, appendix B.4 (the CRC).


_CRC32C_POLYNOMIAL = 0x82F63B78


@cache
def _table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_CRC32C_POLYNOMIAL), table >> 1)
    return table


def _masked(crc: NDArray[np.uint32]) -> NDArray[np.uint32]:
    crc = ~crc
    return ((crc >> 15 | crc << 17) + np.uint32(0xA282_EAD8)).astype(np.uint32, copy=False)


def masked_crc32c(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return the masked checksum of each row of bytes, shape (rows, bytes) → (rows,)."""
    table = _table()
    crc = np.full(len(rows), 0xFFFF_FFFF, dtype=np.uint32)
    column: NDArray[np.uint8]
    for column in np.ascontiguousarray(rows.T):
        crc = table[(crc ^ column) & 255] ^ (crc >> 8)
    return _masked(crc)


def masked_crc32c_of(data: bytes) -> int:
    """Return the masked checksum of some bytes."""
    return int(masked_crc32c(np.frombuffer(data, dtype=np.uint8)[np.newaxis])[0])


# The checksums of many messages at once. A checksum is a linear map of the bits, and zeros in front change nothing: so
# messages are filled up in front to whole blocks, all blocks are taken together, and those of a message are joined in
# pairs, as in a tree.


CHECKSUM_BLOCK_BYTES = 128
"""Bytes of a block. Chosen by trial: longer ones take more steps, shorter ones more joining."""
BLOCKS_AT_ONCE = 8192
"""Blocks that are computed together. Chosen by trial: they stay in the processor's cache."""
_FIRST_STATE = np.uint32(0xFFFF_FFFF)
"""The state before a message's first byte."""


def masked_crc32c_of_parts(
    data: NDArray[np.uint8], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Return the masked checksums of stretches of some bytes, shape (stretches,).

    Args:
        data: The bytes, shape (n,).
        start: Where each stretch begins.
        stop: Where it ends.
    """
    prefix = _prefix()
    blocks = -(-(stop - start + len(prefix)) // CHECKSUM_BLOCK_BYTES)
    ends = np.cumsum(blocks)
    filled = np.zeros(int(ends[-1]) * CHECKSUM_BLOCK_BYTES if len(ends) else 0, np.uint8)
    for end, first, last in zip((ends * CHECKSUM_BLOCK_BYTES).tolist(), start.tolist(), stop.tolist(), strict=True):
        filled[end - (last - first) : end] = data[first:last]
        filled[end - (last - first) - len(prefix) : end - (last - first)] = prefix
    words = filled.view("<u4").reshape(-1, CHECKSUM_BLOCK_BYTES // 4)
    parts = range(0, len(words), BLOCKS_AT_ONCE)
    states = [_of_blocks(words[first : first + BLOCKS_AT_ONCE]) for first in parts]
    return _masked(_joined(np.concatenate([np.empty(0, np.uint32), *states]), blocks))


def _of_blocks(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the state after each row of words, begun with 0."""
    low, high = _word_tables()
    crc = np.zeros(len(words), np.uint32)
    column: NDArray[np.uint32]
    for column in np.ascontiguousarray(words.T):
        crc ^= column
        crc = low.take(crc & np.uint32(0xFFFF)) ^ high.take(crc >> np.uint32(16))
    return crc


def _joined(states: NDArray[np.uint32], blocks: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the state of each message from those of its blocks, so many of each."""
    shift = _shift_of_block()
    while len(states) > len(blocks):
        # The second of two is shifted over by none; an odd one in front stays as it is.
        stops = np.cumsum(blocks)
        pairs = -(-blocks // 2)
        ends = np.cumsum(pairs)
        from_end = np.repeat(ends, pairs) - 1 - np.arange(ends[-1])
        second = np.repeat(stops, pairs) - 1 - 2 * from_end
        has_first = second > np.repeat(stops - blocks, pairs)
        joined = states[second]
        joined[has_first] ^= _mapped(shift, states[second[has_first] - 1])
        states, blocks, shift = joined, pairs, _mapped(shift, shift)
    return states


def _mapped(images: NDArray[np.uint32], states: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return what a linear map makes of states, by what it makes of each of the 32 bits."""
    result = np.zeros_like(states)
    for bit, image in enumerate(images):
        result ^= (states >> np.uint32(bit) & np.uint32(1)) * image
    return result


def _after_zeros(states: NDArray[np.uint32], count: int) -> NDArray[np.uint32]:
    """Return the states after so many bytes of 0."""
    for _ in range(count):
        states = _table()[states & 255] ^ (states >> 8)
    return states


@cache
def _word_tables() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the states after four bytes of 0, by the lower and by the upper half of the state before."""
    halves = np.arange(65_536, dtype=np.uint32)
    return _after_zeros(halves, 4), _after_zeros(halves, 2)


@cache
def _shift_of_block() -> NDArray[np.uint32]:
    return _after_zeros(np.uint32(1) << np.arange(32, dtype=np.uint32), CHECKSUM_BLOCK_BYTES)


@cache
def _prefix() -> NDArray[np.uint8]:
    """Return the four bytes that lead from the state 0 to the first one."""
    table, state = _table(), int(_FIRST_STATE)
    for _ in range(4):
        byte = int(np.flatnonzero(table >> 24 == state >> 24)[0])
        state = (state ^ int(table[byte])) << 8 & 0xFFFF_FFFF | byte
    return np.frombuffer(state.to_bytes(4, "little"), np.uint8)


# As much of the protocol buffer wire format as event files, W&B files and examples of TensorFlow need.
#
# Source of the format: https://protobuf.dev/programming-guides/encoding/


VARINT_WIRE_TYPE = 0
FIXED64 = 1
BYTES_WIRE_TYPE = 2
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
        if wire == VARINT_WIRE_TYPE:
            value, at = varint(data, at)
        elif wire == BYTES_WIRE_TYPE:
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
        if part.number == 1 and part.wire == BYTES_WIRE_TYPE:
            key = text(data, part)
        elif part.number == 2 and part.wire == BYTES_WIRE_TYPE:
            value = part
    return key, value


# The framing of event files: length, its checksum, a message, its checksum (TFRecord).
#
# Source: https://www.tensorflow.org/tutorials/load_data/tfrecord


RECORD_HEADER_BYTES = 12
RECORD_FOOTER_BYTES = 4
CHECKED_BYTES = 1024
"""Records up to this size are checked; larger ones are images and histograms."""
LARGE_BYTES = 8 * 1024 * 1024
"""Records from this size on are passed over unread."""

_MAX_LENGTH = 1 << 40
_MAX_KNOWN_HEADERS = 10_000

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
        while (header := data[at : at + RECORD_HEADER_BYTES]) and len(header) == RECORD_HEADER_BYTES:
            length = known(header)
            if length is None:
                length = self._checked_length(header)
            end = at + RECORD_HEADER_BYTES + length + RECORD_FOOTER_BYTES
            if length < 0:
                self.broken = True
                break
            if end > len(data):
                if length > LARGE_BYTES:
                    self.ahead, at = end - len(data), len(data)
                break
            starts.append(at + RECORD_HEADER_BYTES)
            lengths.append(length)
            at = end
        self.count += len(starts)
        return np.array(starts, dtype=np.int64), np.array(lengths, dtype=np.int64), at

    def _checked_length(self, header: bytes) -> int:
        """Return the length that a record's header tells, or -1 if its checksum is wrong."""
        length, checksum = struct.unpack("<QI", header)
        if length > _MAX_LENGTH or masked_crc32c_of(header[:8]) != checksum:
            return -1
        if len(self._lengths) < _MAX_KNOWN_HEADERS:
            self._lengths[header] = length
        return int(length)


def equally_long(data: bytes, starts: Numbers, lengths: Numbers) -> Iterator[tuple[Numbers, NDArray[np.uint8]]]:
    """Yield the small messages grouped by length: their numbers, shape (n,), and their bytes, shape (n, length).

    Those whose checksum is wrong are left out.
    """
    content = np.frombuffer(data, dtype=np.uint8)
    for length in np.unique(lengths[lengths <= CHECKED_BYTES]).tolist():
        numbers = np.flatnonzero(lengths == length)
        rows = np.lib.stride_tricks.sliding_window_view(content, length + RECORD_FOOTER_BYTES)
        for some in np.array_split(numbers, 1 + len(numbers) * length // LARGE_BYTES):
            records = rows[starts[some]]
            stored = np.ascontiguousarray(records[:, length:]).view("<u4")[:, 0]
            right = masked_crc32c(records[:, :length]) == stored
            yield some[right], records[right, :length]
