"""What the formats share: what each offers, numbers as a memory map, files of a folder, windows of a stream.

The numbers are not copied, and their memory is the operating system's to take back.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Part, Table
from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.core.access import is_folder, matching
from mldebug_mcp.core.text import counted, some_of

Bytes = npt.NDArray[np.uint8]
Number = TypeVar("Number", bound=np.integer)
FilesIn = Callable[[Path], list[Path]]


class Format(NamedTuple):
    """A file format of batches and data sets.

    Args:
        name: What users call it.
        matches: Says from its name and first bytes whether a file or folder has this format.
        tables: Yields the content piece by piece. Raises InputError, ValueError or OSError if it cannot be read.
        rows: Returns how many rows there are; None where one piece holds them all.
        endings: Of its files in a folder.
        files_in: Lists the files of a folder that are read as one corpus, held out ones included.
        parts: Lists the parts, in order, of a format whose parts can be read separately.
        part_tables: Yields the content of a part, in the pieces in which `tables` yields it.
    """

    name: str
    matches: Callable[[Path, bytes], bool]
    tables: Callable[[Path], Iterator[Table]]
    rows: Callable[[Path], int | None] = lambda _: None
    endings: tuple[str, ...] = ()
    files_in: FilesIn | None = None
    parts: Callable[[Path], list[Part]] = lambda path: [Part(path)]
    part_tables: Callable[[Part], Iterator[Table]] | None = None


def whole_numbers(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return the four bytes at each of these places as little-endian whole numbers, shape (places,)."""
    numbers: npt.NDArray[np.uint32] = data[at[:, None] + np.arange(4)].view("<u4")[:, 0]
    return numbers


def mapped(file: BinaryIO, dtype: np.dtype[Number], start: int, count: int) -> npt.NDArray[Number]:
    """Return `count` numbers of an open file from the byte `start` on; fewer where it ends before."""
    if not count:
        return np.empty(0, dtype)
    before = start % mmap.ALLOCATIONGRANULARITY
    try:
        pages = mmap.mmap(
            file.fileno(), before + count * dtype.itemsize, access=mmap.ACCESS_READ, offset=start - before
        )
    except (OSError, ValueError):  # a file system without maps, or a file that became shorter
        file.seek(start)
        return np.fromfile(file, dtype, count)
    return np.frombuffer(pages, dtype, count, before)


# Which files of a folder are a training corpus, and which are its validation or test split, by their names.


HELD_OUT = re.compile(r"(?<![a-z])(?:val|valid|validation|dev|eval|evaluation|test)(?![a-z])", re.IGNORECASE)
"""Words by which the scripts of nanoGPT, llm.c, modded-nanogpt and the Hub's data sets name what is held out."""


def without_held_out(files: Sequence[Path]) -> list[Path]:
    """Return the files whose names do not say that they are held out, or all of them if all do."""
    return [file for file in files if not HELD_OUT.search(file.name)] or list(files)


def files_with(endings: Sequence[str]) -> FilesIn:
    """Return what lists the files of a folder that have one of these endings."""
    return lambda folder: [file for ending in endings for file in matching(folder, ending)]


def in_files(  # noqa: PLR0917 - as of a format
    name: str,
    begins: Callable[[bytes], bool],
    tables: Callable[[list[Path]], Iterator[Table]],
    rows: Callable[[Path], int],
    endings: tuple[str, ...],
    files_in: FilesIn | None = None,
    parts: Callable[[list[Path]], list[Part]] | None = None,
    part_tables: Callable[[Part], Iterator[Table]] | None = None,
) -> Format:
    """Return a format of single files; a folder may hold many: those that are not held out are one corpus.

    The rest is as in `Format`.

    Args:
        name: What users call it.
        begins: Says from the first bytes of a file whether it has this format.
        tables: Yields the content of all files.
        rows: Returns how many rows a file holds.
        endings: Of its files in a folder.
        files_in: Lists them, where more than their endings tells.
        parts: Lists the parts of all files.
        part_tables: Yields the content of a part.
    """
    listed = files_in or files_with(endings)

    def files(path: Path) -> list[Path]:
        return without_held_out(listed(path)) if is_folder(path) else [path]

    return Format(
        name,
        lambda path, head: bool(files(path)) if is_folder(path) else begins(head),
        lambda path: tables(files(path)),
        lambda path: sum(map(rows, files(path))),
        endings,
        listed,
        lambda path: [Part(path)] if parts is None else parts(files(path)),
        part_tables,
    )


def held_out_note(files: Sequence[Path]) -> list[str]:
    """Return the note that some files of a folder are left out, as their names say that they are held out."""
    left = sorted({file.name for file in files} - {file.name for file in without_held_out(files)})
    if not left:
        return []
    return [
        f"left out {counted(len(left), 'file')} that the name says to be held out ({some_of(left)}); give one as "
        "against to look for its documents in the training corpus"
    ]


# A stream of tokens without documents, read in windows.


STREAM_ROW_TOKENS = 1024
"""Tokens of a row of such a stream."""
CHUNK_WINDOWS = 8192
"""Windows that one piece holds."""


def pieces_of_stream(
    file: BinaryIO, dtype: np.dtype[np.integer], start: int, tokens: int
) -> Iterator[tuple[npt.NDArray[np.integer], bool]]:
    """Yield the tokens of a file from a byte on, some millions at a time, and whether they are the last ones."""
    left = tokens
    while left:
        count = min(left, CHUNK_WINDOWS * STREAM_ROW_TOKENS)
        count = left if left - count < STREAM_ROW_TOKENS else count
        ids = mapped(file, dtype, start + (tokens - left) * dtype.itemsize, count)
        left = left - count if len(ids) == count else 0
        if len(ids):
            yield ids, not left


def table_of_stream(ids: npt.NDArray[np.integer], note: str, cut_off: int = 0) -> Table:
    """Return a piece of a stream of tokens as windows and a tail; fewer than a window are one row.

    `note` says how they were read; `cut_off` are bytes behind the last whole token.
    """
    windows = max(1, len(ids) // STREAM_ROW_TOKENS)
    width = min(len(ids), STREAM_ROW_TOKENS)
    rows = Ragged.rectangle(ids[: windows * width].reshape(windows, width))
    columns: dict[str, Column] = {"input_ids": rows, "labels": rows}
    return Table(columns, notes=[note], stream=ids, padded=False, tail=ids[windows * width :], cut_off=cut_off)
