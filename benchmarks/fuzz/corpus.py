"""Inputs that led somewhere new: one archive for each target, of bounded size, replayed by the tests."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
ARCHIVE_BYTES = 16 * 1024
"""Of one target's inputs in the repository, compressed."""
LONGEST_INPUT = 4 * 1024
MOST_INPUTS = 60
"""Of one target, so that all are replayed in seconds."""
_WRITTEN = (1980, 1, 1, 0, 0, 0)


def archive_of(name: str, folder: Path = FOLDER) -> Path:
    """Return where the inputs of a target are kept."""
    return folder / f"{slug(name)}.zip"


def slug(name: str) -> str:
    """Return the name of a target as part of a file's."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name)


def read(path: Path) -> list[bytes]:
    """Return the inputs in an archive; none if there is no such file."""
    if not path.is_file():
        return []
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in sorted(archive.namelist())]


def write(path: Path, inputs: Iterable[bytes]) -> None:
    """Write inputs into an archive; the same inputs make the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, data in enumerate(inputs):
            archive.writestr(zipfile.ZipInfo(f"{number:04}", _WRITTEN), data, zipfile.ZIP_DEFLATED)


def save(name: str, inputs: Iterable[bytes]) -> None:
    """Keep in the repository the shortest inputs of a target, as many as its bounds allow."""
    chosen = sorted({one for one in inputs if len(one) <= LONGEST_INPUT}, key=lambda one: (len(one), one))[:MOST_INPUTS]
    path = archive_of(name)
    write(path, chosen)
    while path.stat().st_size > ARCHIVE_BYTES:
        chosen = chosen[: len(chosen) * 4 // 5]
        write(path, chosen)
    if not chosen:
        path.unlink()
