"""From records to a Run.

Columns are gathered as they come; names and steps are settled once everything has been seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs import conventions
from mldebug_mcp.logs.columns import Column, stretches_of
from mldebug_mcp.logs.error_lines import is_error
from mldebug_mcp.logs.kinds import kind_of_run
from mldebug_mcp.logs.names import COUNTERS, canonical, factor, of_evaluation, rank
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.run import Floats, Message, Run, Scalar, Segment, Series
from mldebug_mcp.logs.steps import ascends, segment_starts, step_axis
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

ROWS_BETWEEN_CHECKPOINTS = 16_384
MAX_METRICS = 2000
"""Metrics kept per run. A log with more is a parsing accident or hostile; the notes say what was left out."""
MAX_NAME = 200
"""Characters of a metric name."""
MAX_DEPTH = 8
"""Levels of nesting read from a record."""

MAX_MESSAGES = 100
"""Error lines kept per run."""

MESSAGES = frozenset({"error", "exception", "traceback", "exc_info", "stderr", "message", "msg", "log", "text"})
"""Keys under which a structured log holds what a program says."""

_CLOCK = re.compile(r"_runtime$|_per_second$|^elapsed$|^timestamp$|^_step$")
"""Clocks and counters of records differ each time a step is logged: that says nothing of the log."""

SUMMARY_MARKS = frozenset({"train_runtime", "total_flos"})
"""Not metrics: clocks and counters that the Trainer writes once at the end of training, with its averages."""


class RunBuilder:
    """Collects records in file order.

    Readers call `record` (or `columns`), `note` and `configure`; `build` makes the Run. `wanted_run` is the id or the
    name of the run to read from a store that holds several.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}
        self._rows = 0
        self._events = 0
        self._breaks: list[int] = []
        self._shared_steps: dict[tuple[range, ...], Floats] = {}
        self._left_out: Counter[str] = Counter()
        self._repeated: dict[str, int] = {}
        self._config: dict[str, Scalar] = {}
        self._messages: list[Message] = []
        self.formats: list[str] = []
        self.wanted_run = ""
        self.notes: list[str] = []

    @property
    def records(self) -> int:
        """Records taken so far."""
        return self._rows - self._events or self._rows

    def record(self, values: Mapping[str, object]) -> bool:
        """Take one record; nested mappings become `outer/inner`. Return False if it holds no number."""
        numbers = dict(self._flatten(values))
        for key in MESSAGES & values.keys():
            if isinstance(text := values[key], str) and is_error(text):
                self.message(self._rows + 1, text)
        if not numbers:
            return False
        if not SUMMARY_MARKS.isdisjoint(numbers) and "loss" not in numbers:
            # The Trainer's closing record: its train_loss is the mean over the run, not the loss of a step.
            numbers = {f"summary/{name}": value for name, value in numbers.items() if name not in ("step", "epoch")}
        elif "eval_runtime" in numbers and "loss" not in numbers:
            numbers = {of_evaluation(name): value for name, value in numbers.items()}
        self.numbers(numbers)
        return True

    def numbers(self, values: Mapping[str, float], *, event: bool = False) -> None:
        """Take one record of nothing but numbers. An event, such as a skipped step, does not count as a record."""
        row = self._rows
        for name, value in values.items():
            column = self._columns.get(name)
            if column is None:
                column = self._column(name)
            if column is not None:
                column.append(row, value)
        self._rows += 1
        self._events += event
        if self._rows % ROWS_BETWEEN_CHECKPOINTS == 0:
            checkpoint(f"{self._rows:,} records read")

    def overwrite(self, name: str, values: Mapping[int, float]) -> None:
        """Set a metric at some records, by their index: what only became known once later records were seen."""
        column = self._columns.get(name)
        at, value = column.arrays() if column is not None else (np.empty(0, dtype=np.int64), np.empty(0))
        merged = {**dict(zip(at.tolist(), value.tolist(), strict=True)), **values}
        rows = np.array(sorted(merged), dtype=np.int64)
        self._columns[name] = Column()
        self._columns[name].extend(stretches_of(rows), np.array([merged[row] for row in rows.tolist()]))

    def columns(self, values: Mapping[str, Floats], logged: Mapping[str, NDArray[np.bool_]]) -> None:
        """Take many records at once.

        Args:
            values: Columns of shape (records,).
            logged: For a column that some records lack, which of them hold it, shape (records,). Columns that stand
                in the same records may share it.
        """
        size = len(next(iter(values.values()), ()))
        held = {id(mask): np.flatnonzero(mask) for mask in logged.values()}
        parts = {key: stretches_of(at + self._rows) for key, at in held.items()}
        for name, column_values in values.items():
            key = id(logged.get(name))
            count = len(held[key]) if key in held else size
            if count and (column := self._column(name)) is not None:
                if count == size:
                    column.extend([range(self._rows, self._rows + size)], column_values)
                else:
                    column.extend(parts[key], column_values, held[key])
        self._rows += size

    @property
    def rows(self) -> int:
        """Records and events taken so far: the index of the next one."""
        return self._rows

    def column(self, name: str) -> list[tuple[int, float]]:
        """Return the records of a metric as they came: (index of the record, value)."""
        column = self._columns.get(name)
        if column is None:
            return []
        at, value = column.arrays()
        return list(zip(at.tolist(), value.tolist(), strict=True))

    def new_part(self) -> None:
        """Say that what follows is another file or another run of the same training."""
        if self._rows and (not self._breaks or self._breaks[-1] != self._rows):
            self._breaks.append(self._rows)

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def message(self, line: int, text: str) -> None:
        """Keep a line that reads like an error: the first ones, as later ones are mostly their echo, and the last."""
        self._messages[MAX_MESSAGES - 1 :] = [Message(line, shorten(text, 400), self.records)]

    def configure(self, values: Mapping[str, Scalar]) -> None:
        """Add configuration; what was known before stays."""
        self._config = {**values, **self._config}

    def copy(self) -> RunBuilder:
        """Return a builder of its own with what was taken so far: building settles names, units and notes."""
        other = copy(self)
        other._columns = {name: column.copy() for name, column in self._columns.items()}
        other.notes, other._repeated, other._left_out = list(self.notes), {}, self._left_out.copy()
        other.formats, other._messages, other._breaks = list(self.formats), list(self._messages), list(self._breaks)
        return other

    def build(self, path: str) -> Run:
        """Make the Run from everything taken."""
        conventions.apply(self, self._columns)
        self._join_counters()
        named = self._named_columns()
        step, step_name = step_axis(self, named)
        self._shared_steps = {}
        metrics = {name: column for name, column in named.items() if name not in COUNTERS}
        starts = segment_starts(self, step, self._breaks, metrics)
        series = {name: self._series(name, column, step, starts) for name, column in named.items() if name != step_name}
        segments = _segments(self._pieces(named, step, starts, step_name) if len(starts) > 1 else [series])
        if len(segments) > 1:
            joins = ", ".join(f"{segment.first_step:g}" for segment in segments[1:])
            self.note(
                f"the {step_name} counter restarts {len(segments) - 1} time(s) (at {joins}): "
                "each stretch is judged by itself"
            )
        for name, count in sorted(self._repeated.items(), key=lambda item: (-item[1], item[0]))[:3]:
            self.note(
                f"{name}: {count} value(s) of steps that were logged again with another value are left out: "
                "the last one stands"
            )
        for name, count in self._left_out.most_common(3):
            self.note(f"left out {name!r} ({count} times): more than {MAX_METRICS} metrics in one log")
        return Run(
            path=path,
            formats=tuple(dict.fromkeys(self.formats)),
            series=series,
            config=self._config,
            segments=segments,
            step_name=step_name,
            kind=kind_of_run(series, self._config),
            records=self.records,
            messages=tuple(self._messages),
            notes=tuple(self.notes),
        )

    def _flatten(self, values: Mapping[str, object], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
        for key, value in values.items():
            name = f"{prefix}{key}"
            if isinstance(value, Mapping):
                if depth < MAX_DEPTH:
                    yield from self._flatten(value, f"{name}/", depth + 1)
                continue
            if isinstance(value, str) and "/" in value and canonical(name) == "step":
                value = value.partition("/")[0]  # noqa: PLW2901 - ms-swift: "5/100"
            number = to_number(value)
            if number is not None:
                yield name, number

    def _column(self, name: str) -> Column | None:
        column = self._columns.get(name)
        if column is None:
            if len(self._columns) >= MAX_METRICS:
                self._left_out[shorten(name, 60)] += 1
                return None
            column = self._columns[name] = Column()
        return column

    def _join_counters(self) -> None:
        """Make one counter of several spellings that take turns, each record having one, if together they ascend."""
        for counter in COUNTERS:
            spellings = sorted((raw for raw in self._columns if canonical(raw) == counter), key=rank)
            for raw in spellings[1:]:
                joined = self._columns[spellings[0]].joined(self._columns[raw])
                if joined is not None and bool(np.all(np.diff(joined.values()) >= 0)):
                    self._columns[spellings[0]] = joined
                    del self._columns[raw]

    def _named_columns(self) -> dict[str, Column]:
        """Give each column its canonical name; of several spellings of one metric the closest gets it."""
        named: dict[str, Column] = {}
        for raw in sorted(self._columns, key=lambda raw: (rank(raw), raw != canonical(raw))):
            name = canonical(raw)
            if name in named:
                self.note(f"{shorten(raw, 60)!r} also names the {name}: kept under its own name")
                name = raw if raw not in named else f"{raw} (2)"
            column = self._columns[raw]
            if canonical(raw) == name and factor(raw) != 1.0:
                column.scale(factor(raw))
            named[shorten(name, MAX_NAME)] = column
        order = {id(column): position for position, column in enumerate(self._columns.values())}
        return dict(sorted(named.items(), key=lambda item: order[id(item[1])]))

    def _pieces(
        self, named: Mapping[str, Column], step: Floats, starts: list[int], step_name: str
    ) -> Iterator[dict[str, Series]]:
        for first, last in pairwise([*starts, self._rows]):
            piece: dict[str, Series] = {}
            for name, column in named.items():
                inside = slice(column.before(first), column.before(last))
                if name != step_name and inside.start < inside.stop:
                    steps, value = self._steps_of(column, step)[inside], column.values()[inside]
                    piece[name] = _sorted(Series(name, steps, value))[0]
            yield piece

    def _steps_of(self, column: Column, step: Floats) -> Floats:
        """Return the steps of a metric's values; metrics that stand in the same records share one array."""
        stretches = column.stretches
        if stretches == (range(len(step)),):
            return step
        if stretches is None:
            return step[column.arrays()[0]]
        if stretches not in self._shared_steps:
            parts = [step[stretch.start : stretch.stop] for stretch in stretches]
            self._shared_steps[stretches] = np.concatenate([np.empty(0), *parts])
        return self._shared_steps[stretches]

    def _series(self, name: str, column: Column, step: Floats, starts: list[int]) -> Series:
        """Return a metric over the whole run. After a resume, what was logged again replaces what it repeats."""
        steps, value = self._steps_of(column, step), column.values()
        series = Series(name, steps, value)
        if len(starts) > 1:
            keep = np.ones(len(value), dtype=bool)
            for row in starts[1:]:
                split = column.before(row)
                if split < len(value):
                    keep[:split] &= steps[:split] < steps[split]
            series = series.where(keep)
        series, contradicted = _sorted(series)
        if contradicted and name not in COUNTERS and not _CLOCK.search(name):
            self._repeated[name] = contradicted
        return series


def _sorted(series: Series) -> tuple[Series, int]:
    """Return the series ascending by step, with the last value of each step, and how many other values were dropped."""
    if ascends(series.step):
        return series, 0
    order = np.argsort(series.step, kind="stable")
    step, value = series.step[order], series.value[order]
    last = np.append(step[1:] != step[:-1], True)
    with np.errstate(over="ignore"):  # the distance between the largest numbers of both signs
        other = (step[1:] == step[:-1]) & ~np.isclose(value[1:], value[:-1], equal_nan=True)
    return Series(series.name, step[last], value[last]), int(other.sum())


def _segments(pieces: Iterable[dict[str, Series]]) -> tuple[Segment, ...]:
    segments = []
    for piece in pieces:
        series = {name: one for name, one in piece.items() if len(one)}
        steps = [edge for one in series.values() for edge in (float(one.step[0]), float(one.step[-1]))]
        if steps:
            segments.append(Segment(min(steps), max(steps), series))
    return tuple(segments)
