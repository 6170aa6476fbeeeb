"""The framing of event files: length, its checksum, a message, its checksum (TFRecord).

Source: https://www.tensorflow.org/tutorials/load_data/tfrecord
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.decoding.crc32c import masked_crc32c, masked_crc32c_of

HEADER, FOOTER = 12, 4
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
