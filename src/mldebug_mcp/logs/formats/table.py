"""Tables of text: CSV, TSV and the like with a header line, and columns of bare numbers without one."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import are_whole
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean, counted, shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.log_file import LogFile, is_fast, lines_of
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.metrics import (
    COUNTERS,
    canonical,
    is_long,
    is_measured,
    is_telling,
    number_in,
    phase_in,
    tells_kind,
)
from mldebug_mcp.logs.names.quantities import CLOCKS
from mldebug_mcp.logs.numbers import NO_DIGITS, parse_number, parse_numbers, parse_with_unit, to_number
from mldebug_mcp.logs.run_tables import ROWS_LOOKED_AT, advice_on_runs, names_run
from mldebug_mcp.logs.text.counters import bar_in

# The rows of a table of text, one after another, as records.

_TAG = regex(r".*?-tag-(?P<tag>.+)|(?P<name>.+)")
"""What TensorBoard calls the files that it exports: "run-version_7-tag-train_loss.csv"."""
_COMMENT = regex(r"^#+\s*(?=\S)")
"""A header that is a comment, as numpy's `savetxt` writes it."""
_IN_BRACKETS = regex(
    r"(?P<name>[^\[\]]{1,80}?) ?[\[(](?P<phase>[a-z]{2,10})[\])]"
    r"|[\[(](?P<before>[a-z]{2,10})[\])] ?(?P<behind>[^\[\]]{1,80})",
    re.IGNORECASE,
)
MAX_SHOWN = 40
"""Characters of a name or cell that a note shows. Chosen: enough to find it."""


def named_by_its_file(header: list[str], stem: str) -> list[str]:
    """Return a header whose only metric is called "value", as a file of one metric has it, with the metric's name.

    The stem of the file is the tag that TensorBoard exported, or the metric itself.
    """
    named = _TAG.fullmatch(stem)
    others = [name for name in header if name.lower() != "value"]
    if named is None or len(others) != len(header) - 1 or not all(map(_places, others)):
        return header
    metric = named["tag"] or (named["name"] if role_of(named["name"]) is not None else "")
    return [metric if metric and name.lower() == "value" else name for name in header]


def _phase_first(name: str) -> str:
    """Return a name with its phase in brackets, `|g|[train]`, as one that is understood, if it is not by itself."""
    found = _IN_BRACKETS.fullmatch(name)
    if found is None or role_of(name) is not None:
        return name
    bare, phase = found["name"] or found["behind"], phase_in(found["phase"] or found["before"])
    several = (f"{phase}/{bare}", bare) if phase == "train" else (f"{phase}/{bare}",)
    return next((candidate for candidate in several if phase and role_of(candidate) is not None), name)


def _places(name: str) -> bool:
    role = role_of(name)
    return canonical(name) in COUNTERS or (role is not None and role.quantity in CLOCKS)


class Rows:
    """Takes rows of cells, the header first, and counts what is not a record.

    `stem` is the name of the file without its ending.
    """

    def __init__(self, builder: RunBuilder, stem: str) -> None:
        self._builder = builder
        self._stem = stem
        self._texts: frozenset[str] = frozenset()
        self.header: list[str] = []
        self._first: list[str] = []
        self.ragged = 0
        self.empty = 0
        self._numeric: set[str] = set()
        self._words: Counter[str] = Counter()
        self._word: dict[str, str] = {}

    def take(self, rows: Iterable[list[str]]) -> None:
        """Read rows; raises csv.Error at a broken one."""
        for row in rows:
            self.take_row(row)

    def take_row(self, row: list[str]) -> bool:
        """Read a row; return whether it holds numbers of a record: a header and what the notes count do not."""
        if not self.header:
            self._head(row)
        elif [cell.strip() for cell in row] == self._first:
            self._builder.new_part()
        elif len(row) != len(self.header) and self._is_another_head(row):
            self._head(row)
        elif len(row) != len(self.header):
            self.ragged += bool(row)
        else:
            named = zip(self.header, row, strict=True)
            values = {name: self._value(name, cell) for name, cell in named if name}
            recorded = self._builder.record(values)
            self.empty += not recorded
            return recorded
        return False

    def _head(self, row: list[str]) -> None:
        self._first = [re.sub(r"\s+", " ", name).strip() for name in row]
        first = _COMMENT.sub("", self._first[0]) if self._first else ""
        self.header = named_by_its_file(list(map(_phase_first, [first, *self._first[1:]])), self._stem)
        long = is_long(self.header)
        self._texts = frozenset(name for name in self.header if long or tells_kind(name))

    def _is_another_head(self, row: list[str]) -> bool:
        """Say whether a row names other columns for the rows below it, as a program prints them for evaluation."""
        names = [cell.strip() for cell in row]
        return (
            names[:1] == self._first[:1]
            and all(parse_number(name) is None for name in names)
            and any(map(is_telling, names))
        )

    def _value(self, name: str, cell: str) -> object:
        """Return the number of a cell, or its text where that may tell of what the others are."""
        if names_run(name):
            return cell.strip()
        number = number_in(name, cell)
        if number is not None:
            self._numeric.add(name)
        elif cell.strip():
            self._words[name] += 1
            self._word.setdefault(name, cell)
        return cell if number is None and name in self._texts else number

    def tell(self, builder: RunBuilder) -> None:
        """Say in the notes what was no record."""
        builder.skipped(self.ragged, "row(s) with another number of cells than the header")
        builder.skipped(self.empty, "row(s) without a number")
        for name, count in self._words.items():
            if (name in self._numeric or is_measured(name)) and name not in self._texts:
                builder.note(
                    f"{counted(count, 'cell')} of {shorten(name, MAX_SHOWN)} hold no number, such as "
                    f"{shorten(self._word[name], MAX_SHOWN)!r}: left out"
                )
        for name, count in Counter(filter(None, self.header)).items():
            if count > 1:
                builder.note(f"{count} columns are named {shorten(name, MAX_SHOWN)}: the last of them is read")


# Tables: CSV, TSV and the like, with a header line.


_PAIR = regex(r"[A-Za-z)'\"] ?[:=] ?[\[(]?-?\d")
_PAIR_NAME = regex(r"[A-Za-z)] ?[:=]\s*$")
_THOUSANDS = regex(r"[A-Za-z] +\d{1,3},\d{3}(?!\d)")
"""A number behind a word, "step 10,000": the comma separates thousands, and no cells."""
_DELIMITERS = ("\t", ",", ";", "|")
_DRAWN_BAR = regex(r"^\||\s\||\|\s")
"""A bar of a table that is drawn, or of a line of text; one that separates cells has no blanks next to it."""
MAX_COMMENTS = 200
"""Lines in which the header of a table is looked for, behind what a script says of the run in comments."""
ROWS_OF_ONE_COLUMN = 3
"""Numbers below a name that make a column of it. Chosen: fewer may be a heading and what is printed under it."""


class TableReader:
    """Tables: CSV, TSV and the like, with a header line. Rows become records, one after another."""

    NAME = "table"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """A header and a row with as many cells, most of them numbers or empty; or one metric and its numbers."""
        return _dialect(file) is not None

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the rows. A header that comes again starts another run; cells that are no numbers are not logged.

        Raises:
            InputError: each row is a run.
        """
        dialect = _dialect(file)
        if dialect is None:
            raise InputError(f"{file.name}: no header line with rows of numbers under it; name a table of metrics")
        _require_records(file)
        delimiter, comments = dialect
        rows = Rows(builder, file.path.stem)
        try:
            lines: Iterator[str] = islice(file.lines(), comments, None)
            if is_fast(file):
                from mldebug_mcp.logs.formats.frames import read_fast

                lines = read_fast(file, rows, builder, delimiter, comments)
            rows.take(csv.reader((line + "\n" for line in lines), delimiter=delimiter))
        except csv.Error as error:
            builder.note(f"reading stopped at a broken row ({error})")
        rows.tell(builder)

    @staticmethod
    def follow(file: LogFile, builder: RunBuilder) -> Follower:
        """Return what reads the table as it grows; raises InputError where each row is a run."""
        _require_records(file)
        return Follower(_dialect(file) or (",", 0), Rows(builder, file.path.stem))


def rows_in_table(file: LogFile) -> Iterator[tuple[str, bool]]:
    """Yield each row of a table as text, the header first, with whether it holds numbers of a record."""
    delimiter, comments = _dialect(file) or (",", 0)
    rows = Rows(RunBuilder(), file.path.stem)
    with contextlib.suppress(csv.Error):
        for row in csv.reader((line + "\n" for line in islice(file.lines(), comments, None)), delimiter=delimiter):
            yield delimiter.join(row), rows.take_row(row)


def _dialect(file: LogFile) -> tuple[str, int] | None:
    """Return the delimiter and how many lines stand before the header, which may be the last of the comments."""
    head = clean(file.head) if "\x1b" in file.head else file.head  # colours hold semicolons
    lines = head.splitlines()[:MAX_COMMENTS]
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
    """Return what separates the cells of a header and the rows below it, None if it is not a table."""
    if len(body) < 2 or bar_in(body[0]) is not None:
        return None
    for delimiter in _DELIMITERS:
        if delimiter == "," and any(map(_THOUSANDS.search, body[:3])):
            continue
        if delimiter == "|" and any(map(_DRAWN_BAR.search, body[:3])):
            continue
        try:
            header, *rows = csv.reader(body[:3], delimiter=delimiter)
        except csv.Error:  # a cell longer than any of a table
            continue
        names = [name for name in header if name.strip()]
        if any(_PAIR.search(name) or name.lstrip().startswith(("(", "{")) for name in names):
            continue  # a line of text: "loss: 0,5" cut at its comma
        if any(_PAIR_NAME.search(name) and parse_number(value) is not None for name, value in pairwise(header)):
            continue  # "Iteration: <tab> 18"
        if len(names) < 2 or sum(parse_number(name.rstrip(" :")) is not None for name in names) * 2 > len(names):
            continue
        if rows and len(rows[0]) == len(header) and _is_data(header, rows[0]) and not _are_pairs(header, rows[0]):
            return delimiter
    return "," if _is_one_column(body) else None


def _is_one_column(body: list[str]) -> bool:
    """Say whether the first line is the name of a metric, and each of some lines below it one number."""
    name, *cells = body[: ROWS_OF_ONE_COLUMN + 1]
    numbers = [parse_number(cell.strip()) for cell in cells]
    return len(numbers) == ROWS_OF_ONE_COLUMN and None not in numbers and role_of(name.strip(" \"'")) is not None


def _are_pairs(first: list[str], second: list[str]) -> bool:
    """Return whether both lines name their numbers, `step;1;loss;2.4`: the first is not a header.

    The names differ in nothing but digits, as those of a time do.
    """
    numbers = [parse_number(cell) is not None for cell in first]
    return any(numbers) and all(
        cell.strip().translate(NO_DIGITS) == below.strip().translate(NO_DIGITS)
        for cell, below, is_number in zip(first, second, numbers, strict=True)
        if not is_number
    )


def _is_data(header: list[str], row: list[str]) -> bool:
    """Say whether a third of the cells that hold anything are numbers, with units only below what is none."""
    filled = [(name, cell) for name, cell in zip(header, row, strict=True) if cell.strip()]
    numbers = [parse_number(cell) is not None or _is_measured(name, cell) for name, cell in filled]
    return bool(filled) and sum(numbers) * 3 >= len(filled)


def _is_measured(name: str, cell: str) -> bool:
    return parse_with_unit(cell) is not None and parse_with_unit(name) is None


def runs_listed_in(text: str) -> str:
    """Return why the rows of a table are runs and what to give instead; "" for other texts; see `advice_on_runs`."""
    lines = [line for line in text.splitlines()[: MAX_COMMENTS + ROWS_LOOKED_AT] if not line.startswith("#")]
    for delimiter in _DELIMITERS:
        try:
            header, *rows = csv.reader(lines, delimiter=delimiter)
        except (csv.Error, ValueError):  # a cell longer than any of a table, or no line
            continue
        whole = [dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header) > 1]
        if advice := advice_on_runs(whole):
            return advice
    return ""


def _require_records(file: LogFile) -> None:
    if advice := runs_listed_in(file.head):
        raise InputError(f"{file.name}: {advice}")


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


MAX_COLUMNS = 20
MIN_ROWS = 3
"""Rows of numbers that make a table."""
MIN_SHARE_OF_NUMBERS = 0.6
"""Share of lines that must be numbers if others stand between them; chosen by hand."""
_LOSS = regex(r"loss", re.IGNORECASE)
_TRAINING = regex(r"^[ \t]{0,80}(?:saving|loading)\b.*\b(?:model|checkpoint)", re.IGNORECASE | re.MULTILINE)
_OF_PHASE = regex(r"(?:train|val|valid|eval|test)_(?!.*(?:log|output|history|result|values|losses|data))[a-z]\w*", re.I)
"""A file that is called by a phase is called by its metric, known or not: "train_beta.txt"."""
_LOOKED_AT = 200
"""First lines by which a table is recognised."""
_COMMAND = regex(r"\W{0,4}(?:tail|head|cat|less|more)\s")
"""The command that showed the columns, copied with them."""
_COUNTED = regex(r"^(\s*\d+):(?=\s)")


class BareColumnsReader:
    """Columns of bare numbers without a header: one value per line or item of a list, or values with their step."""

    NAME = "bare_columns"

    @staticmethod
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

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the columns.

        The one that goes up by whole numbers is the step; of two in front of the values, the first is the epoch. The
        first of the others is the loss if the file's name says so. It is also the loss if what stands between the
        numbers is of models and checkpoints.
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
        builder.skipped(skipped, f"line(s) that are not {width} numbers")


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
    return are_whole(column) and bool(np.all(np.diff(column) > 0))
