"""Columns of bare numbers without a header: one value per line or item of a list, or values with their step."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.names.metrics import is_measured
from mldebug_mcp.logs.numbers import parse_numbers, to_number

NAME = "bare_columns"

MAX_COLUMNS = 20
MIN_ROWS = 3
MIN_SHARE_OF_NUMBERS = 0.6
"""Share of lines that must be numbers if others stand between them; chosen by hand."""
_LOSS = regex(r"loss", re.IGNORECASE)
_TRAINING = regex(r"^[ \t]{0,80}(?:saving|loading)\b.*\b(?:model|checkpoint)", re.IGNORECASE | re.MULTILINE)
_OF_PHASE = regex(r"(?:train|val|valid|eval|test)_(?!.*(?:log|output|history|result|values|losses|data))[a-z]\w*", re.I)
"""A file that is called by a phase is called by its metric, known or not: "train_beta.txt"."""
_LOOKED_AT = 200
_COMMAND = regex(r"\W{0,4}(?:tail|head|cat|less|more)\s")
"""The command that showed the columns, copied with them."""
_COUNTED = regex(r"^(\s*\d+):(?=\s)")


def matches(file: LogFile) -> bool:
    """Its first lines are the same small number of numbers each, and nothing else."""
    lines = [line for line in file.head.splitlines()[:_LOOKED_AT] if line.strip(" \t.…")]
    lines = lines[1:] if lines and _COMMAND.match(lines[0]) else lines
    if not lines or not _numbers_in(lines[0]):
        return False
    rows = [_numbers_in(line) for line in lines]
    if len(file.head) < file.size:
        rows = rows[:-1]
    widths = {len(row) if row is not None else 0 for row in rows}
    if len(rows) < MIN_ROWS or rows[0] is None or len(rows[0]) > MAX_COLUMNS:
        return False
    return len(widths) == 1 or _is_counted([row for row in rows if row is not None], len(rows))


def _numbers_in(line: str) -> list[float] | None:
    """Return the numbers of a line that holds nothing else; the first may count the others: "40: 0.2"."""
    return parse_numbers(_COUNTED.sub(r"\1 ", line), MAX_COLUMNS + 1)


def _is_counted(rows: list[list[float]], lines: int) -> bool:
    """Say whether most lines are a step and values, and what stands between them is talk."""
    alike = {len(row) for row in rows} == {len(rows[0])}
    return (
        alike
        and len(rows[0]) > 1
        and len(rows) >= max(MIN_ROWS, MIN_SHARE_OF_NUMBERS * lines)
        and _counts(np.array(rows)[:, 0])
    )


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the columns.

    The one that goes up by whole numbers is the step; of two in front of the values, the first is the epoch. The first
    of the others is the loss if the file's name says so. It is also the loss if what stands between the numbers is of
    models and checkpoints.
    """
    rows = []
    skipped = 0
    width = 0
    for line in file.lines():
        row = _numbers_in(line) if line.strip() else None
        if row is not None and len(row) == (width or len(row)):
            width = len(row)
            rows.append(row)
        elif line.strip(" \t.…"):
            skipped += 1
    take_rows(np.array(rows), file, builder)
    if skipped:
        builder.note(f"skipped {skipped} line(s) that are not {width} numbers")


def rows_in(document: object) -> NDArray[np.float64] | None:
    """Return the rows of a JSON list that holds nothing but numbers, or rows of as many numbers; None for others.

    A null stands for NaN, which JSON cannot write.
    """
    if not isinstance(document, list) or len(document) < MIN_ROWS or isinstance(document[0], dict):
        return None
    rows = [item if isinstance(item, list) else [item] for item in document]
    width = len(rows[0])
    if not 0 < width <= MAX_COLUMNS or any(len(row) != width for row in rows):
        return None
    numbers = [[math.nan if cell is None else to_number(cell) for cell in row] for row in rows]
    table = np.array(numbers, dtype=np.float64) if all(None not in row for row in numbers) else None
    return None if table is None or np.isnan(table).all() else table


def take_rows(table: NDArray[np.float64], file: LogFile, builder: RunBuilder) -> None:
    """Give rows of numbers without names to the builder; see `read`.

    The rows have the shape (rows, columns); what the file is called may say what they are.
    """
    width = table.shape[1]
    counters = [index for index in range(width) if _counts(table[:, index])] if width > 1 else []
    step = counters[0] if counters else None
    epoch = None
    if counters[:2] == [0, 1] and width > len(counters[:2]) and np.ptp(table[:, 1]) > np.ptp(table[:, 0]):
        epoch, step = 0, 1  # d3rlpy: "1,50,0.0029"
    values = [index for index in range(width) if index not in (epoch, step)]
    metric = _metric(file, alone=len(values) == 1)
    names = {index: metric if number == 0 else f"column_{index + 1}" for number, index in enumerate(values)}
    if step is not None:
        names[step] = "step"
    if epoch is not None:
        names[epoch] = "epoch"
    builder.columns({name: table[:, index] for index, name in names.items()}, {})
    listed = ", ".join(f"column {index + 1} = {name}" for index, name in sorted(names.items()))
    builder.note(f"columns without names: {listed} (guessed from the numbers and the name of the file)")


def _metric(file: LogFile, *, alone: bool) -> str:
    """Return what the first column of values is: what the file is called, where it has but that one and names it."""
    stem = file.path.stem
    if alone and (is_measured(stem) or _OF_PHASE.fullmatch(stem)):
        return stem
    return "loss" if _LOSS.search(file.path.name) or _TRAINING.search(file.head) else "value"


def _counts(column: NDArray[np.float64]) -> bool:
    return bool(np.all(column == np.round(column))) and bool(np.all(np.diff(column) > 0))
