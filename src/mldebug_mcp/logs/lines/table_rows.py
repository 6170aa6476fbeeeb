"""Rows of a printed table that come again and again → records, many at once: rows of one skeleton are of one shape."""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bars import bar_in
from mldebug_mcp.logs.lines.box_shapes import is_special, kept_as_told, untold
from mldebug_mcp.logs.lines.boxes import is_rule, name_in_row
from mldebug_mcp.logs.lines.lots import Lot
from mldebug_mcp.logs.lines.rich_bars import RichBar
from mldebug_mcp.logs.lines.said import Said
from mldebug_mcp.logs.lines.shapes import Shape, learn
from mldebug_mcp.logs.lines.skeletons import Skeletons
from mldebug_mcp.logs.lines.tables import Layout, Table

MAX_KINDS = 200
"""Kinds of rows that are remembered."""


class RowShapes:
    """What is known of the rows of tables, by the table's layout and the row's skeleton."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[Layout, bytes], Shape | None] = {}

    def shape_of(self, skeletons: Skeletons, line: int, table: Table) -> Shape | None:
        """Return the shape of a row of the open table, None if it has none that is sure."""
        key = (table.layout, untold(skeletons.keys[line]))
        if key not in self._shapes and len(self._shapes) < MAX_KINDS:
            self._shapes[key] = _learn(skeletons, line, table)
        return self._shapes.get(key)


def alike_from(skeletons: Skeletons, line: int) -> int:
    """Return the line behind those from `line` on whose skeletons differ in nothing but how numbers are written."""
    keys, wanted = skeletons.keys, untold(skeletons.keys[line])
    alike = {keys[line]}
    while line < len(keys) and (keys[line] in alike or untold(keys[line]) == wanted):
        alike.add(keys[line])
        line += 1
    return line


def take_rows(skeletons: Skeletons, first: int, last: int, shape: Shape, assembler: Assembler) -> None:
    """Take rows of one shape, the lines first <= line < last, with no line above belonging to their records."""
    width = int(skeletons.first[first + 1] - skeletons.first[first])
    columns = shape.columns(skeletons.rows(np.arange(first, last), width))
    record = shape.like.record or {}
    lot = Lot(None, dict(zip(record, columns, strict=True)), np.arange(last - first))
    assembler.many_together([lot], last - first)


def _learn(skeletons: Skeletons, line: int, table: Table) -> Shape | None:
    def read(text: str) -> Said:
        scratch = deepcopy(table)
        bare = not is_special(text) and not is_rule(text) and name_in_row(text) is None and bar_in(text) is None
        if not bare or RichBar().take(text) or not table.is_in_order(text):
            return Said()
        row = scratch.take(text)
        goes_on = scratch.layout == table.layout and scratch.expects_row
        return Said(record=dict(row)) if row and goes_on and table.tells and kept_as_told(row) else Said()

    shape = learn(skeletons.line(line), skeletons.numbers_in(line), read)
    return None if shape is None or shape.fixed or shape.short or not shape.like.record else shape
