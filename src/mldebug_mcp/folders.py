"""Listing the folders that are named from outside, in bounded time and only inside the roots of `access`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from mldebug_mcp import limits
from mldebug_mcp.access import held_folder, is_file, is_folder
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

MAX_ENTRIES = 20_000
"""Entries of a folder that are read."""


def entries(folder: Path, limit: int = MAX_ENTRIES) -> list[Path]:
    """Return the entries of a folder, sorted by name; only some if there are more than `limit`.

    Raises:
        OutsideError: the folder lies outside the roots.
        OSError: it cannot be read.
    """
    with held_folder(folder) as place, os.scandir(place) as listed:
        names = sorted(entry.name for entry in islice(listed, limit))
    limits.listing(1 + len(names))
    return [folder / name for name in names]


def matching(folder: Path, ending: str) -> list[Path]:
    """Return the files in a folder whose names have an ending, sorted by name; none if it cannot be read."""
    try:
        return [path for path in entries(folder) if path.name.endswith(ending) and is_file(path)]
    except (OSError, InputError):
        return []


def walk(
    folder: Path,
    depth: int = 6,
    enters: Callable[[Path], bool] = lambda _: True,
    notes: list[str] | None = None,
    most: int | None = None,
) -> Iterator[Path]:
    """Yield the files in a folder and below it, shallow ones first; links to folders are not followed.

    Args:
        folder: The folder.
        depth: Levels that are read, its own included.
        enters: Whether to descend into a folder below it.
        notes: Gets a note if there are more than `most` entries, and of each folder that may not be read.
        most: Entries that are looked at, by default `MAX_ENTRIES`; and half as many below a level that takes them
            all, so that a folder of very many folders is not one without files.
    """
    most = MAX_ENTRIES if most is None else most
    left, reserve = most, most // 2
    level = [folder]
    for _ in range(depth):
        below: list[Path] = []
        is_cut = False
        for place in level:
            found = _readable(place, left + 1, notes)
            is_cut = len(found) > left
            found = found[:left]
            left -= len(found)
            for path in found:
                if is_file(path):
                    yield path
                elif not path.is_symlink() and enters(path) and is_folder(path):
                    below.append(path)
            if is_cut:
                break
        if is_cut:
            if notes is not None and reserve:
                notes.append(
                    f"only {most:,} entries of the folder were looked at; name the log itself if it was not found"
                )
            left, reserve = reserve, 0
        level = below


def _readable(folder: Path, limit: int, notes: list[str] | None) -> list[Path]:
    """Return the entries of a folder; none of one that may not be read, which is noted."""
    try:
        return entries(folder, limit)
    except (OSError, InputError) as error:
        if notes is not None and isinstance(error, PermissionError):
            notes.append(f"{shorten(str(folder), 120)}: this folder may not be read, and was left out")
        return []
