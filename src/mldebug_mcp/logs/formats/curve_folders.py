"""Runs whose metrics are a file each: tables of one curve, and MLflow's file store."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.core.access import entries, is_file, is_folder, open_input, walk
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs.builder import MAX_METRICS, RunBuilder
from mldebug_mcp.logs.files import BARE, JSON, bare_curves, curve_columns, curve_name, curves_by_tag
from mldebug_mcp.logs.json_yaml import closed, parse_json
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import parse_number, to_number

if TYPE_CHECKING:
    from mldebug_mcp.logs.documents import Points
    from mldebug_mcp.logs.formats.trackers import LongTable

# Tables of one curve each, which together are a run.
#
# DVCLive keeps them in `plots/metrics/**/*.tsv`, Polyaxon in `events/metric/**/*.plx` with bars between the cells.
# d3rlpy and torchrl write them without a header: `loss.csv` with rows of an epoch, a step and a value. Those of
# TensorBoard's tags have the time, the step and the value, as a table or as a list of JSON.


FORMATS = {".tsv": "dvclive", ".plx": "polyaxon"}
_DELIMITERS = {".tsv": "\t", ".plx": "|"}
_STEP = "step"
_CLOCK = "Wall time"


def read_together(files: Sequence[LogFile], builder: RunBuilder) -> bool:
    """Read the curves of one run; return False, with nothing read, where files are not the curves of one."""
    from mldebug_mcp.logs.formats.trackers import LongTable  # most folders hold no such curves

    paths = [file.path for file in files]
    table = LongTable()
    if all(map(curve_name, paths)):
        name, read = FORMATS[paths[0].suffix], _read_by_path
    elif bare_curves(paths) == [paths]:
        name, read = BARE, _read_bare
    elif len(curves_by_tag(paths)) == len(files):
        name, read = BARE, _read_tags
    else:
        return False
    builder.formats.append(name)
    broken = read(files, table)
    table.give(builder)
    builder.skipped(broken, "row(s) that are not counters and a number")
    return True


def _read_by_path(files: Sequence[LogFile], table: LongTable) -> int:
    """Read curves whose last column is the metric, which their path names; return how many rows hold none."""
    broken = 0
    for file in files:
        name = curve_name(file.path)
        rows = csv.reader(file.lines(), delimiter=_DELIMITERS[file.path.suffix])
        header = next(rows, [])
        at = header.index(_STEP) if _STEP in header else 0
        for row in rows:
            step = to_number(row[at]) if len(row) == len(header) > 1 else None
            value = to_number(row[-1]) if row else None
            if step is None or value is None:
                broken += 1
            else:
                table.add(name, step, value)
    return broken


def _read_bare(files: Sequence[LogFile], table: LongTable) -> int:
    """Read the curves of a folder: the last column is the metric, which the file is named after, before it the step.

    A column before the step is the epoch. A table with a header next to them has several metrics.
    """
    broken = 0
    epochs: dict[float, float] = {}
    for file in files:
        rows = csv.reader(file.lines())
        names = [file.path.stem]
        for row in rows:
            numbers = [number for cell in row if (number := to_number(cell)) is not None]
            before = len(numbers) - len(names)
            if not numbers and row[:2] == ["epoch", _STEP]:
                names = [f"{file.path.stem}/{name}" for name in row[2:]]
            elif len(numbers) != len(row) or before not in (1, 2):
                broken += 1
            else:
                step = numbers[before - 1]
                for name, value in zip(names, numbers[before:], strict=True):
                    table.add(name, step, value)
                if before > 1:
                    epochs[step] = numbers[0]
    for step, epoch in epochs.items():
        table.add("epoch", step, epoch)
    return broken


def _rows(file: LogFile, delimiter: str) -> Iterator[Sequence[object]]:
    """Yield the rows below a header, or the lists of a list, those before the place where it is cut off too."""
    if delimiter != JSON:
        yield from islice(csv.reader(file.lines(), delimiter=delimiter), 1, None)
        return
    text = file.text()
    for whole in (text, closed(text)):
        with suppress(ValueError):
            document = parse_json(whole)
            yield from (row for row in document if isinstance(row, list)) if isinstance(document, list) else ()
            return


def _read_tags(files: Sequence[LogFile], table: LongTable) -> int:
    """Read curves that are named by their files: steps, values, and the times where they have them."""
    broken = 0
    tags = curves_by_tag(file.path for file in files)
    clock: dict[float, float] = {}
    for file in files:
        columns = curve_columns(file.path)
        assert columns is not None  # noqa: S101 - its header has been read
        times: dict[float, float] = {}
        for row in _rows(file, columns.delimiter):
            cells = dict(zip(columns.names, map(to_number, row), strict=False))
            step, value, time = (cells.get(name) for name in ("step", "value", "time"))
            if step is None or value is None:
                broken += bool(row)
                continue
            table.add(tags[file.path], step, value, time)
            if time is not None:
                times[step] = time
        clock = max(clock, times, key=len)
    for step, at in clock.items():
        table.add(_CLOCK, step, at, at)
    return broken


# MLflow's file store: `mlruns/EXPERIMENT/RUN/metrics/MLFLOW`, a line "time value step" for each point.
#
# Source of the layout: mlflow/store/tracking/file_store.py.


MLFLOW = "mlflow"

_MAX_POINTS = 20_000_000
"""Of one metric."""
_LONGEST_LINE = 400
_MAX_RUNS = 500
_MAX_LISTED = 2000
"""Folders of a folder that are looked into for runs."""
_MAX_PARAM_BYTES = 8000
"""Characters of a parameter's value that are read."""


def runs_in(folder: Path) -> list[Path]:
    """Return the folders of runs that have metrics, in a run's folder itself, an experiment's, or all of `mlruns`."""
    store = folder / "mlruns" if is_folder(folder / "mlruns") else folder
    experiments = _folders(store)
    for places in ([folder], experiments, (run for experiment in experiments for run in _folders(experiment))):
        found = (place for place in places if _is_run(place))
        runs = [run for run in islice(found, _MAX_RUNS) if any(walk(run / "metrics"))]
        if runs:
            return sorted(runs, key=lambda run: (run / "metrics").stat().st_mtime)
    return []


def _is_run(place: Path) -> bool:
    """Say whether a folder is that of a run; a copy of one may lack its `meta.yaml`."""
    return is_folder(place / "metrics") and (is_file(place / "meta.yaml") or is_folder(place / "params"))


def _folders(place: Path) -> list[Path]:
    """Return the folders in a folder, those that may be read: some of them where there are very many."""
    try:
        return [path for path in entries(place, _MAX_LISTED) if is_folder(path)]
    except (OSError, InputError):
        return []


def read_folder(folder: Path, builder: RunBuilder) -> bool:
    """Read one run of a file store, the notes name the others; return False if the folder holds none."""
    runs = {run.name: run for run in runs_in(folder)}
    if not runs:
        return False
    from mldebug_mcp.logs.documents import add_points

    builder.formats.append(MLFLOW)
    sizes = {name: sum(1 for file in _metric_files(run) for _ in _lines(file)) for name, run in runs.items()}
    labels = {name: _first_line(run / "tags" / "mlflow.runName") for name, run in runs.items()}
    run = runs[builder.choose(str(folder), sizes, labels)]
    metrics = {
        file.relative_to(run / "metrics").as_posix(): _points(file, builder)
        for file in islice(_metric_files(run), MAX_METRICS)
    }
    add_points(builder, metrics)
    params = run / "params"
    if is_folder(params):
        files = islice(walk(params), MAX_METRICS)
        builder.configure({file.relative_to(params).as_posix(): _first_line(file) for file in files}, MLFLOW)
    return True


def _metric_files(run: Path) -> Iterator[Path]:
    return iter(sorted(walk(run / "metrics")))


def _lines(file: Path, longest: int = _LONGEST_LINE) -> Iterator[str]:
    """Yield the lines of a file, a longer one in pieces; none of a file that is empty or may not be read."""
    try:
        with io.TextIOWrapper(open_input(file), encoding="utf-8", errors="replace") as opened:
            for number, line in enumerate(iter(lambda: opened.readline(longest), "")):
                if number >= _MAX_POINTS:
                    return
                yield line
    except (OSError, InputError):
        return


def _points(file: Path, builder: RunBuilder) -> Points:
    """Return the points of one metric; early versions of MLflow wrote no step."""
    from mldebug_mcp.logs.documents import Points

    rows: list[tuple[float, float, float]] = []
    broken = 0
    for line in _lines(file):
        numbers = [parse_number(word) for word in line.split(" ", 3)[:3]]
        if len(numbers) < 2 or None in numbers or not line.endswith("\n"):
            broken += 1
        else:
            time, value, step = [number for number in [*numbers, 0.0] if number is not None][:3]
            rows.append((time, step, value))
    if broken:
        builder.note(f"{file.name}: skipped {broken} line(s) that are cut off or no points")
    return Points(*np.array(rows, dtype=np.float64).reshape(-1, 3).T.copy())


def _first_line(file: Path) -> str:
    return next(_lines(file, _MAX_PARAM_BYTES), "").rstrip("\n")
