"""From records to a Run.

Columns are gathered as they come; names and steps are settled once everything has been seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import copy

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import replace
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.align import (
    SeriesOfRun,
    events_in_place,
    put_on_one_axis,
    restart_note,
    segment_starts,
    step_axis,
)
from mldebug_mcp.logs.attempts import ProcessStart, Recorded, RecordedLine, put_in_order, split
from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows, stretches_of
from mldebug_mcp.logs.endings import Messages, Tail, is_error
from mldebug_mcp.logs.names import conventions, role_of
from mldebug_mcp.logs.names.conventions import join_counters, join_cut_box, named_columns
from mldebug_mcp.logs.names.lexicon import SET_ASIDE
from mldebug_mcp.logs.names.metrics import (
    COUNTERS,
    Single,
    as_the_trainer_means,
    canonical,
    evaluated_set,
    factor,
    is_loss,
    is_telling,
    named_of_evaluation,
    nulls_in,
    numbers_in,
    single_in,
)
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.run import Incident, Run, Series, TextLine, named_attempt
from mldebug_mcp.logs.run_tables import COMPARED_IN_WORDS, RunLabels, names_run, ranks_among, runs_among
from mldebug_mcp.logs.settings import Settings, settings_printed_in
from mldebug_mcp.logs.settings.printed import is_configuration

# Stores that hold several runs: which of them is read.

_MAX_RUNS_LISTED = 8


def choose_run(
    wanted: str, where: str, points: Mapping[str, int], labels: Mapping[str, str], note: Callable[[str], None]
) -> str:
    """Return the id of the run to read: the one that was asked for, else the last of those with most points.

    Points and labels are by the id of a run, points in the order in which the store has them.

    Raises:
        InputError: no run is found, or not the one that was asked for.
    """
    if not points:
        raise InputError(
            f"{shorten(where, 200)}: no run in it has logged a metric; name another store, or wait for the first metric"
        )
    shown = {run: shorten(labels.get(run) or run, 60) for run in points}
    listed = ", ".join(
        f"{shown[run]} ({points[run]})" for run in sorted(points, key=lambda run: -points[run])[:_MAX_RUNS_LISTED]
    )
    if wanted:
        found = [run for run in points if wanted in (run, labels.get(run))]
        if not found:
            raise InputError(f"{shorten(where, 200)}: no run {shorten(wanted, 60)!r}; there are {listed}")
        return found[-1]
    chosen = max(reversed(list(points)), key=lambda run: points[run])
    if len(points) > 1:
        as_long = sum(count == points[chosen] for count in points.values())
        note(
            f"read {shown[chosen]}, the {'longest' if as_long == 1 else 'last of the longest'} of {len(points)} runs; "
            "run=NAME (--run NAME) reads another "
            f"(NAME (points)): {listed}"
        )
    return chosen


ROWS_BETWEEN_CHECKPOINTS = 16_384
MAX_METRICS = 2000
"""Metrics kept per run. A log with more is a parsing accident or hostile; the notes say what was left out."""
ALWAYS_KEPT = frozenset({*COUNTERS, "loss", "eval_loss", "reward", "grad_norm", "learning_rate"})
"""... and metrics that are kept beyond that, however late their columns come in a wide table ..."""
MAX_NAMES = 10_000
"""... of so many names: to look up what a name means takes 50 microseconds."""
MAX_INCIDENTS = 100
"""What a recording holds on single steps that is kept per run."""
MAX_TEXT_LINES = 200
"""Lines of words between records that are kept ..."""
MAX_TEXT_LINE = 300
"""... and characters of each."""
MESSAGES = frozenset({"error", "exception", "traceback", "exc_info", "stderr", "message", "msg", "log", "text"})
"""Keys under which a structured log holds what a program says."""


_PLAIN_NUMBERS = frozenset({int, float})
"""What most records hold and nothing else, so that no text in them can name a metric, a set or a run."""


def _run_named_in(record: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the texts by which a record names its run, by column, each as a list of one."""
    return {name: [text] for name, text in record.items() if isinstance(text, str) and names_run(name)}


class RunBuilder:
    """Collects records in file order.

    Readers call `record` (or `columns`), `note` and `configure`; `build` makes the Run. `wanted_run` is the id or the
    name of the run to read from a store that holds several, `holds_runs` whether one had to be chosen. `planned` is how
    many epochs, steps or episodes there are to be, as far as the records say so; `form_is_guessed` goes into the Run.
    """

    def __init__(self) -> None:
        self._recorded = Recorded()
        self._labels = RunLabels()
        self._left_out: Counter[str] = Counter()
        self._messages = Messages(self._recorded.messages)
        self._incidents: list[Incident] = []
        self._single: tuple[int, dict[str, float], dict[str, list[str]]] = (0, {}, {})
        self._last_record: Mapping[str, object] = {}
        self._settings = Settings()
        self._of_ranks: dict[str, tuple[int, Mapping[int, tuple[Floats, Floats]]]] = {}
        self.formats: list[str] = []
        self.planned: dict[str, float] = {}
        self.wanted_run = ""
        self.holds_runs = False
        self.form_is_guessed = False
        self._runs: tuple[str, ...] = ()
        self.notes: list[str] = []

    @property
    def records(self) -> int:
        """Records taken so far."""
        return self._recorded.records

    @property
    def rows(self) -> int:
        """Records and events taken so far: the index of the next one."""
        return self._recorded.rows

    def record(self, values: Mapping[str, object]) -> bool:
        """Take one record; nested mappings become `outer/inner`. Return False if it holds no number."""
        if self.rows and _PLAIN_NUMBERS.issuperset(map(type, values.values())):
            plain = {name: number for name, value in values.items() if (number := to_number(value)) is not None}
            if plain:
                self.numbers(as_the_trainer_means(plain))
            return bool(plain)
        single = single_in(values)
        if single is not None:
            return self._take_single(single)
        numbers = dict(numbers_in(values))
        if of := evaluated_set(values):
            numbers = {named_of_evaluation(name, of): value for name, value in numbers.items()}
        for key in MESSAGES & values.keys():
            if isinstance(text := values[key], str) and is_error(text):
                self.message(self.rows + 1, text)
        if not numbers:
            return False
        if not self.rows and is_configuration(values) and not any(map(is_telling, numbers)):
            self.configure(values, "the first record")
            return True
        self.labels(_run_named_in(values))
        self.numbers(as_the_trainer_means(numbers))
        return True

    def labels(self, texts: Mapping[str, Iterable[str | None]]) -> None:
        """Take the texts of columns that name the run of the records that come next, one for each of them."""
        for name, column in texts.items():
            self._labels.take(name, self.rows, column)

    def ends_with(self, record: Mapping[str, object]) -> None:
        """Take the last record as it was parsed: JSON has no NaN, so that a null in it may stand for one."""
        self._last_record = record

    def _take_single(self, single: Single) -> bool:
        """Take a record of one metric; those at one place, one after another, make one record."""
        number = to_number(single.value)
        if number is None:
            return False
        rest = dict(numbers_in(single.rest))
        where = {name: value for name, value in rest.items() if canonical(name) in COUNTERS} or {
            name: value for name, value in rest.items() if role_of(name) is None and value.is_integer()
        }
        metric = (
            named_of_evaluation(single.metric, held_out) if (held_out := evaluated_set(single.rest)) else single.metric
        )
        end, before, of = self._single
        texts = _run_named_in(single.rest)
        open_here = where and end == self.rows and metric not in before and texts == of
        if open_here and where.items() <= before.items() and (column := self._column(metric)) is not None:
            column.append(self.rows - 1, number)
        else:
            before = where
            self.labels(texts)
            self.numbers({**where, metric: number})
        self._single = (self.rows, {**before, metric: number}, texts)
        return True

    def numbers(self, values: Mapping[str, float], *, event: bool = False) -> None:
        """Take one record of nothing but numbers. An event, such as a skipped step, does not count as a record."""
        recorded = self._recorded
        row = recorded.rows
        for name, value in values.items():
            column = recorded.columns.get(name)
            if column is None:
                column = self._column(name)
            if column is not None:
                column.append(row, value)
        recorded.rows += 1
        if event:
            recorded.events.append(row)
        if recorded.rows % ROWS_BETWEEN_CHECKPOINTS == 0:
            checkpoint(f"{recorded.rows:,} records read")

    def overwrite_steps(self, rows: Rows, steps: Floats) -> None:
        """Set the steps of some records, by their index: what only became known once later records were seen.

        Both arrays have the shape (n,); of a row that comes twice the last step counts.
        """
        columns = self._recorded.columns
        at, step = columns["step"].arrays() if "step" in columns else (rows[:0], steps[:0])
        both = np.concatenate([at, rows])[::-1]
        kept, first = np.unique(both, return_index=True)
        columns["step"] = Column()
        columns["step"].extend(stretches_of(kept), np.concatenate([step, steps])[::-1][first])

    def columns(self, values: Mapping[str, Floats], logged: Mapping[str, NDArray[np.bool_]]) -> None:
        """Take many records at once.

        Args:
            values: Columns of shape (records,).
            logged: For a column that some records lack, which of them hold it, shape (records,). Columns that stand
                in the same records may share it.
        """
        size = len(next(iter(values.values()), ()))
        rows_by_mask = {id(mask): np.flatnonzero(mask) for mask in logged.values()}
        row = self.rows
        parts = {key: stretches_of(at + row) for key, at in rows_by_mask.items()}
        for name, column_values in values.items():
            key = id(logged.get(name))
            count = len(rows_by_mask[key]) if key in rows_by_mask else size
            if count and (column := self._column(name)) is not None:
                if count == size:
                    column.extend([range(row, row + size)], column_values)
                else:
                    column.extend(parts[key], column_values, rows_by_mask[key])
        self._recorded.rows += size

    def set_aside(self) -> None:
        """Name all metrics so far as closing figures: means and scores of a run, of no step of it."""
        columns = self._recorded.columns
        for name in [name for name in columns if not name.startswith(SET_ASIDE)]:
            column = columns.pop(name)
            if canonical(name) not in COUNTERS:
                columns.setdefault(f"summary/{name}", column)

    def rename(self, names: Mapping[str, str]) -> None:
        """Give columns other names, those of them that are there, where no column has the new name."""
        columns = self._recorded.columns
        for name in names:
            if name in columns and names[name] not in columns:
                columns[names[name]] = columns.pop(name)

    def column(self, name: str) -> list[tuple[int, float]]:
        """Return the records of a metric as they came: (index of the record, value)."""
        column = self._recorded.columns.get(name)
        if column is None:
            return []
        at, value = column.arrays()
        return list(zip(at.tolist(), value.tolist(), strict=True))

    def values(self) -> frozenset[float]:
        """Return all values of the records, whatever they are of."""
        return frozenset(value for column in self._recorded.columns.values() for value in column.values().tolist())

    def new_part(self) -> None:
        """Say that what follows is another file or another run of the same training."""
        breaks = self._recorded.breaks
        if self.rows and (not breaks or breaks[-1] != self.rows):
            breaks.append(self.rows)

    def resumed(self) -> None:
        """Say that the log reports a resume here, between records."""
        self._recorded.resumes.append(self.rows)

    def fold(self, number: float, *, behind: int = 0) -> None:
        """Say that a fold of a cross-validation is headed here, `behind` records that are still open."""
        self._recorded.folds.append((self.rows + behind, number))

    def started(self, start: ProcessStart) -> None:
        """Say that the program started again."""
        self._recorded.starts.append(start)

    def ends(self, tail: Tail) -> None:
        """Take the end of the text, which tells how the log ends."""
        self._recorded.tail = tail

    def choose(self, where: str, points: Mapping[str, int], labels: Mapping[str, str]) -> str:
        """Return the id of the run to read of several; see `choose_run`."""
        self.holds_runs = True
        chosen = choose_run(self.wanted_run, where, points, labels, self.note)
        names = [labels.get(run) or run for run in points]
        self._runs = tuple(names if len(set(names)) == len(names) else points)
        return chosen

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def skipped(self, count: int, what: str) -> None:
        """Say how many lines, rows or records were passed over, if any were."""
        if count:
            self.note(f"skipped {count} {what}")

    def message(self, line: int, text: str, code: str = "", *, behind: int = 0) -> None:
        """Keep a line that reads like an error, `behind` records that are still open; see `messages.take`."""
        self._messages.take(line, text, self.records + behind, code)

    def text_line(self, line: RecordedLine) -> None:
        """Keep a line of words between records, or a warning above them; of a log that talks much, the first ones."""
        if (line.row or line.warns) and len(self._recorded.text_lines) < MAX_TEXT_LINES:
            self._recorded.text_lines.append(replace(line, text=shorten(line.text, MAX_TEXT_LINE)))

    def of_ranks(self, name: str, owner: int, others: Mapping[int, tuple[Floats, Floats]]) -> None:
        """Take a metric of the ranks whose lines are no records of the run; they become series such as `loss/rank_3`.

        The run's own values are those of the `owner`; of the others both arrays have the shape (n,).
        """
        self._of_ranks[name] = (owner, others)

    def incident(self, incident: Incident) -> None:
        """Keep what a recording holds on a step."""
        if len(self._incidents) < MAX_INCIDENTS:
            self._incidents.append(incident)

    def message_goes_on(self, text: str) -> None:
        """Add a line to the message that was kept last."""
        self._messages.go_on(text)

    @property
    def failed(self) -> bool:
        """Whether an error line was taken that is more than a warning."""
        return self._messages.failed

    def configure(self, values: Settings | Mapping[str, object], source: str = "the log") -> None:
        """Add configuration; what was known before stays."""
        more = values if isinstance(values, Settings) else Settings.of(values, source)
        self._settings = Settings.merged(self._settings, more)

    def copy(self) -> RunBuilder:
        """Return a builder of its own with what was taken so far: building settles names, units and notes."""
        other = copy(self)
        other._recorded, other._labels = self._recorded.copy(), self._labels.copy()
        other._messages = replace(self._messages, kept=other._recorded.messages)
        other._left_out, other._of_ranks = self._left_out.copy(), self._of_ranks.copy()
        other._incidents, other.planned = self._incidents.copy(), self.planned.copy()
        other.formats, other.notes = self.formats.copy(), self.notes.copy()
        return other

    def build(self, path: str) -> Run:
        """Make the Run from everything taken: attempts → columns → axis → series; `concluded` tells its kind."""
        if count_apart := put_on_one_axis(self._recorded.columns):
            self.note(count_apart)
            self.planned.pop("step", None)  # it may be that of the other counter
        for note in (
            conventions.steps_of_episodes(self._recorded.columns),
            conventions.name_counts_per_record(self._recorded.columns),
            conventions.nulls_at_end(self._recorded.columns, self.rows, nulls_in(self._last_record)),
        ):
            if note:
                self.note(note)
        self._keep_one_run(path)
        self._keep_one_rank()
        self._recorded.end_lines()
        if note := put_in_order(self._recorded):
            self.note(note)
        number = named_attempt(self.wanted_run)
        self.holds_runs = self.holds_runs or number > 0
        whole = split(self._recorded, path, number, self.planned)
        recorded = whole.judged
        named = self._named(recorded)
        step, step_name = step_axis(named, recorded.rows, recorded.records, whole.passes, self.note)
        if step_name == "step":
            step = events_in_place(step, recorded.events, named.get("step"))
        metrics = {name: column for name, column in named.items() if name not in COUNTERS}
        starts = segment_starts(step, recorded.breaks, metrics, self.note)
        if step_name == "record" and "step" in named and len(distinct(named["step"].arrays()[1])) == 1:
            named.pop("step")  # one number in all records counts nothing, such as iperf's "[  5]  1.00-2.00 sec"
        made = SeriesOfRun({name: column for name, column in named.items() if name != step_name}, step, starts)
        series = made.whole()
        series |= self._series_of_ranks(series) if step_name == "step" else {}
        segments = made.segments(series)
        if len(segments) > 1:
            self.note(restart_note([segment.first_step for segment in segments[1:]], step_name))
        made.remark(self.note)
        self._note_left_out()
        settings = Settings.merged(settings_printed_in(whole.head), self._settings)
        if not settings:
            self.notes += [note for note in settings.notes if note not in self.notes]
        resumes = [row for row in recorded.resumes if 0 < row < len(step)]
        if note := whole.note(step_name):
            self.notes.insert(0, note)
        return Run(
            path=path,
            formats=tuple(dict.fromkeys(self.formats)),
            series=series,
            settings=settings,
            segments=segments,
            step_name=step_name,
            records=recorded.records,
            messages=tuple(recorded.messages),
            text_lines=tuple(
                TextLine(float(step[max(line.row - 1, 0)]), line.line, line.text, line.warns)
                for line in recorded.text_lines
                if len(step)
            ),
            margins=recorded.tail.margins(),
            resumes=tuple(dict.fromkeys(float(step[row]) for row in resumes)),
            attempts=whole.attempts,
            ending=next(attempt.ending for attempt in whole.attempts if attempt.judged),
            incidents=tuple(self._incidents),
            planned=dict(self.planned),
            runs_in_file=self._runs if len(self._runs) > 1 else (),
            form_is_guessed=self.form_is_guessed,
            notes=tuple(self.notes),
        )

    def _keep_one_run(self, path: str) -> None:
        """Keep the records of one run where a column names several: the wanted one, else the one with the most."""
        labels = self._labels.among(self._recorded)
        if runs := runs_among(self._recorded, labels):
            attempt = named_attempt(self.wanted_run)
            chosen = max(runs, key=lambda run: runs[run]) if attempt else self.choose(path, runs, {})
            codes = [code for code, name in enumerate(labels.names) if name == chosen]
            self._recorded = self._recorded.where(np.isin(labels.of_row, [*codes, -1]))

    def _keep_one_rank(self) -> None:
        """Keep the records of the lowest rank where a column tells the rank; those of the others are compared."""
        found = ranks_among(self._recorded)
        if found is not None:
            for name, others in found.others.items():
                self.of_ranks(name, found.owner, others)
            self._recorded = self._recorded.where(found.kept)
            self.note(
                f"the records of rank {found.owner} are read; {found.left_out:,} of other ranks are left out, and "
                f"their {COMPARED_IN_WORDS} are compared"
            )

    def _series_of_ranks(self, series: Mapping[str, Series]) -> dict[str, Series]:
        """Return a metric by rank where ranks logged it and any of them differs from the run's."""
        found: dict[str, Series] = {}
        for raw, (owner, others) in self._of_ranks.items():
            exact = (curve for curve in series.values() if raw in (curve.logged_as, curve.name))
            own = next(
                exact, series.get(canonical(raw)) or series.get("loss") if is_loss(raw) else None
            )  # a loss of another name may be read as it
            if own is None or not len(own):
                continue
            name, ranks = own.name, {owner: own}
            for rank, (step, value) in others.items():
                inside = Series(name, *_last_of_each(step, value * factor(raw)))
                ranks[rank] = inside.between(float(own.step[0]), float(own.step[-1]))
            if any(len(curve) and not np.array_equal(curve.value, own.value) for curve in ranks.values()):
                found |= {
                    f"{name}/rank_{rank}": replace(curve, name=f"{name}/rank_{rank}") for rank, curve in ranks.items()
                }
        return found

    def _named(self, recorded: Recorded) -> Columns:
        """Return the columns of an attempt under their canonical names."""
        applied = conventions.apply(recorded.columns, lambda sizes: self.choose("the export", sizes, {}))
        self.configure(applied.settings)
        self.form_is_guessed = self.form_is_guessed or applied.counter_is_guessed
        join_counters(recorded.columns)
        join_cut_box(recorded.columns)
        named, chosen = named_columns(recorded.columns)
        for note in (*applied.notes, *chosen):
            self.note(note)
        return named

    def _note_left_out(self) -> None:
        if self._left_out:
            some = ", ".join(repr(name) for name, _ in self._left_out.most_common(3))
            self.note(
                f"left out {len(self._left_out):,} of more than {MAX_METRICS} metrics in one log: {some}"
                f"{', …' if len(self._left_out) > 3 else ''}"
            )

    def _column(self, name: str) -> Column | None:
        columns = self._recorded.columns
        column = columns.get(name)
        if column is None:
            full = len(columns) >= MAX_METRICS and (
                len(self._left_out) >= MAX_NAMES or canonical(name) not in ALWAYS_KEPT
            )
            if full or len(columns) >= 2 * MAX_METRICS:
                self._left_out[shorten(name, 60)] += 1
                return None
            column = columns[name] = Column()
        return column


def _last_of_each(step: Floats, value: Floats) -> tuple[Floats, Floats]:
    """Return steps in order, each once with its last value."""
    steps, last = np.unique(step[::-1], return_index=True)
    return steps, value[::-1][last]
