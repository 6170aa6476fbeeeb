"""Pickle → plain objects, with nothing imported, nothing called and memory in proportion to the file."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import zlib
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError
from mldebug_mcp.limits import reading
from mldebug_mcp.memory.pickle_scan import scan
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

MAX_BYTES = 16 * 1024**3
"""Bytes of an uncompressed pickle."""
MEMORY_PER_BYTE = 2
"""Bytes of memory per byte of pickle, at least: with deep stacks; short ones take up to six."""
FREE_BYTES = 64 * 1024 * 1024
TIMES_UNPACKED = 300
"""Above `FREE_BYTES` a compressed pickle is at most so many times as large. Chosen by hand: small snapshots come to
twelve, and nothing that gzip writes to more than 1,032."""
TIMES_TYPICAL = 30
"""A compressed pickle may use the time and memory of one that is so many times as large. Chosen by hand."""
MEMORY_PER_CONTAINER = 72
"""Bytes of an empty list or dictionary, and of the reference to it."""
_GZIP = b"\x1f\x8b"
_BUFFER = 1024 * 1024


class _GuardedReader(io.BufferedReader):
    """A reader that does not try to read beyond the end of a pickle, whatever length an opcode claims."""

    def __init__(self, raw: io.RawIOBase, left: int) -> None:
        super().__init__(raw, _BUFFER)
        self.left = self.told = left

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0 or size > self.left:
            raise pickle.UnpicklingError("an opcode claims more bytes than the file has")
        data = super().read(size)
        self.left -= len(data)
        if self.told - self.left > _BUFFER:
            self.told = self.left
            checkpoint(f"{self.left:,} bytes of the snapshot left to read")
        return data


class _SafeUnpickler(pickle.Unpickler):
    """An unpickler that cannot reach any class or function: the second defence, behind the scan."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"refused to import {shorten(module_name, 60)}.{shorten(global_name, 60)}")

    def persistent_load(self, pid: object, /) -> NoReturn:
        del pid
        raise pickle.UnpicklingError("refused a persistent id")


def _unzipped_size(path: Path, packed: int, name: str) -> int:
    """Return how many bytes a compressed file holds: how much memory a pickle may claim depends on it."""
    with _open(path, compressed=True) as stream:
        size = 0
        while piece := stream.read(_BUFFER):
            size += len(piece)
            if size > max(FREE_BYTES, TIMES_UNPACKED * packed):
                raise InputError(f"{name}: {packed:,} bytes that unpack to more than {size:,}, as no snapshot does")
            if size > MAX_BYTES:
                raise InputError(f"{name}: unpacks to more than {MAX_BYTES // 2**30} GiB; record fewer entries")
    reading(min(size, TIMES_TYPICAL * packed))
    return size


class _Unzipped(gzip.GzipFile):
    """A compressed file that closes the file below it, which `gzip` leaves open."""

    def __init__(self, below: BinaryIO) -> None:
        super().__init__(fileobj=below, mode="rb")
        self._below = below

    def close(self) -> None:
        """Close both."""
        super().close()
        self._below.close()


def load(path: Path, size: int) -> tuple[object, int]:
    """Return the object in a pickle (or in a gzip of one) and the bytes of the pickle.

    Raises:
        InputError: it is truncated, corrupt, larger than memory, or holds anything but plain data.
    """
    name = shorten(str(path), 200)
    compressed = _starts_with_gzip(path)
    try:
        with _open(path, compressed=compressed) as stream:
            length, containers = scan(stream, _unzipped_size(path, size, name) if compressed else size, name)
        _check_memory(length, containers, name)
        with _GuardedReader(cast("io.RawIOBase", _open(path, compressed=compressed)), length) as reader:
            return _SafeUnpickler(reader).load(), length
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}: the compressed file is cut off or corrupt ({shorten(str(error), 100)})") from None
    except (
        pickle.UnpicklingError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        OverflowError,
        AttributeError,
    ) as error:
        raise InputError(f"{name}: the pickle is corrupt ({shorten(str(error), 100)}); record it again") from None
    except MemoryError:
        raise InputError(f"{name}: not enough memory to read it; record fewer entries (max_entries=)") from None


def _starts_with_gzip(path: Path) -> bool:
    with open_input(path) as file:
        return file.read(2) == _GZIP


def _open(path: Path, *, compressed: bool) -> BinaryIO:
    return cast("BinaryIO", _Unzipped(open_input(path))) if compressed else open_input(path, buffering=0)


def _check_memory(length: int, containers: int, name: str) -> None:
    """Refuse a pickle that this machine cannot hold, before memory runs out."""
    try:
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return
    # Free pages exclude the page cache, which can be dropped; a quarter of all memory counts as available in any case.
    available = max(available, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4)
    needed = length * MEMORY_PER_BYTE + containers * MEMORY_PER_CONTAINER
    if needed > available:
        raise InputError(
            f"{name}: a pickle of {length / 2**30:.1f} GiB needs about {needed / 2**30:.0f} "
            f"GiB of memory and {available / 2**30:.0f} GiB are free; record fewer entries "
            "(_record_memory_history(max_entries=200_000))"
        )
