"""Looking into a zip archive without unpacking it."""

from __future__ import annotations

import zipfile
from pathlib import Path

LOOKED_AT = 8


def first_members(path: Path) -> list[str] | None:
    """Return the names of the first members of a zip archive, or None if it cannot be read as one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()[:LOOKED_AT]
    except (zipfile.BadZipFile, OSError):
        return None
