"""A stretch of a data set that can be read on its own, on any machine that sees the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups of a parquet file or record batches of an Arrow file, from `start` up to `stop`.

    Args:
        file: The file, or the whole path where a format is read in one go.
        start, stop: Which of the file's groups.
        first: The number of the first row in the data set.
    """

    file: Path
    start: int = 0
    stop: int = 0
    first: int = 0


def packed(file: Path, groups: list[tuple[int, int]], first: int, most_bytes: int) -> list[Part]:
    """Return the parts of a file whose groups have these rows and bytes: as many groups each as `most_bytes` hold."""
    parts: list[Part] = []
    start = size = rows = 0
    for number, (group_rows, group_bytes) in enumerate(groups):
        if number > start and size + group_bytes > most_bytes:
            parts.append(Part(file, start, number, first))
            start, first, size, rows = number, first + rows, 0, 0
        size, rows = size + group_bytes, rows + group_rows
    return [*parts, Part(file, start, len(groups), first)] if groups else parts
