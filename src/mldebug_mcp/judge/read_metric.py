"""The verbs `read_metric` and `read_coverage`: the values of curves, and what was made of each line of a log."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mldebug_mcp.checks.course import course_of
from mldebug_mcp.checks.curve import thinned
from mldebug_mcp.checks.results import named
from mldebug_mcp.core.access import is_folder, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import clean, figure, nearest, shorten
from mldebug_mcp.judge.next_call import diagnose_call
from mldebug_mcp.logs import Run, Series, read_run
from mldebug_mcp.logs.attempts import is_resume, tells_resume
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.endings import FINISHED, ErrorLines
from mldebug_mcp.logs.files import runs_in
from mldebug_mcp.logs.formats import reader_of, text_log
from mldebug_mcp.logs.formats.table import TableReader, rows_in_table
from mldebug_mcp.logs.json_yaml import parse_object
from mldebug_mcp.logs.line_prefixes import without_prefix
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.names import may_mean, role_of
from mldebug_mcp.logs.names.grammar import given_names
from mldebug_mcp.logs.names.metrics import COUNTERS, canonical, named_of_evaluation, numbers_in
from mldebug_mcp.logs.names.settings import settings_of
from mldebug_mcp.logs.read import Refused, read_log_file, read_places, texts_with_metrics
from mldebug_mcp.logs.remote_files import Choice, brought_in
from mldebug_mcp.logs.text.parsed_line import LineContent, content_of, straightened
from mldebug_mcp.models.runs import Coverage, LineKind, LineUse, MetricReading, MetricValues

# The verb `read_metric`: the values of curves, thinned so that their extremes survive.


DEFAULT_CURVE_POINTS = 60
"""Points of a curve by default: what a reader takes in."""
MOST_NAMES = 20
LEAST_POINTS = 4
MOST_POINTS = 2000
MOST_OTHERS = 40
MOST_NOTES = 3
MIN_NAME_LIKENESS = 0.5
"""Likeness of names from which a metric is suggested in place of an unknown one."""


def read_metric(
    path: str | Path,
    names: Sequence[str] | str,
    first: float | None = None,
    last: float | None = None,
    *,
    points: int = DEFAULT_CURVE_POINTS,
    run: str = "",
    meanings: Mapping[str, str] | None = None,
) -> MetricReading:
    """Return the values of one or several curves of a run.

    Args:
        path: A log file or a run folder.
        names: What to read: names as logged (train/loss) or roles (loss, grad_norm, eval_loss).
        first: The first step; by default that of the log.
        last: The last step; by default that of the log.
        points: About how many points of each curve; the lowest and highest of each stretch are among them.
        run: Which run to read, if the path holds several.
        meanings: What names of the log mean that do not say it, as `names` of `diagnose_run`.

    Raises:
        InputError: the path cannot be used, a name is not in the log, or the stretch holds nothing of it; the message
            names the nearest names.
    """
    require_points(points)
    named = [names] if isinstance(names, str) else names
    return read_curves(read_run(path, None, run, meanings), named, first, last, points)


def require_points(points: int) -> None:
    """Raise InputError if so many points cannot show a curve."""
    if not LEAST_POINTS <= points <= MOST_POINTS:
        raise InputError(f"points is {points}; use {LEAST_POINTS} to {MOST_POINTS}")


def read_curves(
    run: Run,
    names: Sequence[str],
    first: float | None = None,
    last: float | None = None,
    points: int = DEFAULT_CURVE_POINTS,
) -> MetricReading:
    """Return the values of curves of a run that has been read; see `read_metric`."""
    if not names or len(names) > MOST_NAMES:
        raise InputError(f"name one to {MOST_NAMES} of what {shorten(run.path, 200)} has: {_listed(_names(run))}")
    found = {name: named(run, name) for name in names}
    unknown = [_unknown(run, name) for name, some in found.items() if not some]
    if len(unknown) == len(found):
        raise InputError(f"{shorten(run.path, 200)}: {unknown[0]}")
    chosen = list({series.name: series for some in found.values() for series in some}.values())
    readings = [_values(run, series, first, last, points) for series in chosen]
    others = [name for name in _names(run) if name not in {metric_values.name for metric_values in readings}]
    return MetricReading(
        path=run.path,
        step_name=run.step_name,
        series=readings,
        others=others[:MOST_OTHERS],
        next_step=diagnose_call("what all of the log tells", run.path, run.name),
        notes=[*unknown, *run.notes[:MOST_NOTES]],
    )


def _unknown(run: Run, name: str) -> str:
    """Return that nothing has a name, with what is nearest to it."""
    near = nearest(name.strip(), dict.fromkeys((*run.series, *_names(run))), most=5, alike=MIN_NAME_LIKENESS)
    hint = f"the nearest: {_listed(near)}" if near else f"in it are: {_listed(_names(run))}"
    return f"nothing called {shorten(name, 60)!r} is in it; {hint}"


def _names(run: Run) -> list[str]:
    return [series.logged_as or name for name, series in run.series.items()]


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(shorten(name, 60) for name in names[:most]) + (", …" if len(names) > most else "")


def _thinned_to(series: Series, points: int) -> Series:
    """Return a curve with about so many points: stretches whose extremes coincide leave room for further ones."""
    low, high = max(1, points // 4), points + 1
    fewer = thinned(series, low)
    while high - low > 1 and len(fewer) < len(series):
        middle = (low + high) // 2
        tried = thinned(series, middle)
        if len(tried) > points:
            high = middle
        else:
            low, fewer = middle, tried
    return fewer


def _values(run: Run, series: Series, first: float | None, last: float | None, points: int) -> MetricValues:
    begin, end = -math.inf if first is None else first, math.inf if last is None else last
    inside = series.between(begin, end)
    if not len(inside):
        span = f"{figure(series.step[0])} to {figure(series.step[-1])}" if len(series) else "nowhere"
        raise InputError(
            f"{series.logged_as or series.name} was logged from {run.step_name} {span}, and nothing of it in the "
            "stretch that was asked for; change first and last"
        )
    with np.errstate(all="ignore"):
        course = course_of(inside)
    fewer = _thinned_to(inside, points)
    role = series.role
    return MetricValues(
        name=series.logged_as or series.name,
        unit=series.unit,
        metric=series.name,
        role="" if role is None else " ".join(part for part in (role.phase, str(role.quantity), role.part) if part),
        records=len(inside),
        course="" if course is None else str(course),
        points=list(zip(fewer.step.tolist(), fewer.value.tolist(), strict=True)),
    )


# The verb `read_coverage`: which kinds of lines with numbers a log holds, and what was made of each.


# What a line is used for is asked of the parts of the reader itself. The text is read a line at a time, so that what
# stands open above a line is known; lines that the reader takes by the block are read to the same result.

MOST_LINES = 200_000
"""Lines of a file that are looked at. Chosen: a minute on one core."""
MOST_KINDS = 2000
"""Kinds of lines that are counted separately; further ones are counted together."""
LONGEST_PATTERN = 120
LONGEST_EXAMPLE = 160
MOST_COVERAGE_NOTES = 3
NOT_READ: LineUse = "not read"
MIN_LINES_ALIKE = 3
"""Lines of one kind that are read before the next is taken for one. Chosen: one may stand under a heading."""
_ZEROS = str.maketrans("123456789", "000000000")
WORDS_EACH = 3
"""Words for each number from which on a line without a pair of name and number is a sentence. Chosen."""

_LONE_NUMBER = regex(r"(?<![\w.:/])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?%?(?![\w.-]*[A-Za-z_/]|:\d)")
"""A number that stands by itself: none of a path, a version, a date, a time or a name."""
_NAME_AND_NUMBER = regex(
    r"(?P<name>[A-Za-z_][\w/.()-]{0,60}(?: [A-Za-z][\w/.()-]{0,60}){0,3})\s{0,3}[=:]\s{0,3}"
    r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w./:-]*[A-Za-z_/:])"
)
_BAR = regex(r"\b\d+/\?|\bit/s\]|\bs/it\]")
_MODULE = regex(r"^[\s|]*\([\w.]{1,80}\): (?:\d+ x )?[A-Z]\w*\(")
_SHAPE = regex(r"\btorch\.Size\(")
_LETTERS = regex(r"[A-Za-z]{2,}")
_FRAME = regex(r'^\s*(?:File "[^"]{1,400}", line \d+|at .{1,200}:\d+\)?$)')
_DIGITS = regex(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b", re.IGNORECASE)
_HEX = regex(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b|0x[0-9a-fA-F]+")
_BLANKS = regex(r"\s+")


class _NumberedLine(NamedTuple):
    """A line with numbers, the names under which they would be kept, and the values of its metrics.

    A use of None hangs on the names and values that the log turns out to have.
    """

    message: str
    use: LineUse | None
    names: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    is_passed: bool = False  # another line tells what its values become: a later drawing, the end of the evaluation


def read_coverage(path: str | Path, run: str = "", names: Mapping[str, str] | None = None) -> Coverage:
    """Return the kinds of lines with numbers in a log, with their counts, an example and what was made of each.

    Numbers of what stands before a message, such as its time, do not count.

    Args:
        path: A log file, a run folder or an archive of one.
        run: Which run to read, if the path holds several.
        names: What names of the log mean that do not say it, such as {"L": "loss"}.

    Raises:
        InputError: the path cannot be used; the message says why and what to do.
    """
    kinds = _Kinds()
    notes: list[str] = []
    with given_names(names or {}), brought_in(path, Choice(run)) as place:
        for log, known in _logs(expanded(place), run):
            _take_file(log, known, kinds, notes)
            notes += known.notes[:MOST_COVERAGE_NOTES]
    found = sorted(kinds.found, key=lambda line_kind: (line_kind.use != NOT_READ, -line_kind.count))
    lines = sum(line_kind.count for line_kind in found)
    left = sum(line_kind.count for line_kind in found if line_kind.use == NOT_READ)
    return Coverage(
        path=str(path),
        lines=lines,
        accounted_for=(lines - left) / lines if lines else 1.0,
        kinds=found,
        notes=list(dict.fromkeys(notes)),
    )


class _Kinds:
    """Counts lines by their kind."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, LineUse]] = Counter()
        self._first: dict[tuple[str, LineUse], tuple[int, str]] = {}

    def add(self, pattern: str, use: LineUse, count: int, number: int, example: str) -> None:
        """Add lines of a pattern; `number` is that of the first."""
        key = (pattern, use)
        if key not in self._first and len(self._first) >= MOST_KINDS:
            key = ("(further kinds)", use)
        self._counts[key] += count
        self._first.setdefault(key, (number, shorten(example, LONGEST_EXAMPLE)))

    @property
    def found(self) -> list[LineKind]:
        """The kinds, each with its first line."""
        return [
            LineKind(pattern=key[0], count=count, use=key[1], line=self._first[key][0], example=self._first[key][1])
            for key, count in self._counts.items()
        ]


def _logs(path: Path, run: str) -> list[tuple[Path, Run]]:
    """Return the logs that are read of a path, each with the run that it is of."""
    require(path)
    if not is_folder(path):
        return [(path, read_log_file(path, run)[0])]
    read = read_places(runs_in(path, []), Refused(), read_log_file, [])
    if not any(part.run.series for part in read):
        read = read_places(texts_with_metrics(path), Refused(), read_log_file, [])
    wanted = [part for part in read if run in (part.name, part.place.name, *part.files)] or read
    logs = {log: part.run for part in wanted for log in part.logs}
    if not logs:
        read_run(path, None, run)  # says why there is none
    return list(logs.items())


def _take_file(path: Path, run: Run, kinds: _Kinds, notes: list[str]) -> None:
    file = LogFile.open(path)
    reader = reader_of(file)
    by_line = {"text": _uses_in_text, "jsonl": _uses_in_objects}.get(reader.NAME)
    if reader.NAME == TableReader.NAME:
        _take_table(file, kinds)
        return
    if by_line is None:
        count = run.records if file.binary else sum(map(_has_number, file.lines()))
        kinds.add(f"({reader.NAME}, read as a whole)", "records", count, 0, path.name)
        return
    lines = file.lines()
    settings = {setting.key.rpartition("/")[2]: str(setting.value) for setting in run.settings.values()}
    setup = _Setup()
    for number, (line, use) in enumerate(by_line(islice(lines, MOST_LINES), run.series), start=1):
        if use is not None:
            known = setup.use_of(line, _of_settings(line, settings, use))
            kinds.add(_pattern(line), known, 1, number, line.strip())
    if next(lines, None) is not None:
        notes.append(f"{path.name}: only the first {MOST_LINES:,} lines were looked at")


def _take_table(file: LogFile, kinds: _Kinds) -> None:
    """Take the rows of a table: the records together, and by their kind those that are none."""
    for number, (row, is_record) in enumerate(rows_in_table(file)):
        if is_record:
            kinds.add(f"({TableReader.NAME}, read as a whole)", "records", 1, 0, file.path.name)
        elif _has_number(row):
            kinds.add(_pattern(row), _without_names(row) if number else "setup", 1, number + 1, row)


def _has_number(line: str) -> bool:
    return any(map(str.isdigit, line))


def _pattern(line: str) -> str:
    """Return a line with # for each number, which is its kind."""
    without_numbers = _DIGITS.sub("#", _HEX.sub("#", line.strip()[: 4 * LONGEST_PATTERN]))
    return shorten(_BLANKS.sub(" ", without_numbers), LONGEST_PATTERN)


class _RepeatedLines:
    """The lines that differ from others in their digits alone, with the use that the first of these had."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[_NumberedLine, int]] = {}

    def use_of(self, line: str) -> _NumberedLine | None:
        """Return the use of a line, None where too few of its kind were read."""
        alike, count = self._first.get(line.translate(_ZEROS), (None, 0))
        if alike is None or count < MIN_LINES_ALIKE:
            return None
        return alike._replace(message=without_prefix(line).message)

    def keep(self, line: str, numbered: _NumberedLine) -> None:
        """Count a line that was read; what may be an error or an event by its numbers is read each time."""
        zeros = line.translate(_ZEROS)
        first, count = self._first.get(zeros, (numbered, 0))
        alike = numbered[1:3] == first[1:3] and numbered.use not in ("error", "event") and "exit" not in line
        if alike and (count or len(self._first) < MOST_KINDS):
            values = first.values + numbered.values * (0 < count < MIN_LINES_ALIKE)
            self._first[zeros] = (first._replace(values=values), count + 1)


def _uses_in_text(lines: Iterable[str], names: Collection[str]) -> Iterator[tuple[str, LineUse | None]]:
    """Yield each line without its prefix, with its use; None for a line without a number."""
    builder = RunBuilder()
    text = text_log.Text(builder, learns=False)
    errors = ErrorLines()
    numbered_lines: list[_NumberedLine | None] = []
    repeated = _RepeatedLines()
    for line in text_log.lines_as_printed(lines):
        plain = clean(line)
        is_settled = not (text.is_drawing or errors.open)
        if is_settled and (alike := repeated.use_of(plain)) is not None:
            numbered_lines.append(alike)
            continue
        rows, failed = builder.rows, errors.goes_on(plain) or errors.take(plain)
        was_open = text.is_drawing
        text.take_lines([line])
        message = without_prefix(plain).message
        if not _has_number(message):
            numbered_lines.append(None)
            continue
        drawn = text.is_drawing or (was_open and builder.rows > rows)
        content = content_of(straightened(plain))
        if failed or _FRAME.match(message):
            numbered_lines.append(_NumberedLine(message, "error"))
        elif drawn or (content.is_nothing and builder.rows > rows):
            numbered_lines.append(_NumberedLine(message, "records"))
        elif tells_resume(message, begun=bool(rows)):
            numbered_lines.append(_NumberedLine(message, "event"))
        else:
            numbered_lines.append(_use_of(message, content))
        numbered = numbered_lines[-1]
        if numbered is not None and is_settled and not (text.is_drawing or errors.open):
            repeated.keep(plain, numbered)
    text.end()
    values = builder.values()
    for each in numbered_lines:
        yield ("", None) if each is None else (each.message, each.use or _by_names(each, builder, names, values))


def _use_of(message: str, content: LineContent) -> _NumberedLine:
    """Return the use of a line by what it says by itself."""
    if content.opens or content.record is not None or content.history:
        return _NumberedLine(message, "records")
    if content.skipped is not None:
        return _NumberedLine(message, "event")
    if (drawing := content.drawing) is not None:
        is_passed = not drawing.bar.keras or drawing.bar.at < drawing.bar.total
        values = tuple(drawing.metrics.values())
        return _NumberedLine(
            message, None if drawing.telling else "progress", tuple(drawing.metrics), values, is_passed
        )
    if _BAR.search(message):
        return _NumberedLine(message, "progress")
    plain = content.plain
    if plain is not None and (plain.metrics or plain.counters.values):
        names, batch = (*plain.counters.values, *plain.metrics), plain.counters.batch
        use: LineUse | None = "records" if plain.telling and plain.rank is not None else None
        under_way = plain.evaluation and batch is not None and batch[0] < batch[1] - 1
        return _NumberedLine(message, use, names, tuple(plain.metrics.values()), under_way)
    return _NumberedLine(message, _without_names(message))


def _by_names(line: _NumberedLine, builder: RunBuilder, names: Collection[str], values: Collection[float]) -> LineUse:
    """Return the use of a line by whether the run has one of its names and half of its values."""
    if all(canonical(name) in COUNTERS for name in line.names):
        return "progress"
    spelled = [text for name in line.names for text in (name, named_of_evaluation(name))]
    is_named = any(builder.column(name) or canonical(name) in names for name in spelled)
    kept = sum(value in values or math.isnan(value) for value in line.values)
    is_read = is_named and kept * 2 >= len(line.values) > 0
    return "records" if is_read else "progress" if is_named and line.is_passed else _without_names(line.message)


def _without_names(message: str) -> LineUse:
    """Return the use of a line that is not a record: what ends a run, a sentence, or nothing."""
    if FINISHED.search(message):
        return "end"
    numbers, words = _LONE_NUMBER.findall(message), _LETTERS.findall(message)
    is_sentence = not _NAME_AND_NUMBER.search(message) and len(words) >= WORDS_EACH * len(numbers)
    return "prose" if is_sentence or not numbers else NOT_READ


def _uses_in_objects(lines: Iterable[str], _: Collection[str]) -> Iterator[tuple[str, LineUse | None]]:
    errors = ErrorLines()
    for line in lines:
        record = parse_object(line)
        failed = record is None and (errors.goes_on(line) or errors.take(line))
        if not _has_number(line):
            yield line, None
        elif record is not None:
            yield line, _use_of_object(record)
        else:
            yield line, "error" if failed else "event" if tells_resume(line) else _without_names(line)


def _use_of_object(record: Mapping[str, object]) -> LineUse:
    if is_resume(record):
        return "event"
    return "records" if any(True for _ in numbers_in(record)) else NOT_READ


# What a program prints of its environment, its data and its model before its first record, and when it starts again.


class _Setup:
    """Knows lines of the beginning, which may come again, and the modules of a printed model."""

    def __init__(self) -> None:
        self._patterns: set[str] = set()
        self._began = False

    def use_of(self, line: str, use: LineUse) -> LineUse:
        """Return the use of the next line."""
        if use != NOT_READ:
            self._began = self._began or use == "records"
            return use
        if _MODULE.match(line) or _SHAPE.search(line):
            return "setup"
        pattern = _pattern(line)
        if not self._began and not _names_what_is_known(line):
            self._patterns.add(pattern)
        return "setup" if pattern in self._patterns else use


def _names_what_is_known(line: str) -> bool:
    """Say whether a number of a line has the name of a metric or of a setting: it should have been read."""
    names = [match["name"].strip("- ") for match in _NAME_AND_NUMBER.finditer(line)]
    return any(settings_of(name) or (role_of(name) is not None and may_mean(name)) for name in names)


def _of_settings(line: str, settings: Mapping[str, str], use: LineUse) -> LineUse:
    """Return the use of a line that may name the last part of the key of a setting, with its value as text."""
    if use not in (NOT_READ, "prose", "progress"):
        return use
    names_a_setting = any(key in line and value.removesuffix(".0") in line for key, value in settings.items())
    return "settings" if names_a_setting else use
