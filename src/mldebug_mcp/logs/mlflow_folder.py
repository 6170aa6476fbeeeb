"""MLflow's file store: `mlruns/EXPERIMENT/RUN/metrics/NAME`, a line "time value step" for each point.

Source of the layout: mlflow/store/tracking/file_store.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from mldebug_mcp.logs.builder import MAX_METRICS, RunBuilder
from mldebug_mcp.logs.config import settings
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.points import Points, add_points
from mldebug_mcp.logs.several import choose_run

NAME = "mlflow"

_MAX_FILE_BYTES = 1 << 30
_MAX_RUNS = 500
_MAX_PARAM_BYTES = 8000


def runs_in(folder: Path) -> list[Path]:
    """Return the folders of runs that have metrics, in a run's folder itself, an experiment's, or all of `mlruns`."""
    for depth in ("", "*/", "*/*/", "mlruns/*/*/"):
        found = (path.parent for path in folder.glob(f"{depth}metrics") if (path.parent / "meta.yaml").is_file())
        runs = [run for run in islice(found, _MAX_RUNS) if any(_metric_files(run))]
        if runs:
            return sorted(runs, key=lambda run: (run / "meta.yaml").stat().st_mtime)
    return []


def read_folder(folder: Path, builder: RunBuilder) -> bool:
    """Read one run of a file store, the notes name the others; return False if the folder holds none."""
    runs = {run.name: run for run in runs_in(folder)}
    if not runs:
        return False
    builder.formats.append(NAME)
    sizes = {name: sum(map(_lines_in, _metric_files(run))) for name, run in runs.items()}
    labels = {name: _first_line(run / "tags" / "mlflow.runName") for name, run in runs.items()}
    run = runs[choose_run(builder, str(folder), sizes, labels)]
    metrics = {
        file.relative_to(run / "metrics").as_posix(): _points(file, builder)
        for file in islice(_metric_files(run), MAX_METRICS)
    }
    add_points(builder, metrics)
    params = run / "params"
    if params.is_dir():
        files = islice((file for file in sorted(params.rglob("*")) if file.is_file()), MAX_METRICS)
        builder.configure(settings({file.relative_to(params).as_posix(): _first_line(file) for file in files}))
    return True


def _metric_files(run: Path) -> Iterator[Path]:
    return (file for file in sorted((run / "metrics").rglob("*")) if file.is_file())


def _lines_in(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.stat().st_size <= _MAX_FILE_BYTES else 0


def _points(file: Path, builder: RunBuilder) -> Points:
    """Return the points of one metric; early versions of MLflow wrote no step."""
    rows: list[tuple[float, float, float]] = []
    broken = 0
    if file.stat().st_size <= _MAX_FILE_BYTES:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
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
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            return lines.readline(_MAX_PARAM_BYTES).rstrip("\n")
    except OSError:
        return ""
