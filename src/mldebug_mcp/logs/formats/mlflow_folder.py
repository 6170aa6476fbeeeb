"""MLflow's file store: `mlruns/EXPERIMENT/RUN/metrics/NAME`, a line "time value step" for each point.

Source of the layout: mlflow/store/tracking/file_store.py.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from mldebug_mcp.core.access import entries, is_file, is_folder, open_input, walk
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs.builder import MAX_METRICS, RunBuilder
from mldebug_mcp.logs.documents import Points, add_points
from mldebug_mcp.logs.numbers import parse_number

NAME = "mlflow"

_MAX_POINTS = 20_000_000
"""Of one metric."""
_LONGEST_LINE = 400
_MAX_RUNS = 500
_MAX_LISTED = 2000
"""Folders of a folder that are looked into for runs."""
_MAX_PARAM_BYTES = 8000


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
    builder.formats.append(NAME)
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
        builder.configure({file.relative_to(params).as_posix(): _first_line(file) for file in files}, NAME)
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
