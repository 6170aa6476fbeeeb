"""Some rows of a data set, by their numbers: of files in parts only the parts that hold them are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mldebug_mcp.access import open_input
from mldebug_mcp.batch.formats import IN_PARTS, format_of, jsonl
from mldebug_mcp.batch.ragged import Ints, Ragged, offsets_of
from mldebug_mcp.batch.sample import part_of, rows_of
from mldebug_mcp.batch.table import Column, Table, from_records
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import counted, shorten


def count_rows(path: Path) -> int:
    """Return how many rows a data set has; raises InputError if it cannot be read."""
    reader = format_of(path)
    if reader.NAME in IN_PARTS:
        return reader.rows(path) or 0
    if reader.NAME == jsonl.NAME:
        return sum(1 for _ in _lines(path))
    return sum(map(rows_of, reader.tables(path)))


def picked(path: Path, numbers: Sequence[int]) -> Iterator[Table]:
    """Yield the rows of these numbers (from 0) as one table; those that are not there are left out.

    Raises:
        InputError: none of them is there, or the data cannot be read.
    """
    wanted = np.unique(np.array(numbers, np.int64))
    found = [table for table in _tables_with(path, wanted) if table.numbers is not None and len(table.numbers)]
    if not found:
        raise InputError(
            f"{shorten(str(path), 200)}: none of the rows asked for is in it; it has "
            f"{counted(count_rows(path), 'row')}, numbered from 0"
        )
    yield joined(found)


def joined(tables: Sequence[Table]) -> Table:
    """Return tables of the same file as one; a column that only some have is left out."""
    first, *others = tables
    if not others:
        return first
    shared = [name for name in first.columns if all(name in other.columns for other in others)]
    columns = {name: _joined([table.columns[name] for table in tables]) for name in shared}
    numbers = [table.numbers for table in tables if table.numbers is not None]
    return replace(first, columns=columns, numbers=np.concatenate(numbers), notes=list(first.notes))


def _tables_with(path: Path, wanted: Ints) -> Iterator[Table]:
    reader = format_of(path)
    if reader.NAME == jsonl.NAME:
        yield from _of_lines(path, wanted)
        return
    if reader.NAME not in IN_PARTS:
        yield from _with_numbers(reader.tables(path), wanted, 0)
        return
    parts = IN_PARTS[reader.NAME].parts(path)
    ends = [part.first for part in parts[1:]] + [np.iinfo(np.int64).max]
    for part, end in zip(parts, ends, strict=True):
        if np.any((wanted >= part.first) & (wanted < end)):
            yield from _with_numbers(IN_PARTS[reader.NAME].part_tables(part), wanted, part.first)


def _with_numbers(tables: Iterator[Table], wanted: Ints, first: int) -> Iterator[Table]:
    for table in tables:
        here = rows_of(table)
        places = wanted[(wanted >= first) & (wanted < first + here)] - first
        if len(places):
            yield part_of(table, places, first)
        first += here
        if first > wanted[-1]:
            return


def _of_lines(path: Path, wanted: Ints) -> Iterator[Table]:
    """Yield the wanted lines; only they are parsed."""
    sought, last = set(wanted.tolist()), int(wanted[-1])
    numbers, records = [], []
    for number, line in enumerate(_lines(path)):
        record = jsonl.object_in(line) if number in sought else None
        if record is not None:
            numbers.append(number)
            records.append(record)
        if number >= last:
            break
    yield replace(from_records(records), numbers=np.array(numbers, np.int64), rows_without={})


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines that hold rows."""
    with open_input(path) as file:
        while line := file.readline(jsonl.MAX_LINE):
            if line.lstrip(b"\xef\xbb\xbf \t")[:1] == b"{":
                yield line


def _joined(columns: Sequence[Column]) -> Column:
    if all(isinstance(one, Ragged) for one in columns):
        ragged = [one for one in columns if isinstance(one, Ragged)]
        lengths = np.concatenate([one.lengths for one in ragged])
        return Ragged(np.concatenate([one.flat for one in ragged]), offsets_of(lengths))
    arrays = [one for one in columns if isinstance(one, np.ndarray)]
    if len(arrays) == len(columns) and len({one.shape[1:] for one in arrays}) == 1:
        return np.concatenate(arrays)
    return [value for one in columns for value in _values(one)]


def _values(column: Column) -> list[object]:
    if isinstance(column, Ragged):
        return [column.row(index).tolist() for index in range(column.rows)]
    return list(column)
