"""Tables of one curve each, which together are a run.

DVCLive keeps them in `plots/metrics/**/*.tsv`, Polyaxon in `events/metric/**/*.plx` with bars between the cells.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.formats.long_columns import LongTable
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.spread import curve_name

FORMATS = {".tsv": "dvclive", ".plx": "polyaxon"}
_DELIMITERS = {".tsv": "\t", ".plx": "|"}
_STEP = "step"


def read_together(files: Sequence[LogFile], builder: RunBuilder) -> None:
    """Read all curves of a run: the last column is the metric, which its path names."""
    table, broken = LongTable(), 0
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
    table.give(builder)
    if broken:
        builder.note(f"skipped {broken} row(s) without a number")
