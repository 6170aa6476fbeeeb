"""Tables: CSV, TSV and the like, with a header line."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterator
from itertools import islice, pairwise

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.decoding.blocks import is_fast, lines_of
from mldebug_mcp.logs.decoding.rows import Rows
from mldebug_mcp.logs.lines.bars import bar_in
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.source import LogFile

NAME = "table"

_PAIR = re.compile(r"[A-Za-z)'\"] ?[:=] ?[\[(]?-?\d")
_NAMED = re.compile(r"[A-Za-z)] ?[:=]\s*$")
_DELIMITERS = ("\t", ",", ";")
MAX_COMMENTS = 200
"""Lines in which the header of a table is looked for, behind what a script says of the run in comments."""


def matches(file: LogFile) -> bool:
    """A header of two or more names and a row with as many cells, most of them numbers or empty."""
    return _dialect(file) is not None


def _dialect(file: LogFile) -> tuple[str, int] | None:
    """Return the delimiter and how many lines stand before the header, which may be the last of the comments."""
    lines = file.head.splitlines()[:MAX_COMMENTS]
    comments = next(
        (index for index, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines)
    )
    body = [line for line in lines[comments:] if line.strip()]
    delimiter = _delimiter_of(body)
    if delimiter is not None:
        return delimiter, comments
    delimiter = _delimiter_of([lines[comments - 1].lstrip("# "), *body]) if comments else None
    return None if delimiter is None else (delimiter, comments - 1)


def _delimiter_of(body: list[str]) -> str | None:
    """Return what stands between the cells of a header and the rows below it, None if it is no table."""
    if len(body) < 2 or bar_in(body[0]) is not None:
        return None
    for delimiter in _DELIMITERS:
        try:
            header, *rows = csv.reader(body[:3], delimiter=delimiter)
        except csv.Error:  # a cell longer than any of a table
            continue
        names = [name for name in header if name.strip()]
        if any(_PAIR.search(name) or name.lstrip().startswith(("(", "{")) for name in names):
            continue  # a line of text: "loss: 0,5" cut at its comma
        if any(_NAMED.search(name) and parse_number(value) is not None for name, value in pairwise(header)):
            continue  # "Iteration: <tab> 18"
        if len(names) < 2 or sum(parse_number(name) is not None for name in names) * 2 > len(names):
            continue
        if rows and len(rows[0]) == len(header) and _is_data(rows[0]):
            return delimiter
    return None


def _is_data(row: list[str]) -> bool:
    filled = [cell for cell in row if cell.strip()]
    return bool(filled) and sum(parse_number(cell) is not None for cell in filled) * 3 >= len(filled)


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the rows. A header that comes again starts another run; cells that are no numbers are not logged."""
    dialect = _dialect(file)
    if dialect is None:
        raise InputError(f"{file.name}: no header line with rows of numbers under it; name a table of metrics")
    delimiter, comments = dialect
    rows = Rows(builder, file.path.stem)
    try:
        lines: Iterator[str] = islice(file.lines(), comments, None)
        if is_fast(file):
            from mldebug_mcp.logs.decoding.fast_table import read_fast

            lines = read_fast(file, rows, builder, delimiter, comments)
        rows.take(csv.reader((line + "\n" for line in lines), delimiter=delimiter))
    except csv.Error as error:
        builder.note(f"reading stopped at a broken row ({error})")
    rows.tell(builder)


def follow(file: LogFile, builder: RunBuilder) -> Follower:
    """Return what reads the table as it grows."""
    return Follower(_dialect(file) or (",", 0), Rows(builder, file.path.stem))


class Follower:
    """Reads a table that grows."""

    def __init__(self, dialect: tuple[str, int], rows: Rows) -> None:
        self._delimiter, self._comments = dialect
        self._rows = rows

    def take_block(self, block: bytes) -> None:
        """Read whole lines."""
        lines = lines_of(block)
        skipped, self._comments = self._comments, max(0, self._comments - len(lines))
        with contextlib.suppress(csv.Error):
            self._rows.take(csv.reader(lines[skipped:], delimiter=self._delimiter))

    def tell(self, builder: RunBuilder) -> None:
        """Say in the notes what was no record."""
        self._rows.tell(builder)
