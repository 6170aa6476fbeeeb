"""Columns of bare numbers without a header: one value per line, or values with their step."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.source import LogFile

NAME = "bare_columns"

MAX_COLUMNS = 20
_LOOKED_AT = 200


def matches(file: LogFile) -> bool:
    """Its first lines are the same small number of numbers each, and nothing else."""
    rows = [_numbers(line) for line in file.head.splitlines()[:_LOOKED_AT] if line.strip()]
    if len(file.head) < file.size:
        rows = rows[:-1]
    widths = {len(row) if row is not None else 0 for row in rows}
    return len(rows) >= 3 and len(widths) == 1 and 0 < max(widths) <= MAX_COLUMNS


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the columns.

    The one that goes up by whole numbers is the step; the first of the others is the loss if the file's name says so.
    """
    rows = []
    skipped = 0
    width = 0
    for line in file.lines():
        row = _numbers(line) if line.strip() else None
        if row is not None and len(row) == (width or len(row)):
            width = len(row)
            rows.append(row)
        elif line.strip():
            skipped += 1
    table = np.array(rows)
    steps = [index for index in range(width) if _counts(table[:, index])] if width > 1 else []
    step = steps[0] if steps else None
    metric = "loss" if "loss" in file.path.name.lower() else "value"
    values = [index for index in range(width) if index != step]
    names = {index: metric if number == 0 else f"column_{index + 1}" for number, index in enumerate(values)}
    if step is not None:
        names[step] = "step"
    builder.columns({name: table[:, index] for index, name in names.items()}, {})
    told = ", ".join(f"column {index + 1} = {name}" for index, name in sorted(names.items()))
    builder.note(f"columns without names: {told} (guessed from the numbers and the name of the file)")
    if skipped:
        builder.note(f"skipped {skipped} line(s) that are not {width} numbers")


def _numbers(line: str) -> list[float] | None:
    cells = line.replace(",", " ").replace("\t", " ").split()
    numbers = [parse_number(cell) for cell in cells[: MAX_COLUMNS + 1]]
    return None if None in numbers else [number for number in numbers if number is not None]


def _counts(column: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
    return bool(np.all(column == np.round(column))) and bool(np.all(np.diff(column) > 0))
