"""CSV and TSV files with a header line: one row on each line. A column of numbers is read as numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mldebug_mcp.batch.columns import Column, Table
from mldebug_mcp.core.access import is_folder, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "csv"
CHUNK_CHARACTERS = 32 * 1024 * 1024
"""Characters of cells that one table holds."""
MAX_CELL = 64 * 1024 * 1024


def matches(path: Path, head: bytes) -> bool:
    """Its name says so, and its first line names two columns or more."""
    return not is_folder(path) and path.suffix.lower() in (".csv", ".tsv") and _delimiter(head) is not None


def _delimiter(head: bytes) -> str | None:
    first = head.splitlines()[0].decode("utf-8", "replace") if head.splitlines() else ""
    found = max("\t,;", key=first.count)
    return found if found in first else None


def rows(path: Path) -> int:
    """Return how many rows there are."""
    with _opened(path) as lines:
        return sum(1 for _ in lines) - 1


def tables(path: Path) -> Iterator[Table]:
    """Yield the rows, some thousands at a time. Raises InputError if it cannot be read as a table."""
    with _opened(path) as lines:
        names = next(lines)
        kept: list[list[str]] = []
        size = odd = 0
        for line in lines:
            if len(line) != len(names):
                odd += bool(line)
                continue
            kept.append(line)
            size += sum(map(len, line))
            if size > CHUNK_CHARACTERS:
                yield _table(names, kept)
                kept, size = [], 0
        table = _table(names, kept)
        if odd:
            table.notes.append(f"skipped {odd} line(s) with more or fewer cells than the header")
        yield table


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[list[str]]]:
    # The limit is the module's own and only ever rises here: texts are longer than its 128 KiB.
    csv.field_size_limit(MAX_CELL)
    try:
        with open_input(path) as file:
            delimiter = _delimiter(file.readline(1 << 20)) or ","
            file.seek(0)
            yield csv.reader(io.TextIOWrapper(file, "utf-8-sig", "replace", newline=""), delimiter=delimiter)
    except csv.Error as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(path), 200)}: not a CSV file ({problem}); save it again") from None


def _table(names: list[str], lines: list[list[str]]) -> Table:
    columns = zip(*lines, strict=True) if lines else ([] for _ in names)
    return Table({name: _column(list(cells)) for name, cells in zip(names, columns, strict=True)})


def _column(cells: list[str]) -> Column:
    """Return whole numbers, else numbers, else the texts: what an empty cell stands for is not known."""
    kinds: tuple[Callable[[str], object], ...] = (int, float)
    for kind in kinds:
        try:
            return [kind(cell) for cell in cells]
        except ValueError:
            continue
    return list(cells)
