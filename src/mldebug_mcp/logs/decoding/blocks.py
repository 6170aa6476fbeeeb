"""A text file by blocks of whole lines, as bytes: for readers that hand many lines at once to compiled code."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from mldebug_mcp.logs.source import MAX_LINE, LogFile
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

if TYPE_CHECKING:
    from concurrent.futures import Future

Result = TypeVar("Result")

BLOCK_BYTES = MAX_LINE
"""Bytes read at a time: small enough for the processor's caches, large enough that the cost of a call is small."""
FAST_BYTES = 1024 * 1024
"""Files smaller than this are read line by line: importing a compiled reader would take longer."""
PIECE_BYTES = 256 * 1024
"""What a block is cut into when it cannot be read at once."""
PATIENCE = 32
"""Pieces that cannot, one after another, before the rest of the file is read line by line."""

_EDGE_BYTES = 64 * 1024
"""The end of a block, in which its last line ends as a rule."""
_THREADS = 2
"""Blocks worked on at a time: between two blocks compiled code waits for Python, which may have other things to do."""
_BOM = b"\xef\xbb\xbf"


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
        if stream.read(len(_BOM)) == _BOM:
            left -= len(_BOM)
        else:
            stream.seek(0)
        while piece := stream.read(_next_size(stream, min(BLOCK_BYTES - len(rest), left), seekable=file.is_plain)):
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

    with ThreadPoolExecutor(_THREADS) as threads:
        waiting: deque[tuple[bytes, Future[Result]]] = deque()
        for block in blocks:
            waiting.append((block, threads.submit(work, block)))
            if len(waiting) > _THREADS:
                one, result = waiting.popleft()
                yield one, result.result()
        for one, result in waiting:
            yield one, result.result()


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


def _next_size(stream: BinaryIO, most: int, *, seekable: bool) -> int:
    """Return how many bytes to read next: up to the last line end within `most`, if that is near and can be looked for.

    What is read beyond it has to be cut off, which copies the whole block.
    """
    if not seekable or most <= _EDGE_BYTES:
        return most
    start = stream.tell()
    stream.seek(start + most - _EDGE_BYTES)
    end = _last_line_end(stream.read(_EDGE_BYTES))
    stream.seek(start)
    return most - _EDGE_BYTES + end if end else most
