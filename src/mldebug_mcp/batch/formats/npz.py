"""NumPy archives: arrays by name. Pickled objects inside are refused."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mldebug_mcp.batch.formats.token_file import WINDOW, table_of_stream
from mldebug_mcp.batch.sequences import as_integers
from mldebug_mcp.batch.table import Column, Table
from mldebug_mcp.core.access import open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

# Looking into a zip archive without unpacking it.


LOOKED_AT = 8
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
            return archive.namelist()[:LOOKED_AT]
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
            file.seek(0)
            head_is_array = file.read(len(ARRAY_MAGIC)) == ARRAY_MAGIC
            file.seek(0)
            columns = _columns(file)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile header makes NumPy raise anything, down to errors of syntax
        problem = shorten(str(error), 120)
        raise InputError(f"{name}: not an archive of plain arrays ({problem}); save it with numpy.savez") from None
    ids = columns["input_ids"] if head_is_array else None
    if isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iuf" and len(ids) > WINDOW:
        try:
            stream = as_integers(ids)
        except ValueError as error:
            raise InputError(f"{name}: {error}; give token ids as whole numbers") from None
        note = (
            f"read as whole numbers (stated by the file) without documents, in rows of {WINDOW} tokens; "
            f"the last {counted(len(stream) % WINDOW, 'token')}, fewer than a row, left out"
        )
        yield table_of_stream(stream, note)
        return
    yield Table(columns)


def _columns(file: BinaryIO) -> dict[str, Column]:
    loaded = np.load(file, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return {"input_ids": loaded}
    columns = {str(name): loaded[name] for name in loaded.files}
    if not all(isinstance(column, np.ndarray) for column in columns.values()):
        raise ValueError("a member is not an array")
    return columns
