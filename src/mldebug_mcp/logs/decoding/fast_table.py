"""Tables by the block: polars parses, and a count of delimiters proves that no row is odd.

What polars does not read exactly as `table` does goes row by row: first cut into pieces, so that one odd row costs
little. A quote may hold line ends, so from the first one on everything goes row by row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Protocol

import numpy as np
import polars as pl

from mldebug_mcp.logs.beside import SUMMARY_MARKS, is_long
from mldebug_mcp.logs.builder import MESSAGES, RunBuilder
from mldebug_mcp.logs.decoding.blocks import PATIENCE, PIECE_BYTES, blocks, lines_of, pieces
from mldebug_mcp.logs.decoding.frames import add_frame
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.source import LogFile

_SAMPLE = 100
_NOTHING = ("None", "none", "NA", "N/A", "null", "NULL", "-", "--")
"""Cells that say that there is no value, besides empty ones."""


class TakesRows(Protocol):
    """Reads rows one by one; `header` holds the names of the columns once they are known, `empty` rows are counted."""

    header: list[str]
    empty: int

    def take(self, rows: Iterable[list[str]]) -> None:
        """Read rows."""


def read_fast(file: LogFile, rows: TakesRows, builder: RunBuilder, delimiter: str, comments: int) -> Iterator[str]:
    """Read a table by blocks as far as that goes; return the lines that are left.

    Args:
        file: The file.
        rows: Reads rows one by one.
        builder: Where the records go.
        delimiter: What stands between cells.
        comments: Lines before the header.
    """
    table: _Table | None = None
    remaining = blocks(file)
    for block in remaining:
        if b'"' in block or not block.endswith(b"\n") or (table is not None and table.refused >= PATIENCE):
            skipped = comments if table is None else 0
            lines = chain.from_iterable(lines_of(one) for one in chain([block], remaining))
            return (line for index, line in enumerate(lines) if index >= skipped)
        body = block
        if table is None:
            body = _behind_header(block, rows, delimiter, comments)
            table = _Table(builder, rows, delimiter, body)
        if not table.take(body):
            for piece in pieces(body, PIECE_BYTES):
                if table.take(piece):
                    table.refused = 0
                else:
                    table.refused += 1
                    rows.take(csv.reader(lines_of(piece), delimiter=delimiter))
    return iter(())


def _behind_header(block: bytes, rows: TakesRows, delimiter: str, comments: int) -> bytes:
    """Give the lines up to the header to `rows` and return the rest of the first block."""
    number = 0
    while block and not rows.header:
        end = block.find(b"\n") + 1 or len(block)
        if number >= comments:
            rows.take(csv.reader(lines_of(block[:end]), delimiter=delimiter))
        block = block[end:]
        number += 1
    return block


class _Table:
    """Reads blocks of rows whose columns are of one type each."""

    def __init__(self, builder: RunBuilder, rows: TakesRows, delimiter: str, body: bytes) -> None:
        self._builder = builder
        self._rows = rows
        self._delimiter = delimiter
        header = self._header = rows.header
        self._names = {str(number): name for number, name in enumerate(header) if name}
        by_row = not SUMMARY_MARKS.isdisjoint(header) or not MESSAGES.isdisjoint(header) or is_long(header)
        self._usable = len(set(header)) == len(header) and not by_row
        sample = list(csv.reader(lines_of(body[:PIECE_BYTES])[:_SAMPLE], delimiter=delimiter))
        self._types: dict[str, type[pl.DataType]] = {}
        for number in range(len(header)):
            cells = [row[number] for row in sample if len(row) == len(header)]
            numeric = all(parse_number(cell) is not None for cell in cells if cell.strip() and cell not in _NOTHING)
            self._types[str(number)] = pl.Float64 if numeric else pl.String
        self.refused = 0

    def take(self, block: bytes) -> bool:
        """Read rows if polars reads them exactly; return whether it did."""
        if not self._usable or not block or self._rows.header is not self._header:  # another one stood in between
            return not block
        frame = self._parsed(block)
        empty = None if frame is None else add_frame(self._builder, frame)
        self._rows.empty += empty or 0
        return empty is not None

    def _parsed(self, block: bytes) -> pl.DataFrame | None:
        header = self._delimiter.join(self._types).encode() + b"\n"
        try:
            frame = pl.read_csv(
                header + block,
                separator=self._delimiter,
                quote_char=None,
                schema=self._types,
                null_values=list(_NOTHING),
            )
        except (pl.exceptions.PolarsError, ValueError):
            return None
        delimiters = np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == ord(self._delimiter))
        if delimiters != frame.height * (len(self._types) - 1):
            return None
        return frame.select(list(self._names)).rename(self._names)
