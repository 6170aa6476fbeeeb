"""Count what is understood of logs, and list what is not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.faults.figures import Rows, table
from benchmarks.foreign.labels import columns
from benchmarks.reading.reads import Read
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


MOST = 60
"""Names that a list shows."""


def report(ones: Sequence[Read], *, details: bool) -> str:
    """Return the shares as a Markdown table, one column per folder and half, and details of what may be shown."""
    parts = {name: [one for one in ones if one.one.column == name] for name in columns([one.one for one in ones])}
    measured = {name: _measures(part) for name, part in parts.items()}
    rows = [{"": what, **{name: one[what] for name, one in measured.items()}} for what in next(iter(measured.values()))]
    shown = [one for one in ones if one.one.shown]
    return "\n\n".join([table(rows), *(_details(shown) if details else [])])


def columns_of(run: Run) -> dict[str, bool]:
    """Return whether each column of numbers has a role, by the name that it was logged with."""
    return {one.logged_as or name: one.role is not None for name, one in run.series.items()}


def settings_of(run: Run) -> dict[str, bool]:
    """Return whether each key of the configuration is a setting that is known."""
    return {name: one.known for name, one in run.settings.items()}


def _measures(ones: Sequence[Read]) -> dict[str, str]:
    runs = [one.run for one in ones if one.run is not None]
    named = [(one, one.run) for one in ones if one.run is not None and one.kind]
    counted = [(one.counted, one.records) for one in ones if one.counted is not None]
    return {
        "logs read": _share([one.run is not None for one in ones]),
        "columns of numbers with a role": _share([has for run in runs for has in columns_of(run).values()]),
        f"records within {TOLERANCE:.0%} of the index": _share([close(ours, theirs) for theirs, ours in counted]),
        "right kind of run": _share([run.kind == one.kind for one, run in named]),
        "keys of the configuration that are known settings": _share(
            [known for run in runs for known in settings_of(run).values()]
        ),
    }


def _share(true: Sequence[bool]) -> str:
    return f"{sum(true)} of {len(true)} ({sum(true) / len(true):.2f})" if true else "none told"


def _details(ones: Sequence[Read]) -> list[str]:
    runs = [one.run for one in ones if one.run is not None]
    lists = {
        "Columns without a role": _frequent(map(columns_of, runs), "column"),
        "Keys that are no known setting": _frequent(map(settings_of, runs), "key"),
        "Records": [row for one in ones if one.run is not None for row in _records(one, one.run)],
        "Kinds of runs": [
            {"log": one.one.name, "is": one.kind, "read as": one.run.kind}
            for one in ones
            if one.run is not None and one.kind not in ("", one.run.kind)
        ],
        "Refused": [{"log": one.one.name, "why": one.refused[:200]} for one in ones if one.run is None],
    }
    return [f"## {title}\n\n{table(rows)}" for title, rows in lists.items() if rows]


def _frequent(known: Iterable[Mapping[str, bool]], what: str) -> Rows:
    """Return the names that are not known, those of most logs first."""
    logs = Counter(name for names in known for name, is_known in names.items() if not is_known)
    return [{what: name.replace("|", "\\|"), "logs": f"{count}"} for name, count in logs.most_common(MOST)]


def _records(one: Read, run: Run) -> Rows:
    """Return the row of a log whose records are others than those that were counted; none if they agree."""
    counted = one.counted
    if counted is None or close(one.records, counted):
        return []
    counts = why(run, LogFile.open(one.one.path), counted) if one.one.path.is_file() else ""
    return [{"log": one.one.name, "counted": f"{counted}", "read": f"{one.records}", "the index counts": counts}]
