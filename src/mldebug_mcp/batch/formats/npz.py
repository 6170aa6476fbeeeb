"""NumPy archives: arrays by name. Pickled objects inside are refused."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table
from mldebug_mcp.batch.formats.token_file import WINDOW, pieces_of_stream, table_of_stream
from mldebug_mcp.batch.sequences import as_integers
from mldebug_mcp.core.access import open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

Number = TypeVar("Number", bound=np.generic)

# Looking into a zip archive without unpacking it.


MAX_FIRST_MEMBERS = 8
MAX_UNPACKED_BYTES = 8 * 1024**3
"""Bytes that an archive may hold unpacked: a small file can unpack to any size."""
FREE_BYTES = 64 * 1024**2
TIMES_UNPACKED = 100
"""Above `FREE_BYTES`, at most so many times the size of the file: token ids that are mostly padding shrink to a
thirtieth. Files of arrays hold their numbers once, so that this bounds them too."""


def first_members(path: Path) -> list[str] | None:
    """Return the names of the first members of a zip archive, or None if it cannot be read as one."""
    try:
        with open_input(path) as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()[:MAX_FIRST_MEMBERS]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def check_size(file: BinaryIO, name: str) -> None:
    """Raise InputError if an archive would unpack to too much; other files are left alone."""
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > MAX_UNPACKED_BYTES:
        raise InputError(f"{name}: unpacks to more than 8 GiB; give it as parquet")
    check_times(unpacked, file, name)


def check_times(unpacked: int, file: BinaryIO, name: str) -> None:
    """Raise InputError if a file stands for many times its own bytes."""
    size = file.seek(0, os.SEEK_END)
    if unpacked > max(FREE_BYTES, TIMES_UNPACKED * size):
        raise InputError(f"{name}: {size:,} bytes that stand for {unpacked:,}; save what is in it as parquet")


NAME = "npz"
ARRAY_MAGIC = b"\x93NUMPY"


def matches(path: Path, head: bytes) -> bool:
    """An .npy file, or a zip archive that is named .npz or holds .npy members."""
    if head.startswith(ARRAY_MAGIC):
        return True
    if not head.startswith(b"PK"):
        return False
    if path.suffix == ".npz":
        return True
    members = first_members(path)
    return members is not None and all(member.endswith(".npy") for member in members)


def rows(path: Path) -> None:
    """One piece holds them all."""
    del path


def tables(path: Path) -> Iterator[Table]:
    """Yield the archive as one table.

    A bare array is taken as input_ids; one without rows is a shard of a corpus if it is longer than a window of
    `token_file`, and is cut into such windows.
    """
    name = shorten(str(path), 200)
    try:
        with open_input(path) as file:
            check_size(file, name)
            stream = _stream(file)
            if stream is not None:
                yield from stream
                return
            columns = _columns(file)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile header makes NumPy raise anything, down to errors of syntax
        problem = shorten(str(error), 120)
        raise InputError(f"{name}: not an archive of plain arrays ({problem}); save it with numpy.savez") from None
    yield Table(columns)


def _stream(file: BinaryIO) -> Iterator[Table] | None:
    """Return the pieces of a bare array of one dimension that is longer than a window; None for other content.

    Raises:
        InputError: it holds fractions.
        ValueError: its header is broken, or it promises more than the file holds.
    """
    file.seek(0)
    is_array = file.read(len(ARRAY_MAGIC)) == ARRAY_MAGIC
    file.seek(0)
    if not is_array:
        return None
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    start, size = file.tell(), file.seek(0, 2)
    file.seek(0)
    if len(shape) != 1 or shape[0] <= WINDOW or dtype.kind not in "iuf":
        return None
    if size - start < shape[0] * dtype.itemsize:
        raise ValueError(f"{shape[0]:,} numbers are promised, and {(size - start) // dtype.itemsize:,} are there")
    return _pieces(file, dtype, start, shape[0])


def _pieces(file: BinaryIO, dtype: np.dtype[Any], start: int, tokens: int) -> Iterator[Table]:
    note = f"read as whole numbers (stated by the file) without documents, in rows of {WINDOW} tokens"
    for numbers, _ in pieces_of_stream(file, dtype, start, tokens):
        try:
            ids = as_integers(numbers)
        except ValueError as error:
            raise InputError(f"{shorten(str(file.name), 200)}: {error}; give token ids as whole numbers") from None
        yield table_of_stream(_native(ids), note)


def _columns(file: BinaryIO) -> dict[str, Column]:
    loaded = np.load(file, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return {"input_ids": _native(loaded)}
    columns = {str(name): loaded[name] for name in loaded.files}
    if not all(isinstance(column, np.ndarray) for column in columns.values()):
        raise ValueError("a member is not an array")
    return {name: _native(column) for name, column in columns.items()}


def _native(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return an array in this machine's byte order: its file states its own, so that every reader turns it round."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)
