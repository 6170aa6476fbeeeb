"""Opening what a user points at: checked, decoded, in bounded memory."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.content import Content
from mldebug_mcp.logs.decoding.unpack import SIGNATURE_BYTES, packing_of, plain_name
from mldebug_mcp.logs.numbers import has_decimal_commas, with_points
from mldebug_mcp.logs.signatures import OPENED_BY_NAME, archive_format, binary_format
from mldebug_mcp.paths import unreadable
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

HEAD_BYTES = 64 * 1024
"""How much of a file is looked at to find its format."""
LONG_HEAD_BYTES = 1024 * 1024
"""... and of one that begins with long lines, such as a table of thousands of columns."""
HEAD_LINES = 4
"""Lines that show a format: below so many the beginning is too short."""
CHUNK_BYTES = 1024 * 1024
MAX_LINE = 4 * 1024 * 1024
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
        decoder = codecs.getincrementaldecoder(self.encoding)(errors="replace")
        rest, skipping = "", False
        for chunk in self.pieces(CHUNK_BYTES):
            text = rest + self._without_nuls(decoder.decode(chunk))
            half = "\r" if text.endswith("\r") else ""  # its "\n" may come with the next chunk
            *lines, rest = text.removesuffix(half).replace("\r\n", "\n").replace("\r", "\n").split("\n")
            rest += half
            if lines and skipping:
                del lines[0]
                skipping = False
            yield from self._short_enough(lines)
            if len(rest) > MAX_LINE:
                self.skipped_lines += not skipping
                rest, skipping = "", True
        rest += decoder.decode(b"", final=True)
        if rest and not skipping:
            yield from self._short_enough(rest.removesuffix("\r").split("\r"))

    def _without_nuls(self, text: str) -> str:
        if "\0" not in text:
            return text
        whole = text.replace("\0", "")
        self.dropped_nuls += len(text) - len(whole)
        return whole

    def _require_text(self) -> None:
        if self.binary:
            raise InputError(f"{self.name}: a {self.binary} file where text is due; name a text file")

    def _short_enough(self, lines: list[str]) -> Iterator[str]:
        for line in lines:
            if len(line) <= MAX_LINE:
                yield with_points(line) if self.decimal_commas else line
            else:
                self.skipped_lines += 1


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

    A file system leaves them where a crash came before what was written, a log emptied under a running program begins
    with them, and a shell that writes UTF-16 puts one behind each character.
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
