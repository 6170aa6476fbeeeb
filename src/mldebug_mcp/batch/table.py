"""What the readers of files return.

A table holds columns of one piece of a file, a part is a stretch that can be read alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Ints, Ragged
from mldebug_mcp.core.text import shorten

Column = Ragged | npt.NDArray[np.generic] | list[object]


@dataclass(slots=True)
class Table:
    """Columns of a file, or of one piece of it.

    Args:
        columns: By name. Lists of whole numbers as `Ragged`, tensors as arrays, everything else as a list of values.
        rows_without: For rows given one by one: which rows lack a column that others have.
        notes: What was skipped.
        numbers: The rows' numbers in the file, where only some of them are here.
        others: For token rows made of text: the columns in which rows with the same text may still differ.
        shard: Which file of several it is from.
        padded: Whether rows may be padded; the text of a stream and of its documents is not.
        stream: All tokens of a piece of a stream, whose rows are cuts of it at a fixed width, and not documents.
        tail: The last tokens of a stream, fewer than a window.
        cut_off: Bytes behind the last whole token.
        suggests: The purpose that the columns of text suggested before they were tokenized, and why.
        corrupt: Rows of this table that do not match their checksums, each with the byte of the file where it begins.
    """

    columns: dict[str, Column]
    rows_without: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    numbers: Ints | None = None
    others: tuple[str, ...] = ()
    shard: str = ""
    stream: npt.NDArray[np.integer] | None = None
    padded: bool = True
    tail: npt.NDArray[np.integer] | None = None
    cut_off: int = 0
    suggests: tuple[Literal["generation", "classification"], str] | None = None
    corrupt: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scalars = [name for name, column in self.columns.items() if getattr(column, "shape", None) == ()]
        for name in scalars:
            del self.columns[name]
        left_out = (f"{shorten(name, 60)}: left out, as it is one value and not one for each row" for name in scalars)
        self.notes = [*self.notes, *left_out]


MISSING_SHOWN = 1000
MOST_CELLS = 20_000_000
"""Rows times columns that are laid out at a time: rows with keys of their own would fill the memory with nothing."""


def from_records(records: Sequence[Mapping[str, object]], *, first: int = 0) -> Table:
    """Make a table of rows given one by one. A row that lacks a column gets None there, and is listed."""
    held = Counter(name for record in records for name in record)
    most = max(1, MOST_CELLS // max(1, len(records)))
    names = list(held) if len(held) <= most else [name for name, _ in held.most_common(most)]
    columns: dict[str, Column] = {name: [record.get(name) for record in records] for name in names}
    without = {
        name: [first + number for number, record in enumerate(records) if record.get(name) is None][:MISSING_SHOWN]
        for name in names
    }
    notes = [f"left out the {len(held) - most:,} rarest of {len(held):,} columns"] if len(held) > most else []
    return Table(columns, {name: rows for name, rows in without.items() if rows}, notes)


def from_mapping(values: Mapping[str, object]) -> Table:
    """Make a table of a mapping from column names to rows, or of one row."""
    columns: dict[str, Column] = {}
    for name, value in values.items():
        columns[str(name)] = [value] if isinstance(value, (str, int, float)) or value is None else _listed(value)
        if isinstance(value, Mapping):
            columns |= {path: _listed(leaf) for path, leaf in leaves(str(name), value) if not np.isscalar(leaf)}
    return Table(columns)


MAX_NESTING = 4
"""Mappings within mappings that are looked into. Chosen: an observation's camera's image lies three deep."""
MAX_LEAVES = 100
"""Values of one mapping that are looked at. Chosen: more than any batch has."""


def leaves(name: str, value: Mapping[Any, object]) -> Iterator[tuple[str, object]]:
    """Yield what the mappings within a mapping hold, named by the way there: `inputs.image`."""
    return islice(_leaves(name, value, MAX_NESTING), MAX_LEAVES)


def _leaves(name: str, value: Mapping[Any, object], left: int) -> Iterator[tuple[str, object]]:
    for key, inner in value.items():
        path = f"{name}.{key}"
        if not isinstance(inner, Mapping):
            yield path, inner
        elif left:
            yield from _leaves(path, inner, left - 1)


def _listed(value: object) -> Column:
    if isinstance(value, np.ndarray):
        return value
    return list(value) if isinstance(value, (list, tuple)) else [value]


def records_in(value: object) -> list[Mapping[str, object]] | None:
    """Return the rows if a value is a list of objects, else None."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return value
    return None


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups of a parquet file or record batches of an Arrow file, from `start` up to `stop`.

    `first` is the number of the first row in the data set. A format that is read in one go has the whole path as file.
    """

    file: Path
    start: int = 0
    stop: int = 0
    first: int = 0


def packed(files: Iterable[tuple[Path, Sequence[tuple[int, int]]]], most_bytes: int) -> list[Part]:
    """Return the parts of a data set: as many neighbouring groups of a file each as `most_bytes` hold, or one."""
    parts: list[Part] = []
    first = 0
    for file, groups in files:
        parts += _parts_of(file, groups, first, most_bytes)
        first += sum(rows for rows, _ in groups)
    return parts


def _parts_of(file: Path, groups: Sequence[tuple[int, int]], first: int, most_bytes: int) -> list[Part]:
    parts: list[Part] = []
    start = size = rows = 0
    for number, (group_rows, group_bytes) in enumerate(groups):
        if number > start and size + group_bytes > most_bytes:
            parts.append(Part(file, start, number, first))
            start, first, size, rows = number, first + rows, 0, 0
        size, rows = size + group_bytes, rows + group_rows
    return [*parts, Part(file, start, len(groups), first)] if groups else parts
