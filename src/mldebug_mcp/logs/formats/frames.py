"""JSON lines and tables by the block, tables in memory and parquet files → records.

Polars parses, and a count proves that nothing is lost. Every block that polars does not read exactly goes back to the
caller, who reads it line by line or row by row: first cut into pieces, so that one odd line costs little.
"""

from __future__ import annotations

import csv
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.datatypes import DataTypeClass

from mldebug_mcp.core.access import library_path
from mldebug_mcp.core.arrays import slices_of
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import seconds_left
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.attempts import EVENTS, RESUMES
from mldebug_mcp.logs.builder import MESSAGES, RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.endings import ERROR_HINTS, is_error
from mldebug_mcp.logs.json_yaml import parse_object
from mldebug_mcp.logs.log_file import PIECE_BYTES, LogFile, blocks, lines_of, pieces
from mldebug_mcp.logs.names.metrics import (
    ENVELOPES,
    MAX_RECORD_DEPTH,
    SUMMARY_MARKS,
    evaluated_set,
    is_long,
    named_of_evaluation,
    tells_kind,
)
from mldebug_mcp.logs.numbers import WITH_UNIT, parse_number
from mldebug_mcp.logs.run_tables import names_run

# Tables in memory (polars) → records: what JSON lines, CSV and parquet have in common once they are parsed.

_MAY_SPELL_A_NUMBER = (
    r"(?i)^\s*\[?\s*[-+]?[\d.,]+(?:[ef][-+]?\d+)?[\s%]*\]?\s*$|"
    r"^[\s\[.+-]*(?:nan|inf)(?:inity|\.0|\([a-z]+\))?[\s%]*\]?\s*$|(?:tensor|float\d+)\(|1\.#"
)
"""Matches at least what `numbers.parse_number` takes."""
_MAY_SPELL_A_UNIT = rf"^\s*(?:{WITH_UNIT}|\d[\d.aceisydhmn ]{{1,40}})\s*$"
"""... and at least what `numbers.parse_with_unit` takes: a unit behind the number, or "1m 10s"."""


def add_frame(builder: RunBuilder, frame: pl.DataFrame, stand_ins: Mapping[float, float] | None = None) -> int | None:
    """Add the rows of a table as records and return how many of them hold no number.

    Flags, times, lists and text are passed over, but for text that tells which rows are of evaluation. Return None,
    with nothing added, where each record has to be looked at: text may spell a number or be an error, or a name and a
    value be a metric.

    Args:
        builder: Where the records go.
        frame: The table; nested columns become `outer/inner`.
        stand_ins: Numbers that stand for others, such as for NaN; their negatives stand for the negatives.
    """
    found = None if is_long(frame.columns) or _holds_error(frame) else _numbers_in(frame)
    if found is None:
        return None
    numbers, evaluated, labels = found
    values: dict[str, Floats] = {}
    logged: dict[str, NDArray[np.bool_]] = {}
    # Columns without nulls are not copied; of those with them, polars would look at each value by itself.
    with_nulls = {name: column for name, column in numbers.items() if column.null_count()}
    filled_columns = pl.DataFrame(with_nulls).select(pl.all().fill_null(np.nan)).to_dict() if with_nulls else {}
    for name, column in numbers.items():
        floats: Floats = filled_columns.get(name, column).to_numpy()
        if column.null_count():
            logged[name] = _shared(_present(column, floats), logged.values())
        values[name] = _with_stand_ins(floats, stand_ins or {})
    rows = frame.height
    if evaluated.any():
        values, logged = _parted(values, logged, evaluated)
    if values and len(logged) < len(values):
        builder.labels({name: column.to_list() for name, column in labels.items()})
        builder.columns(values, logged)
        return 0
    filled = np.any(list(logged.values()), axis=0) if values else np.zeros(rows, dtype=np.bool_)
    builder.labels({name: column.filter(pl.Series(filled)).to_list() for name, column in labels.items()})
    builder.columns(
        {name: column[filled] for name, column in values.items()},
        {name: mask[filled] for name, mask in logged.items()},
    )
    return rows - int(filled.sum())


def _holds_error(frame: pl.DataFrame) -> bool:
    """Say whether what a program says in a row reads like an error."""
    texts = (column for column in frame.iter_columns() if column.name in MESSAGES and column.dtype == pl.String)
    hinted = (column.filter(column.str.contains_any(list(ERROR_HINTS))) for column in texts)
    return any(is_error(text) for column in hinted for text in column.unique().to_list())


def _numbers_in(frame: pl.DataFrame) -> tuple[dict[str, pl.Series], NDArray[np.bool_], dict[str, pl.Series]] | None:
    """Return the columns of numbers, which rows a text tells to be of evaluation, shape (rows,), and the runs of rows.

    None where a text may spell a number, where two columns have one name, or where evaluations are of named sets.
    """
    numbers: dict[str, pl.Series] = {}
    labels: dict[str, pl.Series] = {}
    evaluated = np.zeros(frame.height, dtype=np.bool_)
    for name, column in _leaves(frame):
        if column.dtype.is_numeric():
            if name in numbers:
                return None
            numbers[name] = column.cast(pl.Float64, strict=False)
        elif column.dtype == pl.String and names_run(name):
            labels[name] = column
        elif _may_spell_numbers(column):
            return None
        elif column.dtype == pl.String and tells_kind(name):
            sets = {text: evaluated_set({name: text}) for text in column.unique().to_list() if text is not None}
            if not {*sets.values()} <= {"", "eval"}:
                return None
            texts = [text for text, of in sets.items() if of]
            evaluated |= np.asarray(column.is_in(texts).fill_null(value=False).to_numpy())
    own = [name for name in numbers if named_of_evaluation(name) != name]
    if evaluated.any() and any(named_of_evaluation(name) in numbers for name in own):
        return None
    return numbers, evaluated, labels


def _leaves(frame: pl.DataFrame, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, pl.Series]]:
    for column in frame.iter_columns():
        if isinstance(column.dtype, pl.Struct):
            if depth < MAX_RECORD_DEPTH:
                inside = prefix if column.name in ENVELOPES else f"{prefix}{column.name}/"
                yield from _leaves(column.struct.unnest(), inside, depth + 1)
        else:
            yield prefix + column.name, column


def _parted(
    values: Mapping[str, Floats], logged: Mapping[str, NDArray[np.bool_]], evaluated: NDArray[np.bool_]
) -> tuple[dict[str, Floats], dict[str, NDArray[np.bool_]]]:
    """Return the columns of some rows of training and some of evaluation, those of evaluation under its names."""
    parted: dict[str, Floats] = {}
    where: dict[str, NDArray[np.bool_]] = {}
    everywhere = np.ones(len(evaluated), dtype=np.bool_)
    for name, column in values.items():
        is_logged, own = logged.get(name, everywhere), named_of_evaluation(name)
        masks = {name: is_logged} if own == name else {name: is_logged & ~evaluated, own: is_logged & evaluated}
        for text, mask in masks.items():
            if mask.any():
                parted[text], where[text] = column, _shared(mask, where.values())
    return parted, where


def _present(column: pl.Series, floats: Floats) -> NDArray[np.bool_]:
    """Return where a column is not null, shape (rows,); a null became NaN."""
    missing = np.isnan(floats)
    if np.count_nonzero(missing) == column.null_count():
        return ~missing
    return np.asarray(column.is_not_null().to_numpy())


def _shared(mask: NDArray[np.bool_], others: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return the one of the others that equals a mask, if any does: equal rows are then worked out once."""
    return next((other for other in others if np.array_equal(other, mask)), mask)


def _with_stand_ins(values: Floats, stand_ins: Mapping[float, float]) -> Floats:
    for stand_in, meant in stand_ins.items():
        found = np.abs(values) == abs(stand_in)
        if found.any():
            values = np.where(found, np.where(values == stand_in, meant, -meant), values)
    return values


def _may_spell_numbers(column: pl.Series) -> bool:
    if column.dtype != pl.String:
        return False
    return any(bool(column.str.contains(form).any()) for form in (_MAY_SPELL_A_NUMBER, _MAY_SPELL_A_UNIT))


# JSON lines by the block: polars parses, and a count proves that nothing was lost.
#
# polars reads a line into the columns it was told of, refuses a value of another type, and passes over keys it was not
# told of. So a block is right exactly if polars accepts it and if as many values came out as there are keys in it.
# Every other block goes back to the caller, who reads it line by line: first cut into pieces, so that one odd line
# costs little. Bare NaN and Infinity, which polars refuses, are replaced by numbers that occur nowhere in the block.

MAX_KEYS = 500
"""Keys read by the block; a log with more is read line by line."""
MAX_REFUSED_PIECES = 32
"""Pieces of blocks that polars refuses, one after another, before the rest of the file is read line by line."""
_SAMPLE_LINES = 50
"""Lines from whose keys the columns of a file are taken."""
_JSON_KEY = re.compile(rb'"([^"\\\n]*)"\s*:')
_NAN, _INFINITY = b"-1.7272727272727e-297", b"1.3131313131313e+297"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A block as a table, and the numbers in it that stand for NaN and Infinity."""

    frame: pl.DataFrame
    stand_ins: Mapping[float, float]


def _tells_resume(frame: pl.DataFrame) -> bool:
    """Say whether a row may be the event of a resume, which is read line by line: see `attempts.is_resume`."""
    texts = (column for column in frame.iter_columns() if column.name in EVENTS and column.dtype == pl.String)
    return any(column.str.to_lowercase().str.starts_with(word).any() for column in texts for word in RESUMES)


class FastRecords:
    """Takes blocks of JSON lines."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._types: dict[str, pl.DataType] = {}
        self._refused = 0
        self.empty = 0
        self.took_last = False
        """Whether the last piece was taken here, and not handed back."""

    def learn(self, values: Mapping[str, object]) -> None:
        """Take note of keys by one value of each."""
        for key, value in values.items():
            if key not in self._types:
                kind = _type_of(value)
                if kind is not None:
                    self._types[key] = kind

    def knowing(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass blocks on; take note of the keys of the first one before any is parsed."""
        for block in blocks:
            if not self._types:
                self._learn_from(_whole_lines(block))
            yield block

    def parse(self, block: bytes) -> Parsed | None:
        """Parse the whole lines of a block if polars reads them exactly.

        Nothing is taken yet: this may run in other threads than `take`.
        """
        block = _whole_lines(block)
        types = dict(self._types)
        by_line = not SUMMARY_MARKS.isdisjoint(types) or is_long(types)
        if not types or len(types) > MAX_KEYS or by_line or self._refused >= MAX_REFUSED_PIECES:
            return None
        frame, stand_ins = _parsed(block, types), {}
        if frame is None and (spelled := _with_numbers_for_nan(block)) is not None:
            frame, stand_ins = _parsed(spelled, types), {float(_NAN): np.nan, float(_INFINITY): np.inf}
        return None if frame is None or _tells_resume(frame) else Parsed(frame, stand_ins)

    def take(self, block: bytes, parsed: Parsed | None) -> Iterator[bytes]:
        """Take a block that `parse` has seen; yield the pieces, in their order, that have to be read line by line."""
        whole = _whole_lines(block)
        if self._refused >= MAX_REFUSED_PIECES:
            whole = b""
        elif not (self._take_parsed(parsed) or (self._infer(whole) and self._take_parsed(self.parse(whole)))):
            for piece in pieces(whole, PIECE_BYTES):
                if self._take_parsed(self.parse(piece)):
                    self._refused = 0
                else:
                    self._refused += 1
                    self.took_last = False
                    yield piece
        if len(whole) < len(block):
            self.took_last = False
            yield block[len(whole) :]

    def _learn_from(self, block: bytes) -> None:
        if self._infer(block[: block.rfind(b"\n", 0, PIECE_BYTES) + 1]):
            return
        for line in islice(lines_of(block[:PIECE_BYTES]), _SAMPLE_LINES):
            record = parse_object(line)
            if record is not None:
                self.learn({key: value for key, value in record.items() if value is not None})

    def _infer(self, block: bytes) -> bool:
        """Take note of the keys that polars finds in a block; return whether any is new."""
        # The time that polars takes grows with the square of the number of keys.
        if len(set(_JSON_KEY.findall(block))) > MAX_KEYS:
            return False
        try:
            found = pl.scan_ndjson(block, infer_schema_length=None).collect_schema()
        except (pl.exceptions.PolarsError, ValueError):
            return False
        new = {key: kind for key, dtype in found.items() if key not in self._types and (kind := _readable(dtype))}
        # Of more than 32 keys polars forgets the order.
        self._types |= {key: new[key] for key in sorted(new, key=lambda key: (block.find(f'"{key}"'.encode()), key))}
        return bool(new)

    def _take_parsed(self, parsed: Parsed | None) -> bool:
        """Take what was parsed, if it was and no text in it may spell a number; return whether it was taken."""
        empty = None if parsed is None else add_frame(self._builder, parsed.frame, parsed.stand_ins)
        self.empty += empty or 0
        self.took_last = self.took_last or empty is not None
        return empty is not None


def _whole_lines(block: bytes) -> bytes:
    """Return a block without a last line that has no end: it may still be being written."""
    return block[: block.rfind(b"\n") + 1]


def _parsed(block: bytes, types: Mapping[str, pl.DataType]) -> pl.DataFrame | None:
    try:
        frame = pl.read_ndjson(block, schema=types)
    except (pl.exceptions.PolarsError, ValueError):
        return None
    values = _values_in(frame)
    if values == _count_of(":", block):
        return frame
    # Times in text hold colons too, and a null is a key without a value: count again, more slowly.
    nulls = block.count(b'": null') + block.count(b'":null')
    keys = block.count(b'":') + block.count(b'" :')
    return frame if values + nulls == keys else None


def _count_of(character: str, block: bytes) -> int:
    """Count a character by parts of the block: what is compared as a whole takes as much new memory as the block."""
    values = np.frombuffer(block, dtype=np.uint8)
    return sum(int(np.count_nonzero(values[part] == ord(character))) for part in slices_of(len(values)))


def _type_of(value: object, depth: int = 0) -> pl.DataType | None:
    if isinstance(value, bool):
        return pl.Boolean()
    if isinstance(value, int | float):
        return pl.Float64()
    if isinstance(value, str):
        return pl.String()
    if isinstance(value, dict) and value and depth < 4:
        inner = {key: _type_of(item, depth + 1) for key, item in value.items()}
        if all(kind is not None for kind in inner.values()):
            return pl.Struct({key: kind for key, kind in inner.items() if kind is not None})
    return None


def _readable(dtype: pl.DataType | DataTypeClass) -> pl.DataType | None:
    """Return the type as which a column of this type is read, or None if it is not read by the block."""
    if dtype.is_numeric():
        return pl.Float64()
    if isinstance(dtype, pl.Struct):
        inner = {field.name: _readable(field.dtype) for field in dtype.fields}
        if all(inner.values()):
            return pl.Struct({key: kind for key, kind in inner.items() if kind is not None})
        return None
    return next((kind() for kind in (pl.Boolean, pl.String) if dtype == kind), None)


def _values_in(frame: pl.DataFrame) -> int:
    """Return how many keys had a value; an object counts for itself and for what it holds."""
    count = 0
    for column in frame.iter_columns():
        count += len(column) - column.null_count()
        if isinstance(column.dtype, pl.Struct):
            count += _values_in(column.struct.unnest())
    return count


def _with_numbers_for_nan(block: bytes) -> bytes | None:
    """Return the block with stand-ins for NaN and Infinity, or None if it has none or has the stand-ins already."""
    if b"NaN" not in block and b"Infinity" not in block:
        return None
    if _NAN in block or _INFINITY in block:
        return None
    return block.replace(b"NaN", _NAN).replace(b"Infinity", _INFINITY)


# Tables by the block: polars parses, and a count of delimiters proves that no row is odd.
#
# What polars does not read exactly as `table` does goes row by row: first cut into pieces, so that one odd row costs
# little. A quote may hold line ends, so from the first one on everything goes row by row.

_SAMPLE_ROWS = 100
"""Rows from which the types of the columns are taken."""
_NOTHING = ("None", "none", "NA", "N/A", "null", "NULL", "-", "--")
"""Cells that mean a missing value, besides empty ones."""


class TakesRows(Protocol):
    """Reads rows one by one; `header` holds the names of the columns once they are known, `empty` rows are counted."""

    header: list[str]
    empty: int

    def take(self, rows: Iterable[list[str]]) -> None:
        """Read rows."""


def read_fast(file: LogFile, rows: TakesRows, builder: RunBuilder, delimiter: str, comments: int) -> Iterator[str]:
    """Read a table by blocks as far as that goes; return the lines that are left."""
    table: _Table | None = None
    remaining = blocks(file)
    for block in remaining:
        if b'"' in block or not block.endswith(b"\n") or (table is not None and table.refused >= MAX_REFUSED_PIECES):
            skipped = comments if table is None else 0
            lines = chain.from_iterable(lines_of(chunk) for chunk in chain([block], remaining))
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
        by_row = not SUMMARY_MARKS.isdisjoint(header) or is_long(header)
        self._usable = len(set(header)) == len(header) and not by_row
        sample = list(csv.reader(lines_of(body[:PIECE_BYTES])[:_SAMPLE_ROWS], delimiter=delimiter))
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
        if _count_of(self._delimiter, block) != frame.height * (len(self._types) - 1):
            return None
        return frame.select(list(self._names)).rename(self._names)


_WORKER = Path(__file__).with_name("parquet_worker.py")
_MAX_WORKER_SECONDS = 300.0
"""Seconds after which a worker that decodes is ended."""
_START_SECONDS = 2.0
"""Processor time to import the library that decodes."""
_ROWS_AT_A_TIME = 500_000
"""Rows that the worker decodes together."""
_MAX_CELLS = 2_000_000_000
"""Cells of a table that are decoded, whatever its size."""
_MANY_CELLS = 10_000_000
"""Cells of a table that are decoded, however small its file."""
_CELLS_PER_BYTE = 20
"""A small file can stand for a huge table: runs of one value take no space. Up to `_MANY_CELLS` that does no harm."""
_MAX_COLUMNS = 5000
_MAX_PROBLEM = 1000
"""Bytes of the worker's error message that are read."""


class ParquetReader:
    """Parquet: a table of metrics, such as a history exported from a tracker."""

    NAME = "parquet"

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the rows in order; columns without numbers are passed over."""
        empty = 0
        for frame in _frames(file):
            without = add_frame(builder, frame)
            if without is None:  # numbers spelled as text
                without = sum(not builder.record(row) for row in frame.iter_rows(named=True))
            empty += without
        builder.skipped(empty, "row(s) without a number")


def _frames(file: LogFile) -> Iterator[pl.DataFrame]:
    """Yield the table by pieces, as `parquet_worker` decodes them."""
    cells = min(_MAX_CELLS, max(_MANY_CELLS, _CELLS_PER_BYTE * file.size))
    with file.stream() as stream:
        place = "/proc/self/fd/0" if library_path(stream).startswith("/proc") else str(file.path)
        seconds = seconds_left()
        allowed = int(_MAX_WORKER_SECONDS if seconds is None else seconds + _START_SECONDS)
        limits = map(str, (cells, _MAX_COLUMNS, _ROWS_AT_A_TIME, allowed))
        worker = subprocess.Popen(  # noqa: S603 - a script of our own
            [sys.executable, "-P", str(_WORKER), place, *limits],
            stdin=stream, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    timer = threading.Timer(_MAX_WORKER_SECONDS, worker.kill)
    timer.start()
    try:
        assert worker.stdout is not None  # noqa: S101 - it was asked for
        while head := worker.stdout.read(8):
            (length,) = struct.unpack("<Q", head)
            if not length:
                problem = worker.stdout.read(_MAX_PROBLEM).decode("utf-8", errors="replace")
                raise InputError(f"{file.name}: {shorten(problem, 160)}")
            yield pl.read_ipc_stream(worker.stdout.read(length))
        if worker.wait():
            raise InputError(
                f"{file.name}: a damaged parquet file, or one too large: decoding it ended early; write it again"
            )
    finally:
        timer.cancel()
        worker.kill()
        worker.communicate()
