"""Count what is understood of logs, and list what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.faults.figures import Rows, part_of, side_by_side, table
from benchmarks.foreign.labels import columns
from benchmarks.reading.reads import Read
from mldebug_mcp.logs import Run

TOLERANCE = 0.02


def close(ours: int, counted: int) -> bool:
    """Say whether a count agrees with the index."""
    return abs(ours - counted) <= TOLERANCE * counted


MOST = 60
"""Names that a list shows."""


def report(ones: Sequence[Read], *, details: bool) -> str:
    """Return the shares as a Markdown table, one column per folder and half, and details of what may be shown."""
    parts = {name: [one for one in ones if one.one.column == name] for name in columns([one.one for one in ones])}
    rows = side_by_side({name: _measures(part) for name, part in parts.items()})
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
        "logs read": part_of([one.run is not None for one in ones]),
        "columns of numbers with a role": part_of([has for run in runs for has in columns_of(run).values()]),
        f"records within {TOLERANCE:.0%} of the index": part_of([close(ours, theirs) for theirs, ours in counted]),
        "right kind of run": part_of([run.kind == one.kind for one, run in named]),
        "keys of the configuration that are known settings": part_of(
            [known for run in runs for known in settings_of(run).values()]
        ),
    }


def _details(ones: Sequence[Read]) -> list[str]:
    runs = [one.run for one in ones if one.run is not None]
    lists = {
        "Columns without a role": _frequent(map(columns_of, runs), "column"),
        "Keys that are no known setting": _frequent(map(settings_of, runs), "key"),
        "Records": [row for one in ones if one.run is not None for row in _records(one)],
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


def _records(one: Read) -> Rows:
    """Return the row of a log whose records are others than those that were counted; none if they agree."""
    counted = one.counted
    if counted is None or close(one.records, counted):
        return []
    return [{"log": one.one.name, "counted": f"{counted}", "read": f"{one.records}"}]
