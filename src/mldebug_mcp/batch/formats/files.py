"""What the readers of several formats share: numbers of a file as a memory map, files of a folder, windows of a stream.

The numbers are not copied, and their memory is the operating system's to take back.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table
from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.core.access import is_folder
from mldebug_mcp.core.text import counted, some_of

Bytes = npt.NDArray[np.uint8]
Number = TypeVar("Number", bound=np.integer)


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


def files_to_read(path: Path, files_in: Callable[[Path], list[Path]]) -> list[Path]:
    """Return a file itself, or the files of a format in a folder that are not held out."""
    return without_held_out(files_in(path)) if is_folder(path) else [path]


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
