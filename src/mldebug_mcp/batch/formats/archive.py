"""Looking into a zip archive without unpacking it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import BinaryIO

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError

LOOKED_AT = 8
MAX_BYTES = 8 * 1024**3
"""Bytes that an archive may hold unpacked: a small file can unpack to any size."""


def first_members(path: Path) -> list[str] | None:
    """Return the names of the first members of a zip archive, or None if it cannot be read as one."""
    try:
        with open_input(path) as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()[:LOOKED_AT]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def check_size(file: BinaryIO, name: str) -> None:
    """Raise InputError if an archive would unpack to more than `MAX_BYTES`; other files are left alone."""
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
            raise InputError(f"{name}: unpacks to more than 8 GiB; give it as parquet")
