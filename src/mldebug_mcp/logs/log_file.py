"""Opening what a user points at: checked, decoded, in bounded memory.

The bytes may be in one file or in rotated parts, each of them compressed or not. They are read by the line, by blocks
of whole lines, or as a file that can be read from any place.
"""

from __future__ import annotations

import codecs
import io
import os
import struct
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeVar, cast

from mldebug_mcp.core.access import open_input
from mldebug_mcp.core.conventions import ZIP_MAGIC
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.limits import checkpoint, reading
from mldebug_mcp.core.paths import unreadable
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.numbers import has_decimal_commas, with_points

if TYPE_CHECKING:
    from concurrent.futures import Future


# What kind of file it is by its first bytes, and what is in a compressed one.
#
# Compressed files are read a piece at a time and in bounded memory. gzip, bzip2 and xz are read by the standard
# library, Zstandard by `compression.zstd` or, before Python 3.14, by its backport of the same interface; that is the
# `zstd` extra.


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
        problem, piece = _decoded_piece(decoder, data)
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


def _decoded_piece(decoder: _Decoder, data: bytes) -> tuple[str, bytes]:
    """Return what is wrong, "" if nothing is, and the next piece."""
    if not data and decoder.needs_input:
        return "it ends too early", b""
    try:
        return "", decoder.decompress(data, UNPACKED_PIECE_BYTES)
    except (zlib.error, OSError, EOFError, MemoryError) as error:
        return f"damaged: {error}", b""
    except Exception as error:
        if type(error).__name__ not in ("LZMAError", "ZstdError"):  # of modules that few logs load
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
        import bz2

        return bz2.BZ2Decompressor()
    if packing == "xz":
        import lzma

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
    if beginning.startswith(ZIP_MAGIC) and _first_name(beginning).endswith(b".npy"):
        return "npz"
    if beginning[1:8] == _VISUALDL and _VISUALDL_TAG in beginning[8:40]:
        return "visualdl"
    return "tensorboard" if _begins_with_an_event(beginning) else ""


def archive_format(beginning: bytes) -> str:
    """Return the name of the kind of archive that a file's first bytes show, or "" if it is none."""
    if beginning.startswith(ZIP_MAGIC):
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
    from mldebug_mcp.core.protobuf import masked_crc32c_of  # few files may be one

    return masked_crc32c_of(beginning[:8]) == checksum


# A file whose content is made in pieces, for readers that take any open file.

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


# The bytes of a log, wherever they are: in one file or in rotated parts, each of them compressed or not.


@dataclass(frozen=True, slots=True)
class Content:
    """The content of files, one behind the other.

    Args:
        paths: The files.
        problems: What was found to be wrong with them while they were read, for the notes.
    """

    paths: tuple[Path, ...]
    problems: list[str] = field(default_factory=list)

    def stream(self) -> BinaryIO:
        """Open the content; raises as `open_input` does."""
        if len(self.paths) > 1:
            return replayed(self._pieces_in_order)
        file = open_input(self.paths[0])
        packing = packing_of(file.read(SIGNATURE_BYTES))
        file.seek(0)
        if not packing:
            return file
        file.close()
        return replayed(lambda: self._pieces(self.paths[0]))

    def _pieces_in_order(self) -> Iterator[bytes]:
        *older, newest = self.paths
        for path in older:
            try:
                yield from self._pieces(path)
            except (InputError, OSError) as error:
                self._remark(f"{shorten(path.name, 100)}: this rotated part is left out ({shorten(str(error), 160)})")
        yield from self._pieces(newest)

    def _pieces(self, path: Path) -> Iterator[bytes]:
        file = open_input(path)
        packing = packing_of(file.read(SIGNATURE_BYTES))
        file.seek(0)
        if packing:
            yield from unpacked(file, packing, shorten(str(path), 200), lambda why: self._cut(path, why))
            return
        with file:
            while piece := file.read(UNPACKED_PIECE_BYTES):
                yield piece

    def _cut(self, path: Path, why: str) -> None:
        self._remark(f"{shorten(path.name, 100)}: only its beginning could be unpacked ({why})")

    def _remark(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


# Opening what a user points at: checked, decoded, in bounded memory.

HEAD_BYTES = 64 * 1024
"""How much of a file is looked at to find its format."""
LONG_HEAD_BYTES = 1024 * 1024
"""... and of one that begins with long lines, such as a table of thousands of columns."""
HEAD_LINES = 4
"""Lines that show a format: below so many the beginning is too short."""
CHUNK_BYTES = 1024 * 1024
MAX_LINE_CHARACTERS = 4 * 1024 * 1024
"""Characters of one line; longer ones are skipped and counted."""
MAX_NULS = 64 * 1024 * 1024
"""NUL bytes at the beginning of a file behind which its text is looked for."""
MAX_WHOLE_FILE = 1024 * 1024 * 1024
"""Bytes of a file that has to be read as a whole (JSON)."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(slots=True)
class LogFile:
    """A readable, regular, non-empty file and what its beginning looks like.

    A compressed file is what is in it, and so is everything here: its size, its encoding, its text.

    Args:
        path: The file.
        size: Bytes when it was opened.
        encoding: What its text is decoded as.
        head: Its first 64 KiB, decoded, or up to a mebibyte of long lines; empty for a binary file.
        binary: Name of the binary format that its first bytes show, empty for text.
        identity: Its device and inode.
        modified: When it was changed last, in nanoseconds.
        skipped_lines: Lines too long to read, counted while reading.
        decimal_commas: Numbers are written as 0,25: `head` and `lines` have points in their place.
        nuls: NUL bytes stand in its text, which `head`, `lines` and `text` leave out.
        dropped_nuls: How many of them were left out, counted while reading.
        content: Its bytes, if it is compressed or has rotated parts.
    """

    path: Path
    size: int
    encoding: str
    head: str
    binary: str = ""
    identity: tuple[int, int] = (0, 0)
    modified: int = 0
    skipped_lines: int = field(default=0)
    decimal_commas: bool = False
    nuls: bool = False
    dropped_nuls: int = field(default=0)
    content: Content | None = None

    @classmethod
    def open(cls, path: Path, older: Sequence[Path] = ()) -> LogFile:
        """Look at a file, behind whose rotated parts, oldest first, its own content stands.

        Raises:
            InputError: it is neither text nor of a binary format that is known.
        """
        content = None
        try:
            with open_input(path) as file:
                status = os.fstat(file.fileno())
                beginning, size = _beginning(file), status.st_size
            if older or packing_of(beginning[:SIGNATURE_BYTES]):
                content = Content((*older, path))
                with content.stream() as file:
                    beginning, size = _beginning(file), file.seek(0, os.SEEK_END)
        except OSError as error:
            raise InputError(f"{unreadable(path, error)}; check the path") from None
        about = ((status.st_dev, status.st_ino), status.st_mtime_ns)
        binary = binary_format(beginning)
        if binary in OPENED_BY_NAME and content is not None:
            raise InputError(
                f"{shorten(str(path), 200)}: a compressed {binary} file; unpack it, and name what comes out"
            )
        if binary:
            return cls(path, size, "binary", "", binary, *about, content=content)
        encoding = _encoding(beginning)
        nuls = encoding is None and not archive_format(beginning) and _is_text_with_nuls(beginning)
        if encoding is None and not nuls:
            raise InputError(f"{shorten(str(path), 200)}: {_why_no_text(path, beginning)}")
        encoding = encoding or "utf-8"
        head = (beginning.replace(b"\0", b"") if nuls else beginning).decode(encoding, errors="replace")
        commas = has_decimal_commas(head)
        head = with_points(head) if commas else head
        return cls(path, size, encoding, head, "", *about, decimal_commas=commas, nuls=nuls, content=content)

    @property
    def is_utf8(self) -> bool:
        """Whether its bytes are its text, in UTF-8, so that it can be read by blocks."""
        return self.encoding in ("utf-8", "utf-8-sig") and not self.decimal_commas and not self.nuls

    @property
    def is_plain(self) -> bool:
        """Whether what is added to the file is added to its text, in UTF-8, so that it can be followed."""
        return self.is_utf8 and self.content is None

    @property
    def plain_name(self) -> str:
        """Its name; of a compressed file the name that it had before."""
        return plain_name(self.path.name)

    @property
    def problems(self) -> Sequence[str]:
        """What was wrong with its bytes as far as they were read, for the notes."""
        return self.content.problems if self.content is not None else ()

    @property
    def name(self) -> str:
        """Its path for a message, cleaned and shortened."""
        return shorten(str(self.path), 200)

    def text(self) -> str:
        """Return the whole text; raises InputError if the file is too large for that."""
        self._require_text()
        if self.size > MAX_WHOLE_FILE:
            raise InputError(f"{self.name}: {self.size:,} bytes of JSON are too many to read whole; give it as JSONL")
        return self._without_nuls(b"".join(self.pieces(CHUNK_BYTES)).decode(self.encoding, errors="replace"))

    def stream(self) -> BinaryIO:
        """Open the file again, with the same checks."""
        return self.content.stream() if self.content is not None else open_input(self.path)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield what was in the file when it was opened: one that grows faster than it is read would never end."""
        left = self.size
        with self.stream() as file:
            while piece := file.read(min(size, left)):
                left -= len(piece)
                checkpoint(f"reading {shorten(self.path.name, 60)}: {self.size - left:,} of {self.size:,} bytes")
                yield piece

    def lines(self) -> Iterator[str]:
        """Yield the lines, without their ends. A carriage return ends a line too, as progress bars use it."""
        self._require_text()
        line, is_long = "", False
        whole = replayed(lambda: self.pieces(CHUNK_BYTES))
        with io.TextIOWrapper(whole, encoding=self.encoding, errors="replace") as text:
            while part := text.readline(MAX_LINE_CHARACTERS + 1):
                line += self._without_nuls(part)
                if len(line.removesuffix("\n")) > MAX_LINE_CHARACTERS:
                    self.skipped_lines += not is_long
                    line, is_long = "", True
                if part.endswith("\n"):
                    if not is_long:
                        yield self._with_points(line.removesuffix("\n"))
                    line, is_long = "", False
        if line and not is_long:
            yield self._with_points(line)

    def _with_points(self, text: str) -> str:
        return with_points(text) if self.decimal_commas else text

    def _without_nuls(self, text: str) -> str:
        if "\0" not in text:
            return text
        whole = text.replace("\0", "")
        self.dropped_nuls += len(text) - len(whole)
        return whole

    def _require_text(self) -> None:
        if self.binary:
            raise InputError(f"{self.name}: a {self.binary} file where text is due; name a text file")


def _beginning(file: BinaryIO) -> bytes:
    """Return the first bytes of a file: of one that begins with many NUL bytes, what comes behind them."""
    for _ in range(MAX_NULS // HEAD_BYTES):
        beginning = file.read(HEAD_BYTES)
        if beginning.strip(b"\0") or len(beginning) < HEAD_BYTES:
            break
    if len(beginning) == HEAD_BYTES and beginning.count(b"\n") < HEAD_LINES:
        beginning += file.read(LONG_HEAD_BYTES - HEAD_BYTES)
    return beginning


def _is_text_with_nuls(beginning: bytes) -> bool:
    """Say whether bytes are lines of plain text but for NUL bytes, which no other control characters come with.

    A file system leaves them where a crash came before what was written; a log emptied under a running program begins
    with them; a shell that writes UTF-16 puts one behind each character.
    """
    text = beginning.replace(b"\0", b"")
    if b"\n" not in text and b"\r" not in text:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(text)
    except UnicodeDecodeError:
        return False
    return not any(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in text)


def _why_no_text(path: Path, beginning: bytes) -> str:
    if "tfevents" in path.name:
        return "the first record of this event file is damaged, so that nothing of it can be read; copy it again, whole"
    if packing_of(beginning):
        return "compressed more than once; unpack it, and name what comes out"
    if archive := archive_format(beginning):
        return f"an archive ({archive}); unpack it, and name the folder or the log in it"
    return "a binary file, not a log that can be read; name a log file or a run folder"


def _encoding(beginning: bytes) -> str | None:
    """Return the encoding of a file from its first bytes, or None if they are no text."""
    for bom, encoding in _BOMS:
        if beginning.startswith(bom):
            return encoding
    if b"\0" in beginning:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        # Progress bars cut in the middle leave broken UTF-8 in real logs; those decode with replacement characters.
        control = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in beginning)
        return "utf-8" if control * 100 < len(beginning) else None
    return "utf-8"


# Rotated logs: `train.log.2.gz`, `train.log.1` and `train.log` are one log, as are parts named by their date.
#
# Source: https://docs.python.org/3/library/logging.handlers.html (RotatingFileHandler: the higher the number, the
# older; TimedRotatingFileHandler: the date is the ending) and logrotate(8), whose `dateext` writes -YYYYMMDD.


_NUMBERED = regex(r"(?P<log>.+\.[a-z]+)\.(?P<number>[1-9]\d{0,2})")
_DATED = regex(
    r"(?P<log>.+\.[a-z]+)[.-](?P<date>(?:19|20)\d\d-?\d\d-?\d\d(?:[T_-]?\d\d(?:[-:]?\d\d){0,2})?)", needs=("19", "20")
)


def log_name(name: str) -> str:
    """Return the name that a log had before it was rotated or compressed."""
    name = plain_name(name)
    part = _NUMBERED.fullmatch(name) or _DATED.fullmatch(name)
    return part["log"] if part else name


def rotated(files: Iterable[Path]) -> dict[Path, list[Path]]:
    """Return the logs among files that have rotated parts next to them, each with its parts, oldest first.

    A part without the log that it was rotated from, as the logs of several ranks can be named, is a log by itself.
    """
    whole = {path.parent / plain_name(path.name): path for path in files}
    parts: dict[Path, list[Path]] = {}
    for path in whole.values():
        name = log_name(path.name)
        log = whole.get(path.parent / name)
        if log is not None and log != path and path.parent / f"{name}.0" not in whole:
            parts.setdefault(log, []).append(path)
    return {log: sorted(older, key=_order) for log, older in parts.items()}


def _order(path: Path) -> tuple[int, str]:
    """Return what sorts parts by time: numbers count backwards, dates forwards."""
    name = plain_name(path.name)
    numbered = _NUMBERED.fullmatch(name)
    return (-int(numbered["number"]), "") if numbered else (0, name)


# A text file by blocks of whole lines, as bytes: for readers that hand many lines at once to compiled code.

Result = TypeVar("Result")

BLOCK_BYTES = MAX_LINE_CHARACTERS
"""Bytes read at a time: small enough for the processor's caches, large enough that the cost of a call is small."""
FAST_BYTES = 1024 * 1024
"""Files smaller than this are read line by line: importing a compiled reader would take longer."""
PIECE_BYTES = 256 * 1024
"""What a block is cut into when it cannot be read at once."""

_PARALLEL_BLOCKS = 2
"""Blocks worked on at a time: between two blocks compiled code waits for Python, which may have other things to do."""
_UTF8_BOM = b"\xef\xbb\xbf"


def is_fast(file: LogFile) -> bool:
    """Say whether reading a file by blocks is possible and worth it."""
    return file.is_utf8 and is_large(file.size)


def is_large(size: int) -> bool:
    """Say whether so many bytes are worth a compiled reader."""
    return size >= FAST_BYTES


def blocks(file: LogFile) -> Iterator[bytes]:
    """Yield the bytes of a UTF-8 file, cut after line ends; only the last block may end inside a line.

    Lines longer than a block are left out and counted in `file.skipped_lines`.
    """
    skipping, rest, left = False, b"", file.size
    with file.stream() as stream:
        if stream.read(len(_UTF8_BOM)) == _UTF8_BOM:
            left -= len(_UTF8_BOM)
        else:
            stream.seek(0)
        while piece := stream.read(min(BLOCK_BYTES - len(rest), left)):
            left -= len(piece)
            checkpoint(f"reading {shorten(file.path.name, 60)}: {file.size - left:,} of {file.size:,} bytes")
            end = first_line_end(piece) if skipping else _last_line_end(piece)
            if end and not skipping:
                # At most one copy: a block is large.
                yield b"".join((rest, memoryview(piece)[:end])) if rest or end < len(piece) else piece
            if end or skipping:
                skipping, rest = skipping and not end, piece[end:] if end else b""
            elif len(rest) + len(piece) < BLOCK_BYTES:
                rest += piece
            else:
                file.skipped_lines += 1
                skipping, rest = True, b""
    if rest:
        yield rest


def ahead(blocks: Iterable[bytes], work: Callable[[bytes], Result]) -> Iterator[tuple[bytes, Result]]:
    """Yield each block with what `work` makes of it; meanwhile threads work on the next ones."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_PARALLEL_BLOCKS) as threads:
        waiting: deque[tuple[bytes, Future[Result]]] = deque()
        for block in blocks:
            waiting.append((block, threads.submit(work, block)))
            if len(waiting) > _PARALLEL_BLOCKS:
                earlier, result = waiting.popleft()
                yield earlier, result.result()
        for earlier, result in waiting:
            yield earlier, result.result()


def pieces(block: bytes, size: int) -> Iterator[bytes]:
    """Cut a block of lines into smaller ones of about `size` bytes."""
    start = 0
    while start < len(block):
        end = block.find(b"\n", min(start + size, len(block) - 1)) + 1 or len(block)
        yield block[start:end]
        start = end


def lines_of(block: bytes) -> list[str]:
    """Return the lines of a block as `LogFile.lines` yields them."""
    text = block.decode("utf-8", errors="replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    return lines


def whole_lines(data: bytes) -> bytes:
    """Return what a growing file holds up to its last line end; a carriage return at its end may be half one."""
    return data[: max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1]


def first_line_end(data: bytes) -> int:
    """Return where the first line ends, its end included, or 0 if it does not."""
    return data.find(b"\n") + 1 or data.find(b"\r") + 1


def _last_line_end(data: bytes) -> int:
    return data.rfind(b"\n") + 1 or data.rfind(b"\r") + 1
