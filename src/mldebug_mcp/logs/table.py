"""Tables: CSV, TSV and the like, with a header line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.source import LogFile

NAME = "table"

_DELIMITERS = ("\t", ",", ";")


def matches(file: LogFile) -> bool:
    """A header of two or more names and a row with as many cells, most of them numbers or empty."""
    return _dialect(file) is not None


def _dialect(file: LogFile) -> tuple[str, int] | None:
    """Return the delimiter and how many lines stand before the header."""
    lines = file.head.splitlines()[:50]
    comments = next(
        (index for index, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines)
    )
    body = [line for line in lines[comments:] if line.strip()]
    if len(body) < 2:
        return None
    for delimiter in _DELIMITERS:
        header, *rows = csv.reader(body[:3], delimiter=delimiter)
        names = [name for name in header if name.strip()]
        if len(names) < 2 or sum(parse_number(name) is not None for name in names) * 2 > len(names):
            continue
        if len(rows[0]) == len(header) and _is_data(rows[0]):
            return delimiter, comments
    return None


def _is_data(row: list[str]) -> bool:
    filled = [cell for cell in row if cell.strip()]
    return bool(filled) and sum(parse_number(cell) is not None for cell in filled) * 3 >= len(filled)


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the rows. A header that comes again starts another run; cells that are no numbers are not logged."""
    dialect = _dialect(file)
    if dialect is None:
        raise InputError(f"{file.path}: no header line with rows of numbers under it")
    delimiter, comments = dialect
    rows = csv.reader(_without(file, comments), delimiter=delimiter)
    header: list[str] = []
    ragged = empty = 0
    try:
        for row in rows:
            if not header:
                header = [re.sub(r"\s+", " ", name).strip() for name in row]
            elif [cell.strip() for cell in row] == header:
                builder.new_part()
            elif len(row) != len(header):
                ragged += bool(row)
            elif not builder.record({name: parse_number(cell) for name, cell in zip(header, row, strict=True) if name}):
                empty += 1
    except csv.Error as error:
        builder.note(f"reading stopped at a broken row ({error})")
    if ragged:
        builder.note(f"skipped {ragged} row(s) with another number of cells than the header")
    if empty:
        builder.note(f"skipped {empty} row(s) without a number")


def _without(file: LogFile, comments: int) -> Iterator[str]:
    for index, line in enumerate(file.lines()):
        if index >= comments:
            yield line + "\n"
