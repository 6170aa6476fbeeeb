"""From records to a Run.

Columns are gathered as they come; names and steps are settled once everything has been seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs import conventions
from mldebug_mcp.logs.columns import Column, Columns, stretches_of
from mldebug_mcp.logs.error_lines import is_error
from mldebug_mcp.logs.kinds import kind_of_run
from mldebug_mcp.logs.names import COUNTERS, canonical, of_evaluation
from mldebug_mcp.logs.naming import join_counters, join_cut_box, named_columns
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.run import Floats, Message, Run, Scalar
from mldebug_mcp.logs.series import SeriesOfRun
from mldebug_mcp.logs.steps import segment_starts, step_axis
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

ROWS_BETWEEN_CHECKPOINTS = 16_384
MAX_METRICS = 2000
"""Metrics kept per run. A log with more is a parsing accident or hostile; the notes say what was left out."""
KEPT = frozenset({*COUNTERS, "loss", "eval_loss", "reward", "grad_norm", "learning_rate"})
"""... and metrics that are kept beyond that, however late their columns come in a wide table."""
MAX_DEPTH = 8
"""Levels of nesting read from a record."""

MAX_JOINS = 8
"""Restarts of which the notes name the step."""
MAX_MESSAGES = 100
"""Error lines kept per run."""
MAX_MESSAGE = 1000
"""Characters of an error line: an out-of-memory message of a GPU with several processes ends with what is unused."""

MESSAGES = frozenset({"error", "exception", "traceback", "exc_info", "stderr", "message", "msg", "log", "text"})
"""Keys under which a structured log holds what a program says."""

SUMMARY_MARKS = frozenset({"train_runtime", "total_flos"})
"""Not metrics: clocks and counters that the Trainer writes once at the end of training, with its averages."""


class RunBuilder:
    """Collects records in file order.

    Readers call `record` (or `columns`), `note` and `configure`; `build` makes the Run. `wanted_run` is the id or the
    name of the run to read from a store that holds several, `holds_runs` whether one had to be chosen.
    """

    def __init__(self) -> None:
        self._columns: Columns = {}
        self._rows = 0
        self._events = 0
        self._breaks: list[int] = []
        self._resumes: list[int] = []
        self._left_out: Counter[str] = Counter()
        self._config: dict[str, Scalar] = {}
        self._messages: list[Message] = []
        self.formats: list[str] = []
        self.wanted_run = ""
        self.holds_runs = False
        self.notes: list[str] = []

    @property
    def records(self) -> int:
        """Records taken so far."""
        return self._rows - self._events or self._rows

    @property
    def rows(self) -> int:
        """Records and events taken so far: the index of the next one."""
        return self._rows

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

    def resumed(self) -> None:
        """Say that the log tells of a resume here, between records."""
        if self._rows:
            self._resumes.append(self._rows)

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def message(self, line: int, text: str, code: str = "") -> None:
        """Keep a line that reads like an error: the first ones, as later ones are mostly their echo, and the last."""
        self._messages[MAX_MESSAGES - 1 :] = [Message(line, shorten(text, MAX_MESSAGE), self.records, code)]

    def message_goes_on(self, text: str) -> None:
        """Add a line, without the rank before it, to the message that was kept last."""
        last = self._messages[-1]
        self._messages[-1] = replace(last, text=shorten(f"{last.text} {text.rpartition(']:')[2].strip()}", MAX_MESSAGE))

    def configure(self, values: Mapping[str, Scalar]) -> None:
        """Add configuration; what was known before stays."""
        self._config = {**values, **self._config}

    def copy(self) -> RunBuilder:
        """Return a builder of its own with what was taken so far: building settles names, units and notes."""
        other = copy(self)
        other._columns = {name: column.copy() for name, column in self._columns.items()}
        other.notes, other._left_out = list(self.notes), self._left_out.copy()
        other.formats, other._messages, other._breaks = list(self.formats), list(self._messages), list(self._breaks)
        other._resumes = list(self._resumes)
        return other

    def build(self, path: str) -> Run:
        """Make the Run from everything taken."""
        conventions.apply(self, self._columns)
        join_counters(self._columns)
        join_cut_box(self._columns)
        named = named_columns(self, self._columns)
        step, step_name = step_axis(self, named)
        metrics = {name: column for name, column in named.items() if name not in COUNTERS}
        starts = segment_starts(self, step, self._breaks, metrics)
        made = SeriesOfRun({name: one for name, one in named.items() if name != step_name}, step, starts)
        series = made.whole()
        segments = made.segments(series)
        if len(segments) > 1:
            joins = ", ".join(f"{segment.first_step:g}" for segment in segments[1 : MAX_JOINS + 1])
            joins += ", …" if len(segments) - 1 > MAX_JOINS else ""
            self.note(
                f"the {step_name} counter restarts {len(segments) - 1} time(s) (at {joins}): "
                "each stretch is judged by itself"
            )
        made.remark(self)
        if self._left_out:
            some = ", ".join(repr(name) for name, _ in self._left_out.most_common(3))
            self.note(
                f"left out {len(self._left_out):,} of more than {MAX_METRICS} metrics in one log: {some}"
                f"{', …' if len(self._left_out) > 3 else ''}"
            )
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
            resumes=tuple(dict.fromkeys(float(step[row]) for row in self._resumes if row < len(step))),
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
            if len(self._columns) >= (2 * MAX_METRICS if canonical(name) in KEPT else MAX_METRICS):
                self._left_out[shorten(name, 60)] += 1
                return None
            column = self._columns[name] = Column()
        return column
