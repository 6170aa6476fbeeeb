"""What in a log there are as many of as a person counted records in it, where we count others."""

from __future__ import annotations

import re
from collections.abc import Callable

from mldebug_mcp.core.protobuf import Records
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.text.counters import find_counters

TOLERANCE = 0.02

_LOSS = re.compile(r"(?:loss|reward)[a-z_]*[ :=|]+(?:nan|inf|[-+.\d]+)", re.IGNORECASE)
_ERROR = re.compile(r"error|traceback|out of memory", re.IGNORECASE)
_ALONE = re.compile(r"error", re.IGNORECASE)


def _lines(run: Run, file: LogFile) -> int:
    del run
    return sum(bool(line.strip()) for line in file.lines())


def _found(pattern: re.Pattern[str]) -> Callable[[Run, LogFile], int]:
    return lambda _, file: sum(len(pattern.findall(line)) for line in file.lines())


def _headings(run: Run, file: LogFile) -> int:
    del run
    return sum(bool(find_counters(line).values) for line in file.lines())


def _events(run: Run, file: LogFile) -> int:
    del run
    records = Records()
    records.find(file.path.read_bytes())
    return records.count


def _skipped_steps(run: Run, file: LogFile) -> int:
    del file
    return run.records + len(run.messages)


TEXT: tuple[tuple[str, Callable[[Run, LogFile], int]], ...] = (
    ("lines", _lines),
    ("records and lines that read like errors", _skipped_steps),
    ("losses and rewards with a number, several in a record", _found(_LOSS)),
    ("lines that name a step, the last without a metric", _headings),
    ("words for errors, in a log that is a crash", _found(_ERROR)),
    ("times the word error, in a log that is a crash", _found(_ALONE)),
)
BINARY = (("events, of which several tell one step", _events),)
MANY = range(2, 6)


def why(run: Run, file: LogFile, counted: int) -> str:
    """Return what there are as many of in a log as the index has records."""
    for what, count in BINARY if file.binary else TEXT:
        if close(count(run, file), counted):
            return f"{counted} {what}"
    several = next((k for k in MANY if close(k * run.records, counted)), None)
    if several:
        return f"{several} for each of the records"
    return "no record of training in it, only a crash" if not run.records else "nothing that we count"


def close(ours: int, counted: int) -> bool:
    """Say whether a count agrees with the index."""
    return abs(ours - counted) <= TOLERANCE * counted
