"""The values of a whole document → records, in whatever of the usual forms they stand in it.

The forms are lists of records, columns, curves that each keep where they were logged, and single points as
TensorBoard, MLflow and Trackio keep them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from heapq import merge
from itertools import islice, pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.arrays import distinct
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.json_yaml import Object, is_column, parse_object
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.names.conventions import are_measures_of_boosting
from mldebug_mcp.logs.names.metrics import (
    COUNTERS,
    canonical,
    is_telling,
    named_of_evaluation,
    nulls_in,
    numbers_in,
    phase_in,
    single_in,
)
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.run_tables import ROWS_LOOKED_AT, advice_on_runs
from mldebug_mcp.logs.settings.printed import is_configuration

# Single points, as TensorBoard, MLflow and Trackio keep them, → records.
#
# These stores hold each metric by itself. Points of one step become one record. A restart shows where the step of a
# metric falls while time goes on. Evaluations that count epochs beside a training that counts steps are placed by the
# clock.

MIN_TIMES_AHEAD = 2.0
"""Times: so far is training ahead of a metric that counts epochs, at each of them. Chosen by hand: the clock
puts a metric of the same counter within a few steps of it."""


@dataclass(frozen=True, slots=True)
class Points:
    """What a store holds of one metric; all of shape (n,), in any order.

    Args:
        time: When each was logged; the unit does not matter, the order does.
        step: Steps.
        value: Values.
    """

    time: Floats
    step: Floats
    value: Floats

    def __len__(self) -> int:
        return len(self.step)


def add_points(builder: RunBuilder, metrics: Mapping[str, Points]) -> None:
    """Put metrics into the builder, one part for each stretch between restarts."""
    ordered = {name: _in_time(points) for name, points in metrics.items() if len(points)}
    unstepped = [name for name, points in ordered.items() if len(points) > 1 and not points.step.any()]
    if unstepped:
        builder.note(f"{len(unstepped)} metric(s) were logged without a step: their points are counted")
        for name in unstepped:
            points = ordered[name]
            ordered[name] = Points(points.time, np.arange(1.0, len(points) + 1), points.value)
    starts = _restarts(list(ordered.values()))
    for first, last in pairwise([-np.inf, *starts, np.inf]):
        part = {name: _between(points, first, last) for name, points in ordered.items()}
        _add_part(builder, _on_training_axis(builder, {name: points for name, points in part.items() if len(points)}))


def _in_time(points: Points) -> Points:
    order = np.argsort(points.time, kind="stable")
    return Points(points.time[order], points.step[order], points.value[order])


def _between(points: Points, first: float, last: float) -> Points:
    inside = slice(*np.searchsorted(points.time, [first, last], side="left"))
    return Points(points.time[inside], points.step[inside], points.value[inside])


def _restarts(metrics: list[Points]) -> list[float]:
    """Return the times at which the step of a metric falls. Metrics that fall one after another fall together."""
    falls = []
    for points in metrics:
        at = np.flatnonzero((np.diff(points.step) < 0) & (np.diff(points.time) > 0)) + 1
        falls += list(zip(points.time[at].tolist(), points.time[at - 1].tolist(), strict=True))
    restarts: list[float] = []
    for time, before in sorted(falls):
        if not restarts or before >= restarts[-1]:
            restarts.append(time)
    return restarts


def _on_training_axis(builder: RunBuilder, metrics: Mapping[str, Points]) -> Mapping[str, Points]:
    """Place metrics that count 0, 1, 2 ... by themselves at the training step that was logged before them.

    A usual loop writes its training loss with a step and its evaluation with the epoch.
    """
    if not metrics:
        return metrics
    training = [name for name in metrics if canonical(name) == "loss"]
    leading = max((metrics[name] for name in training or metrics), key=len)
    placed: dict[str, Points] = {}
    for name, points in metrics.items():
        reached = np.searchsorted(leading.time, points.time, side="right") - 1
        steps = leading.step[np.maximum(reached, 0)]
        counts = len(points) > 1 and points.step[0] in (0, 1) and bool(np.all(np.diff(points.step) == 1))
        if counts and bool(np.all(np.diff(steps) > 0)) and bool(np.all(steps[1:] >= MIN_TIMES_AHEAD * points.step[1:])):
            placed[name] = Points(points.time, steps, points.value)
    if placed:
        builder.note(
            f"{len(placed)} metric(s) count epochs where training counts steps ({shorten(', '.join(placed), 80)}): "
            "each point is placed at the training step logged before it, by the clock"
        )
    return {**metrics, **placed}


def _add_part(builder: RunBuilder, metrics: Mapping[str, Points]) -> None:
    if not metrics:
        return
    builder.new_part()
    steps = distinct(np.concatenate([points.step for points in metrics.values()]))
    values: dict[str, Floats] = {}
    logged: dict[str, NDArray[np.bool_]] = {}
    for name, points in metrics.items():
        row = np.searchsorted(steps, points.step)
        values[name] = np.zeros(len(steps))
        values[name][row] = points.value  # of several points at one step the last one stands
        logged[name] = np.zeros(len(steps), dtype=np.bool_)
        logged[name][row] = True
    builder.columns({"step": steps, **values}, logged)


# Curves in a JSON document: metrics that each keep where they were logged beside their values.
#
# ClearML writes `{title: {series: {"x": [...], "y": [...]}}}`, Sacred `{metric: {"steps": [...], "values": [...]}}`,
# and charts of Plotly and Visdom hold a list of curves, each with its name.

MAX_DEPTH = 8
"""Objects within each other that are looked into: Visdom nests six."""
MAX_CURVES = 1000
"""Objects of a list that are looked into: the records of a list are no curves, and may be millions."""
TIME_STEP_VALUE = 3
"""Numbers of a point of a tag that TensorBoard exports as JSON."""
LEAST_POINTS = 3
"""Points of a curve that is a bare list. Chosen: two pairs may be a box or a range."""
EARLIEST_CLOCK = 1e9
"""Seconds since 1970, of September 2001: a time stamp of a run lies later, a small number is none."""
_PLACES = ("x", "step", "steps", "global_step", "iteration", "iterations", "iter", "iters", "epoch", "epochs")
_VALUES = ("y", "value", "values")


def curves_in(document: object) -> dict[str, Points]:
    """Return the curves of a document by the names of the objects that they stand in; empty if it holds none."""
    return {"/".join(path): curve for path, curve in _curves(document, ()) if path}


def _curves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Points]]:
    if len(path) > MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value[:MAX_CURVES]:
            if isinstance(item, dict):
                yield from _curves(item, path)
    elif isinstance(value, dict):
        curve = _curve(value)
        if curve is not None:
            yield (*path, *_own_name(value, path)), curve
            return
        path = _title(value) or path
        for key, part in value.items():
            points = _points(part)
            if points is not None:
                yield (*path, str(key)), points
            else:
                yield from _curves(part, path if isinstance(part, list) else (*path, str(key)))


def exported_tag(document: object) -> Points | None:
    """Return the curve of a document that is one list of [time, step, value]; None if it is none."""
    first = document[0] if isinstance(document, list) and document else None
    return _points(document) if isinstance(first, list) and len(first) == TIME_STEP_VALUE else None


def _points(value: object) -> Points | None:
    """Return the curve that a list of [time, step, value] is, as TensorBoard gives a tag, or of [step, value].

    Steps go on, and times are those of a clock.
    """
    if not isinstance(value, list) or len(value) < LEAST_POINTS or not isinstance(value[0], list):
        return None
    width = len(value[0])
    if width not in (2, 3) or any(not isinstance(item, list) or len(item) != width for item in value):
        return None
    columns = [_numbers([item[place] for item in value]) for place in range(width)]
    step, numbers = columns[-2:]
    goes_on = bool(np.isfinite(step).all()) and bool((step == np.trunc(step)).all()) and bool((np.diff(step) > 0).all())
    by_clock = width == 2 or bool((columns[0] > EARLIEST_CLOCK).all())
    return Points(columns[0], step, numbers) if goes_on and by_clock and np.isfinite(numbers).any() else None


def _curve(value: Mapping[str, object]) -> Points | None:
    """Return the curve that an object is, None if it is none: a list of values and one, as long, of their places."""
    places, values = (_first_column(value, keys) for keys in (_PLACES, _VALUES))
    if not values or len(places) != len(values):
        return None
    step = _numbers(places)
    counted = np.isfinite(step)
    return Points(step[counted], step[counted], _numbers(values)[counted]) if counted.any() else None


def _first_column(value: Mapping[str, object], keys: Sequence[str]) -> Sequence[object]:
    """Return the first column of numbers that an object has under one of some keys."""
    columns = (value.get(key) for key in keys)
    return next((column for column in columns if isinstance(column, list) and is_column(column)), ())


def _numbers(column: Sequence[object]) -> Floats:
    numbers = [to_number(value) for value in column]
    return np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)


def _own_name(curve: Mapping[str, object], path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the name that a curve gives itself, unless its place has it, or it is but a number."""
    name = curve.get("name")
    return (name,) if isinstance(name, str) and name and path[-1:] != (name,) and not name.isdigit() else ()


def _title(value: Mapping[str, object]) -> tuple[str, ...]:
    """Return the title of a chart, which says what its curves show."""
    layout = value.get("layout")
    title = layout.get("title") if isinstance(layout, dict) else None
    title = title.get("text") if isinstance(title, dict) else title
    return (title,) if isinstance(title, str) and title else ()


# The values of a whole document → records, in whatever of the usual forms they stand in it.

MIN_ROWS_PER_SELDOM_VALUE = 2
"""Rows for one value, from which on a column is one of what is measured seldom: a chosen number."""
LOOKED_AT = 20
"""Records of a list in which a metric is looked for. Chosen: an evaluation may stand between others."""
MAX_LISTS = 0.5
"""Share of lists among the values of settings. Chosen: they hold betas and milestones, a history nothing else."""
_NAMES = ("name", "run_name", "run", "id", "run_id", "label", "title")
"""What a run in a list of them calls its name."""
_SETTINGS = frozenset(
    {"config", "configuration", "cfg", "args", "arguments", "params", "parameters", "hparams", "hyperparams",
     "hyperparameters", "hyper", "settings", "options", "opt", "flags"}
)  # fmt: skip
"""Words in the keys of settings."""
_WORD_OF_KEY = regex(r"[a-z]+")
_COUNTED = regex(r"(?:(?:epoch|ep|step|iter|iteration)[ _-]?)?\d{1,12}", re.IGNORECASE)
"""Where the keys of a mapping count its records."""
_NO_DIGITS = regex(r"\D+")
_HISTORIES = frozenset({"history", "log", "logs", "records", "epoch", "epochs", "step", "steps", "iter", "iteration"})
"""What such a mapping is called, or its keys: one by class has the same keys."""


def take_document(document: object, builder: RunBuilder, where: str = "the document") -> None:
    """Give what a document holds to the builder: a list of records, columns, or curves with steps of their own.

    Args:
        document: The document.
        builder: Where it goes; of several runs, the one that is wanted or the longest.
        where: What holds the document, for messages.

    Raises:
        InputError: it lists runs, each with its results and without its history.
    """
    if isinstance(document, list) and (advice := advice_on_runs(_rows_of_table(document))):
        raise InputError(f"{where}: {advice}")
    curves = curves_in(document)
    if curves:
        _configure({key: settings for key, settings in _settings_in(document).items() if _names_settings(key)}, builder)
        add_points(builder, curves)
        return
    runs = {run.name: run for run in _runs_in(document) if run.measures()}
    if runs:
        sizes = {name: sum(len(records) for _, records in run.lists) for name, run in runs.items()}
        run = runs[builder.choose(where, sizes, {}) if len(runs) > 1 else next(iter(runs))]
        _configure(run.settings, builder)
        records = _in_order([[_of_phase(record, phase) for record in part] for phase, part in run.lists])
    else:
        records = records_in(document)
        if all(record is not document for record in records):
            _configure(_settings_in(document), builder)
    for record in records:
        if not builder.record(record) and builder.records and any(map(is_telling, nulls_in(record))):
            builder.numbers({})  # it was a record all the same
    builder.ends_with(records[-1] if records else {})


def _rows_of_table(document: list[object]) -> list[Mapping[str, object]]:
    """Return the objects of a list that hold no list, as the rows of a table; none where others do."""
    rows: list[Mapping[str, object]] = [item for item in document[:ROWS_LOOKED_AT] if isinstance(item, dict)]
    return [] if any(is_column(value) for row in rows for value in row.values()) else rows


def holds_runs(document: object) -> bool:
    """Say whether a document holds the records of a run and is not a record itself."""
    return bool(curves_in(document)) or any(run.measures() for run in _runs_in(document))


def _configure(settings: Mapping[str, Mapping[str, object]], builder: RunBuilder) -> None:
    for key, values in settings.items():
        builder.configure(values, key)


@dataclass(slots=True)
class _RunOfDocument:
    """A run in a document: its lists of records, each with the phase that it is of, and its settings by their key."""

    name: str
    lists: list[tuple[str, Sequence[Mapping[str, object]]]]
    settings: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def measures(self) -> set[str]:
        """Return what its lists measure."""
        return {
            name
            for phase, records in self.lists
            for name in _measured([_of_phase(record, phase) for record in records[:LOOKED_AT]])
        }


def _runs_in(value: object, name: str = "", phase: str = "", depth: int = 0) -> list[_RunOfDocument]:
    """Return the runs that a part of a document holds, in lists of records or columns at any depth.

    `phase` is what the keys above it name, `depth` how many there are.
    """
    if depth > MAX_DEPTH:
        return []
    phase = _phase_of(name) or phase
    value = _by_counter(name, value) or value if isinstance(value, dict) else value
    if isinstance(value, list):
        items = [item for item in value if isinstance(item, dict)]
        return _runs_in_list(items, name, phase, depth) if items and len(items) == len(value) else []
    if not isinstance(value, dict):
        return []
    columns = _columns_in(value)
    if any(map(is_telling, columns)):
        return [_RunOfDocument(name, [(phase, _rows(columns))], _settings_in(value))]
    return _parts(value, phase, depth)


def _runs_in_list(items: Sequence[Mapping[str, object]], name: str, phase: str, depth: int) -> list[_RunOfDocument]:
    if name and _is_point(items[0]):
        items = [{name if key in _VALUES else key: value for key, value in item.items()} for item in items]
    if any(_is_record(item, depth) for item in items[:LOOKED_AT]):
        return [_RunOfDocument(name, [(phase, items)])]
    return _parts(_by_name(items[:MAX_CURVES]), phase, depth, several=True)


def _parts(value: Mapping[str, object], phase: str, depth: int, *, several: bool = False) -> list[_RunOfDocument]:
    """Return the runs in the parts of a mapping.

    Parts that measure the same are those of several runs, as are all where that is known; else all are of one.
    """
    searched = {key: part for key, part in islice(value.items(), MAX_CURVES) if not _names_settings(key)}
    found = {key: runs for key, part in searched.items() if (runs := _runs_in(part, key, phase, depth + 1))}
    runs = [run for some in found.values() for run in some]
    measured = [name for run in runs for name in run.measures()] if len(runs) > 1 else []
    if several or len(measured) > len(set(measured)) or len(found) < len(runs):
        for key, some in found.items():
            for run in some if len(found) > 1 or len(some) == 1 else ():
                run.name = f"{key}/{run.name}" if len(some) > 1 else key
    elif runs:
        of_all = {key: settings for run in runs for key, settings in run.settings.items()}
        runs = [_RunOfDocument(runs[0].name, [phase_records for run in runs for phase_records in run.lists], of_all)]
    if runs and not several:
        settings = _settings_in({key: part for key, part in value.items() if key not in found})
        for run in runs:
            run.settings = {**settings, **run.settings}
    return runs


def _by_name(items: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the runs of a list by the names that they give themselves, else by their places."""
    names = [next((str(item[key]) for key in _NAMES if isinstance(item.get(key), str)), "") for item in items]
    named = all(names) and len(set(names)) == len(names)
    return dict(zip(names if named else map(str, range(1, len(items) + 1)), items, strict=True))


def _by_counter(name: str, value: Mapping[str, object]) -> list[object]:
    """Return the records of a mapping from steps or epochs to them, as `{"10": {"loss": 2.3}}`; empty for others."""
    first = next(iter(value), "")
    is_history = _phase_of(name) or not _HISTORIES.isdisjoint(_WORD_OF_KEY.findall(f"{name} {first}".lower()))
    if len(value) < LEAST_POINTS or not is_history or not all(map(_COUNTED.fullmatch, value)):
        return []
    counter = "epoch" if "ep" in f"{name}{first}".lower().replace("step", "") else "step"
    return [
        {counter: float(_NO_DIGITS.sub("", key)), **record} for key, record in value.items() if isinstance(record, dict)
    ]


def _is_point(item: Mapping[str, object]) -> bool:
    """Say whether an item of a list is a value at a place: `{"step": 10, "value": 2.3}`."""
    counts = any(key in COUNTERS for key in map(canonical, item))
    return counts and any(key in item for key in _VALUES) and single_in(item) is None


def _is_record(item: Mapping[str, object], depth: int) -> bool:
    """Say whether an item of a list is a record: it measures something, and holds no run with lists of its own."""
    if not _measured([item]):
        return False
    counts = any(canonical(name) in COUNTERS for name, _ in numbers_in(item))
    return counts or not any(_runs_in(part, "", "", depth + 2) for part in item.values() if not is_column(part))


def _measured(records: Sequence[Mapping[str, object]]) -> set[str]:
    """Return the metrics in the first of some records by which a log of training is known; a null counts."""
    first = records[:LOOKED_AT]
    names = [name for record in first for name in (*dict(numbers_in(record)), *nulls_in(record))]
    names += [single.metric for single in map(single_in, first) if single is not None]
    return {name for name in names if is_telling(name) and not _names_settings(name)}


def _phase_of(key: str) -> str:
    """Return the phase that the key of a list names, "train", "eval" or "test", else ""; "test_1" is that of a run."""
    phase = "" if any(map(str.isdigit, key)) else phase_in(key.removesuffix("s"))
    return "test" if phase == "eval" and "test" in key.lower() else phase


def _of_phase(record: Mapping[str, object], phase: str) -> Mapping[str, object]:
    """Return a record with the names that its metrics have in a phase."""
    if phase in ("", "train"):
        return record
    if (single := single_in(record)) is not None:
        record = {**single.rest, single.metric: single.value}
    return {
        name if named_of_evaluation(name) == name else f"{phase}/{name}": value for name, value in numbers_in(record)
    }


def _in_order(parts: Sequence[Sequence[Mapping[str, object]]]) -> Sequence[Mapping[str, object]]:
    """Return the records of several lists in the order of their steps or epochs, or else of their places.

    Those at one step that say nothing twice are one record.
    """
    if len(parts) == 1:
        return parts[0]
    counted = [{canonical(name) for name, _ in numbers_in(part[0])} for part in parts]
    counter = next((name for name in COUNTERS if all(name in names for names in counted)), "")
    ordered: list[Mapping[str, object]] = []
    before = -math.inf
    for at, record in merge(*(_placed(part, counter) for part in parts), key=itemgetter(0)):
        last = ordered[-1] if at == before else {}
        if last and all(last[name] == value for name, value in record.items() if name in last):
            ordered[-1] = {**last, **record}
        else:
            ordered.append(record)
        before = at
    return ordered


def _placed(records: Sequence[Mapping[str, object]], counter: str) -> Iterator[tuple[float, Mapping[str, object]]]:
    at = 0.0
    for number, record in enumerate(records, start=1):
        here = (value for name, value in numbers_in(record) if canonical(name) == counter)
        at = next(here, at) if counter else number / len(records)
        yield at, record


def _settings_in(value: object, key: str = "", depth: int = 0) -> dict[str, Mapping[str, object]]:
    """Return the mappings of constants in a part of a document that are settings, by their keys."""
    if not isinstance(value, dict) or depth > MAX_DEPTH or len(value) > MAX_CURVES:
        return {}
    named = _names_settings(key)
    lists = sum(isinstance(part, list) for part in value.values())
    measures = any(map(is_telling, value)) or lists > MAX_LISTS * len(value)
    if depth and is_configuration(value, is_marked=named, once=True) and (named or not measures):
        return {key: value}
    found = {name: of for inner, part in value.items() for name, of in _settings_in(part, inner, depth + 1).items()}
    plain = {name: leaf for name, leaf in value.items() if not isinstance(leaf, dict | list) and not is_telling(name)}
    return {**found, **({key or "the document": plain} if is_configuration(plain, once=True) else {})}


def _names_settings(key: str) -> bool:
    return not _SETTINGS.isdisjoint(_WORD_OF_KEY.findall(key.lower()))


def records_in(document: object) -> Sequence[Mapping[str, object]]:
    """Return the records of a document, in whatever of these forms they stand in it."""
    if isinstance(document, list):
        return [record for record in document if isinstance(record, dict)]
    if not isinstance(document, dict):
        return []
    columns = _columns_in(document)
    if columns:
        return _rows(columns)
    for value in document.values():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return value
    return [document]


def _columns_in(document: Mapping[str, object]) -> dict[str, list[object]]:
    """Return the columns of an object, those of the objects in it where its own measure nothing."""
    columns = {key: value for key, value in document.items() if isinstance(value, list) and is_column(value)}
    if any(map(is_telling, columns)):
        return columns
    return {**columns, **_grouped(document)}  # a History of Keras, written out: {"history": {...}, "epoch": [...]}


def _rows(columns: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Return the records of columns.

    A column that is far shorter than the longest was measured now and then, as an evaluation is: its values are spread
    evenly. One that is a little shorter lacks its end.
    """
    rows: list[dict[str, object]] = [{} for _ in range(max(map(len, columns.values())))]
    for key, column in columns.items():
        seldom = MIN_ROWS_PER_SELDOM_VALUE * len(column) <= len(rows)
        last = _last_of_the_seldom(len(rows), len(column)) if seldom else len(column)
        for number, value in enumerate(column, start=1):
            rows[math.ceil(number * last / len(column)) - 1][key] = value
    return rows


def _last_of_the_seldom(rows: int, values: int) -> int:
    """Return the row of the last of a few values: of each third of ten rows it is the ninth, else the last row.

    Keras 3.15.1 with `validation_freq=3` evaluates in epochs 3, 6 and 9 of ten, and lists three values.
    """
    every = rows // values
    return every * values if rows // every == values else rows


def _grouped(document: Mapping[str, object]) -> dict[str, list[object]]:
    """Return the columns of the objects in a document: `{"train": {"loss": [...]}, "val": {"loss": [...]}}`."""
    groups = {
        key: {name: column for name, column in value.items() if is_column(column)}
        for key, value in document.items()
        if isinstance(value, dict)
    }
    telling = {key: group for key, group in groups.items() if any(map(is_telling, group))}
    groups = telling or {key: group for key, group in groups.items() if group}
    if len(groups) == 1:
        return next(iter(groups.values()))
    # XGBoost's and LightGBM's `evals_result` holds their measures alone; printed, they stand behind a hyphen.
    between = "-" if are_measures_of_boosting({name for group in groups.values() for name in group}) else "/"
    return {f"{key}{between}{name}": column for key, group in groups.items() for name, column in group.items()}


def objects_by_line(file: LogFile, builder: RunBuilder) -> Iterator[Object]:
    """Yield the object of each line; the lines that are none are counted in the notes."""
    broken = 0
    for line in file.lines():
        if not line.strip():
            continue
        record = parse_object(line)
        if record is not None:
            yield record
        else:
            broken += 1
    builder.skipped(broken, "line(s) that are not JSON objects")
