"""A file whose content is made in pieces, for readers that take any open file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

SKIP_BYTES = 1024 * 1024


def replayed(pieces: Callable[[], Iterator[bytes]]) -> BinaryIO:
    """Return a file that reads what `pieces` yields; to go back, it is called again, and read up to there."""
    return cast("BinaryIO", io.BufferedReader(_Replayed(pieces)))


class _Replayed(io.RawIOBase):
    def __init__(self, pieces: Callable[[], Iterator[bytes]]) -> None:
        self._pieces = pieces
        self._begin()

    def _begin(self) -> None:
        self._open, self._rest, self._at = self._pieces(), memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(cast("bytearray", buffer)).cast("B")
        while not self._rest:
            piece = next(self._open, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._at += count
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            while self.read(SKIP_BYTES):
                pass
            offset, whence = offset + self._at, io.SEEK_SET
        target = offset + (self._at if whence == io.SEEK_CUR else 0)
        if target < self._at:
            self._begin()
        while self._at < target and self.read(min(SKIP_BYTES, target - self._at)):
            pass
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        closes = getattr(self._open, "close", None)
        if closes is not None and not self.closed:
            closes()
        super().close()
