"""A sample of a data set: rows spread evenly over it, chosen by a fixed seed, numbered as in the file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mldebug_mcp.batch.columns import depth, row_count
from mldebug_mcp.batch.ragged import Ints, Ragged
from mldebug_mcp.batch.table import Column, Table
from mldebug_mcp.errors import InputError


def thinned(tables: Iterator[Table], rows: int | None, sample: int, first: int = 0) -> Iterator[Table]:
    """Yield the tables with about `sample` of their rows.

    Args:
        tables: The pieces of a file.
        rows: How many rows the file has, or None if it has one piece, which then tells.
        sample: How many rows are wanted.
        first: The number of the first row in the file.

    Raises:
        InputError: no row is wanted.
    """
    if sample < 1:
        raise InputError(f"a sample of {sample} rows holds nothing; ask for 1 or more")
    for table in tables:
        here = rows_of(table)
        share = sample / max(rows if rows is not None else here, 1)
        if here < 2 or share >= 1:
            yield part_of(table, np.arange(here), first) if here >= 2 else table
        else:
            # Seeded by where it stands: a piece gives the same rows whether or not others are read before it.
            chance = np.random.default_rng(first)
            places = np.sort(chance.choice(here, size=max(1, round(share * here)), replace=False))
            yield part_of(table, places, first)
        first += here


def rows_of(table: Table) -> int:
    """Return the rows of a table: those of its first column of more than one dimension, else of any."""
    columns = sorted(table.columns.values(), key=lambda column: depth(column) < 2)
    return row_count(columns[0]) if columns else 0


def part_of(table: Table, places: Ints, first: int) -> Table:
    """Return some rows of a table whose first row has a number in the file."""
    here = rows_of(table)
    columns = {
        name: _rows(column, places) if row_count(column) == here else column for name, column in table.columns.items()
    }
    return Table(columns, {}, table.notes, places + first)


def _rows(column: Column, places: Ints) -> Column:
    if isinstance(column, Ragged):
        return column.take(places)
    if isinstance(column, np.ndarray):
        return column[places]
    return [column[place] for place in places.tolist()]
