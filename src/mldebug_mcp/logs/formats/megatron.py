"""Megatron-LM and its children (Megatron-DeepSpeed, GPT-NeoX): ` iteration 10/ 100 | lm loss: 8.7E+00 | ... |`.

Such logs grow to hundreds of megabytes. Blocks of lines are cut at the bars by polars, and cells are read column by
column as long as all lines name the same things; every other line is read by itself, at its place in the order.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.endings import is_error
from mldebug_mcp.logs.log_file import LogFile, blocks, is_fast, lines_of
from mldebug_mcp.logs.numbers import parse_number

if TYPE_CHECKING:
    import polars as pl

NAME = "megatron"

_ITERATION = regex(r"\biteration\s+(\d+)\s*/\s*\d+\s*\|(?P<cells>.*)")
_VALIDATION = regex(
    r"\bvalidation (?:loss|results?) at (?:the end of )?(?:iteration )?(?P<step>\d+)?.*?\|(?P<cells>.*)"
)
_SIGN = regex(r"\biteration\s+\d+\s*/\s*\d+\s*\|[^\n]{0,500}(?:elapsed time per iteration|lm[ _]loss|consumed samples)")
_FIRST = regex(rb"\biteration\s+\d+\s*/\s*\d+\s*\|[^\n]*")
_MAX_SHAPES = 8
"""Shapes of lines in a block that are read by columns."""


def matches(file: LogFile) -> bool:
    """A line in its beginning counts iterations as Megatron does."""
    return _SIGN.search(file.head) is not None


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the lines of iterations and validations and keep those that read like errors."""
    text = Text(builder, fast=is_fast(file))
    if file.is_utf8:
        for block in blocks(file):
            text.take_block(block)
    else:
        for line in file.lines():
            text.take(line)


def follow(file: LogFile, builder: RunBuilder) -> Text:
    """Return what reads the log as it grows."""
    return Text(builder, fast=is_fast(file))


class Text:
    """What has been read of a log so far."""

    def __init__(self, builder: RunBuilder, *, fast: bool) -> None:
        self._builder = builder
        self._fast = fast
        self._line = 0
        self._step: float | None = None

    def take(self, line: str, *, whole: bool = True) -> None:
        """Read one line; the last value of one that is not whole may be cut off."""
        self._line += 1
        if "\x1b" in line:
            line = clean(line)
        if is_error(line):
            self._builder.message(self._line, line)
        record = _record(line if whole else line[: line.rfind("|") + 1], self._step)
        if record:
            self._step = record.get("step", self._step)
            # A validation belongs to the iteration above it and is no record of its own.
            self._builder.numbers(record, event=_ITERATION.search(line) is None)

    def take_block(self, block: bytes) -> None:
        """Read a block of lines."""
        lines = lines_of(block)
        table = _cells(block) if self._fast else None
        if table is None or table.height != len(lines):
            for line in lines[:-1]:
                self.take(line)
            self.take(lines[-1], whole=block.endswith((b"\n", b"\r")))
            return
        fast = _Columns(table)
        before, done = self._line, 0
        for index in np.flatnonzero(~fast.read).tolist():
            if _worth_reading(lines[index]):
                self._emit(fast, done, index)
                done, self._line = index, before + index
                self.take(lines[index])
        self._emit(fast, done, len(lines))
        self._line = before + len(lines)

    def tell(self, builder: RunBuilder) -> None:
        """Say nothing: lines that are no record are most of such a log."""

    def _emit(self, fast: _Columns, first: int, last: int) -> None:
        """Add the lines of iterations among lines[first:last] to the run."""
        rows = slice(*np.searchsorted(fast.lines, [first, last]))
        if rows.start == rows.stop:
            return
        self._step = float(fast.values["step"][rows.stop - 1])
        logged = {name: mask[rows] for name, mask in fast.logged.items()}
        self._builder.columns({name: column[rows] for name, column in fast.values.items()}, logged)


def _worth_reading(line: str) -> bool:
    return "iteration" in line or "validation" in line or is_error(line)


def _record(line: str, step: float | None) -> dict[str, float]:
    """Return what a line reports of an iteration, or of a validation: it belongs to the last step if it names none."""
    iteration = _ITERATION.search(line)
    if iteration is not None:
        return {"step": float(iteration[1]), **_named(iteration["cells"])}
    validation = _VALIDATION.search(line)
    if validation is None:
        return {}
    record = {_of_validation(name): value for name, value in _named(validation["cells"]).items()}
    at = float(validation["step"]) if validation["step"] else step
    return {**record, **({} if at is None else {"step": at})} if record else {}


def _of_validation(name: str) -> str:
    name = re.sub(r"[_ ]value$", "", name)
    return "eval_loss" if name in ("lm loss", "lm_loss") else f"eval_{name}"


def _named(cells: str) -> dict[str, float]:
    """Return the `name: value` pairs between bars."""
    record: dict[str, float] = {}
    for cell in cells.split("|"):
        name, _, text = cell.partition(":")
        number = parse_number(text)
        if number is not None:
            record[name.strip()] = number
    return record


def _cells(block: bytes) -> pl.DataFrame | None:
    """Return the lines of a block cut at their bars, or None if that cannot be done."""
    import polars as pl

    first = _FIRST.search(block)
    if first is None or b"\r" in block or b"\x1b" in block or not block.endswith(b"\n"):
        return None
    # Two cells more than that line has show which lines go on; a line that is longer still is read by itself.
    header = "|".join(map(str, range(first[0].count(b"|") + 3)))
    try:
        return pl.read_csv(
            header.encode() + b"\n" + block,
            separator="|",
            quote_char=None,
            truncate_ragged_lines=True,
            infer_schema=False,
        )
    except (pl.exceptions.PolarsError, ValueError):
        return None


class _Columns:
    """The lines of a block that could be read by columns.

    Args:
        table: The lines, cut at their bars.

    Attributes:
        lines: Indices of the lines that were read, ascending, shape (n,).
        read: Which of the block's lines those are.
        values, logged: The metrics in them, each of shape (n,).
    """

    def __init__(self, table: pl.DataFrame) -> None:
        import polars as pl

        table = table.with_row_index("line").with_columns(
            pl.col("0").str.extract(r"\biteration\s+(\d+)\s*/\s*\d+\s*$").cast(pl.Float64).alias("step")
        )
        rest = table.filter(pl.col("step").is_not_null())
        self.values: dict[str, Floats] = {}
        self.logged: dict[str, NDArray[np.bool_]] = {}
        parts: list[tuple[NDArray[np.int64], dict[str, pl.Series]]] = []
        for _ in range(_MAX_SHAPES):
            if not rest.height:
                break
            cells = [str(cell or "") for cell in rest.row(0)[2:-1]]
            names = _names(cells)
            beyond = [str(number) for number in range(len(names) + 1, len(cells) + 1)]
            if not beyond:
                break
            alike = pl.all_horizontal(
                *(pl.col(cell).str.starts_with(start) for cell, start in names.items()),
                pl.col(beyond[0]).fill_null("").str.strip_chars() == "",
                *(pl.col(cell).is_null() for cell in beyond[1:]),
            )
            shape = rest.filter(alike)
            if not shape.height:
                break
            rest = rest.filter(~alike.fill_null(value=False))
            parts.append((shape["line"].to_numpy().astype(np.int64), _metrics(shape, names)))
        self.lines = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *(lines for lines, _ in parts)]))
        self.read = np.zeros(table.height, dtype=np.bool_)
        self.read[self.lines] = True
        for lines, metrics in parts:
            self._add(np.searchsorted(self.lines, lines), metrics)

    def _add(self, rows: NDArray[np.int64], metrics: dict[str, pl.Series]) -> None:
        for name, column in metrics.items():
            values = self.values.setdefault(name, np.zeros(len(self.lines)))
            values[rows] = column.to_numpy()
            logged = self.logged.setdefault(name, np.zeros(len(self.lines), dtype=np.bool_))
            logged[rows] = column.is_not_null().to_numpy()


def _names(cells: list[str]) -> dict[str, str]:
    """Return how the cells of a line begin, by column: all that stands before a value."""
    named = itertools.takewhile(lambda numbered: ":" in numbered[1], enumerate(cells, start=1))
    return {str(number): cell[: cell.index(":") + 1] for number, cell in named}


def _metrics(shape: pl.DataFrame, names: dict[str, str]) -> dict[str, pl.Series]:
    """Return the metrics of lines that name the same things; null where a value is no number."""
    import polars as pl

    metrics = {"step": shape["step"]}
    for cell, start in names.items():
        text = shape[cell].str.slice(len(start)).str.strip_chars()
        values = text.cast(pl.Float64, strict=False)
        if values.null_count():
            values = pl.Series([parse_number(spelled) for spelled in text.to_list()], dtype=pl.Float64)
        metrics[start[:-1].strip()] = values
    return metrics
