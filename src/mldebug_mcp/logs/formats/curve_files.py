"""Tables of one curve each, which together are a run.

DVCLive keeps them in `plots/metrics/**/*.tsv`, Polyaxon in `events/metric/**/*.plx` with bars between the cells.
d3rlpy and torchrl write them without a header: `loss.csv` with rows of an epoch, a step and a value. Those of
TensorBoard's tags have the time, the step and the value, as a table or as a list of JSON.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.files import BARE, JSON, bare_curves, curve_columns, curve_name, curves_by_tag
from mldebug_mcp.logs.formats.long_columns import LongTable
from mldebug_mcp.logs.json_yaml import parse_json
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import to_number

FORMATS = {".tsv": "dvclive", ".plx": "polyaxon"}
_DELIMITERS = {".tsv": "\t", ".plx": "|"}
_STEP = "step"
_CLOCK = "Wall time"


def read_together(files: Sequence[LogFile], builder: RunBuilder) -> bool:
    """Read the curves of one run; return False, with nothing read, where files are not the curves of one."""
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
    if broken:
        builder.note(f"skipped {broken} row(s) that are not counters and a number")
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
    for whole in (text, f"{text[: text.rfind(']') + 1]}]"):
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
