"""Read logs, those of others and our own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.foreign.labels import Labelled
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import Run, read_run

ROOT = Path(__file__).parent.parent.parent
OWN = ("tests/logs/samples", "examples")
_NO_LOGS = frozenset({".py", ".md", ".yaml", ".svg", ".png", ".html", ".gz"})
_NO_LOG_NAMES = frozenset({"config.json", "meta.yaml"})
_STORES = frozenset({"mlruns"})
"""Folders whose files make one run only together."""

KINDS: Mapping[str, str] = {
    "language_modelling": "pretraining",
    "classification": "supervised",
    "regression": "supervised",
    "sft": "sft",
    "dpo": "preference",
    "grpo": "grpo",
    "rl": "rl",
}
"""The kind of run that a task is, by its name up to the first `:` or `_`, or whole."""


@dataclass(frozen=True)
class Read:
    """A log and what was read of it, or why it was refused."""

    one: Labelled
    run: Run | None
    refused: str = ""

    @property
    def counted(self) -> int | None:
        """The records that a person counted in it."""
        counted = self.one.label.get("n_records")
        return None if counted is None or self.run is None else int(counted)

    @property
    def records(self) -> int:
        """The records that were read of it, those of all its attempts."""
        if self.run is None:
            return 0
        return sum(attempt.records for attempt in self.run.attempts) or self.run.records

    @property
    def kind(self) -> str:
        """The kind of run that its task is, empty if the label names no task.

        Raises:
            SystemExit: the task is not in `KINDS`.
        """
        task = str(self.one.label.get("task") or "")
        if not task:
            return ""
        names = (task, re.split("[:_]", task)[0])
        known = next((KINDS[name] for name in names if name in KINDS), None)
        if known is None:
            raise SystemExit(f"{self.one.name}: of which kind the task {task!r} is, is not known; add it to KINDS")
        return known


def own_logs() -> list[Labelled]:
    """Return the samples of the tests and the examples."""
    return [
        Labelled(str(path.relative_to(ROOT)), path, "our samples", "", {})
        for folder in OWN
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file() and _may_be_log(path)
    ]


def _may_be_log(path: Path) -> bool:
    return path.suffix not in _NO_LOGS and path.name not in _NO_LOG_NAMES and not _STORES & set(path.parts)


def read_all(ones: Sequence[Labelled]) -> Iterator[Read]:
    """Read logs, one after another."""
    for one in ones:
        try:
            yield Read(one, read_run(one.path))
        except InputError as error:
            yield Read(one, None, str(error).replace(str(one.path), one.name))
