"""Looking into a zip archive without unpacking it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import BinaryIO

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError

LOOKED_AT = 8
MAX_BYTES = 8 * 1024**3
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
    if unpacked > MAX_BYTES:
        raise InputError(f"{name}: unpacks to more than 8 GiB; give it as parquet")
    check_times(unpacked, file, name)


def check_times(unpacked: int, file: BinaryIO, name: str) -> None:
    """Raise InputError if a file stands for many times its own bytes."""
    size = file.seek(0, os.SEEK_END)
    if unpacked > max(FREE_BYTES, TIMES_UNPACKED * size):
        raise InputError(f"{name}: {size:,} bytes that stand for {unpacked:,}; save what is in it as parquet")
