"""What kind of file it is by its first bytes, and what is in a compressed one.

Compressed files are read a piece at a time and in bounded memory. gzip, bzip2 and xz are read by the standard
library, Zstandard by `compression.zstd` or, before Python 3.14, by its backport of the same interface; that is the
`zstd` extra.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import BinaryIO, Protocol, cast

from mldebug_mcp.core.crc32c import masked_crc32c_of
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.limits import checkpoint, reading

UNPACKED_PIECE_BYTES = 1024 * 1024
PACKED_BYTES = 16 * 1024
"""Read at a time: what follows a member is copied at its end, so a file of very many would be copied as many times."""
MAX_UNPACKED = 4 * 1024 * 1024 * 1024
"""Bytes that come out of one file."""
MAX_RATIO = 200
"""Bytes that come out for one that goes in: logs of training shrink to a fifth or a twentieth, the most even ones to a
fiftieth. Chosen; what is made to be large is packed a thousandfold by gzip, and further by the others."""
SMALL_BYTES = 32 * 1024 * 1024
"""Up to so many bytes any ratio does no harm."""
TIMES_TYPICAL = 30
"""A compressed log may use the time and memory of one that is so many times as large. Chosen by hand."""
MAX_WINDOW = 128 * 1024 * 1024
"""Memory that a file may ask for to be unpacked: xz at its highest level takes 65 MiB, Zstandard by default 8 MiB."""

SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
_PACKED_SIGNATURES = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
SIGNATURE_BYTES = 6


class _Decoder(Protocol):
    """What the decoders of the standard library have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's decoder of a gzip member, with the interface of the others."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)


def packing_of(beginning: bytes) -> str:
    """Return how a file that begins so is compressed, or "" if it is not."""
    return next((name for signature, name in _PACKED_SIGNATURES if beginning.startswith(signature)), "")


def plain_name(name: str) -> str:
    """Return the name that a file had before it was compressed."""
    return next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end) and name != end), name)


def unpacked(file: BinaryIO, packing: str, name: str, cut: Callable[[str], None]) -> Iterator[bytes]:
    """Yield what is in a compressed file, and close it.

    Args:
        file: The file, at its beginning.
        packing: How it is compressed, as `packing_of` says.
        name: Its name for messages.
        cut: Called with what is wrong where the file is cut off or damaged; what came before was yielded.

    Raises:
        InputError: nothing can be unpacked, or far more comes out than any log holds.
    """
    with file:
        size = 0
        for piece in _gathered(_pieces(file, packing, name, cut)):
            size += len(piece)
            _check_size(size, file.tell(), name)
            reading(min(size, TIMES_TYPICAL * file.tell()), ("unpacked", name))
            checkpoint(f"unpacking: {size:,} bytes")
            yield piece


def _pieces(file: BinaryIO, packing: str, name: str, cut: Callable[[str], None]) -> Iterator[bytes]:
    """Yield what comes out of each part of the file, often nothing."""
    decoder, data, is_empty = _decoder(packing, name), b"", True
    while True:
        if decoder.eof:
            data = (decoder.unused_data or file.read(PACKED_BYTES)).lstrip(b"\0")  # tapes are filled up with NULs
            if not data:
                return
            decoder = _decoder(packing, name)
        elif decoder.needs_input:
            data = file.read(PACKED_BYTES)
        problem, piece = _next(decoder, data)
        data = b""
        if problem and is_empty:
            raise InputError(f"{name}: cannot be unpacked ({problem}); copy it again, whole")
        if problem:
            cut(problem)
            return
        is_empty = is_empty and not piece
        yield piece


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield small pieces together: a file may have a member for each byte."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= PACKED_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def _next(decoder: _Decoder, data: bytes) -> tuple[str, bytes]:
    """Return what is wrong, "" if nothing is, and the next piece."""
    if not data and decoder.needs_input:
        return "it ends too early", b""
    try:
        return "", decoder.decompress(data, UNPACKED_PIECE_BYTES)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, MemoryError) as error:
        return f"damaged: {error}", b""
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # of an extra, which may not be there to be named
            raise
        return f"damaged: {error}", b""


def _check_size(size: int, packed: int, name: str) -> None:
    if size > MAX_UNPACKED:
        problem = f"more than {MAX_UNPACKED:,} bytes come out of it"
    elif size > SMALL_BYTES and size > MAX_RATIO * packed:
        problem = f"more than {MAX_RATIO} bytes come out for each byte of it, as of no log"
    else:
        return
    raise InputError(f"{name}: {problem}; unpack it yourself, and name what comes out, if that is a log")


def _decoder(packing: str, name: str) -> _Decoder:
    if packing == "gzip":
        return _Gzip()
    if packing == "bzip2":
        return bz2.BZ2Decompressor()
    if packing == "xz":
        return lzma.LZMADecompressor(memlimit=MAX_WINDOW)
    try:
        zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        raise InputError(f"{name}: {MissingExtraError('backports.zstd', 'zstd')}; or unpack it (unzstd)") from None
    return cast("_Decoder", zstd.ZstdDecompressor())


# Binary formats by their first bytes.

_BINARY_SIGNATURES = ((b"SQLite format 3\0", "sqlite"), (b"PAR1", "parquet"), (b":W&B", "wandb"), (b":SWL", "swanlab"))
OPENED_BY_NAME = ("sqlite", "parquet")
"""Formats whose libraries open a file by themselves, so that it cannot be compressed."""
_TAR_MARK = slice(257, 262)
_ZIP = b"PK\x03\x04"
_NAME_LENGTH, _NAME = slice(26, 28), 30
"""Where the first entry of a zip archive has the length of its name, and the name.

Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, section 4.3.7
"""
_MAX_FIRST_EVENT = 4096
_VISUALDL = b"\x00" * 7
_VISUALDL_TAG = b"meta_data_tag"
"""What stands in the first record of VisualDL, behind its length of eight bytes."""


def binary_format(beginning: bytes) -> str:
    """Return the name of the binary format that a file's first bytes show, or "" if none that is known."""
    for signature, name in _BINARY_SIGNATURES:
        if beginning.startswith(signature):
            return name
    if beginning.startswith(_ZIP) and _first_name(beginning).endswith(b".npy"):
        return "npz"
    if beginning[1:8] == _VISUALDL and _VISUALDL_TAG in beginning[8:40]:
        return "visualdl"
    return "tensorboard" if _begins_with_an_event(beginning) else ""


def archive_format(beginning: bytes) -> str:
    """Return the name of the kind of archive that a file's first bytes show, or "" if it is none."""
    if beginning.startswith(_ZIP):
        return "zip"
    return "tar" if beginning[_TAR_MARK] == b"ustar" else ""


def _first_name(beginning: bytes) -> bytes:
    """Return the name of the first entry of a zip archive."""
    return beginning[_NAME : _NAME + int.from_bytes(beginning[_NAME_LENGTH], "little")]


def _begins_with_an_event(beginning: bytes) -> bool:
    """Say whether a TFRecord of a plausible length is at the beginning; its length has a checksum of its own."""
    if len(beginning) < 12:
        return False
    length, checksum = map(int, struct.unpack_from("<QI", beginning))
    if length > _MAX_FIRST_EVENT:
        return False

    return masked_crc32c_of(beginning[:8]) == checksum
