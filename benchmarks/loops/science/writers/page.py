"""What a style writes: the chosen columns of a run's records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.loops.science.journal import Entry, Journal
from benchmarks.loops.science.run import Run

# Logged only by those who ask for them; all else that a loop measures is logged.
ASKED_FOR = frozenset({"lr", "grad_norm", "step_time", "data_time"})
FIRST_DAY = datetime(2025, 3, 3, 9, 12, 40, tzinfo=UTC)


@dataclass
class Epoch:
    """An epoch's means of training and its last evaluation."""

    number: int
    train: dict[str, float]
    held: dict[str, float]
    seconds: float
    notes: list[str]


@dataclass
class Page:
    """A run that is to be written into a folder."""

    run: Run
    journal: Journal
    folder: Path
    head: list[str] = field(default_factory=list)

    def entries(self) -> Iterator[Entry]:
        """Yield the records with the chosen columns alone."""
        for entry in self.journal.entries:
            values = {name: value for name, value in entry.values.items() if self._chosen(name)}
            yield Entry(entry.kind, entry.step, entry.epoch, values, entry.at, entry.text)

    def _chosen(self, name: str) -> bool:
        if name.startswith("train_"):
            return "probe" in self.run.columns
        return name not in ASKED_FOR or name in self.run.columns

    @property
    def last_step(self) -> int:
        """The step that the settings promise, or else the last one."""
        planned = self.run.experiment.settings().get("steps")
        return planned if isinstance(planned, int) else self.journal.entries[-1].step

    def epochs(self) -> list[Epoch]:
        """Return the records gathered by epoch."""
        grouped: dict[int, list[Entry]] = {}
        for entry in self.entries():
            grouped.setdefault(entry.epoch, []).append(entry)
        return [_gathered(number, entries) for number, entries in grouped.items()]

    def clock(self, entry: Entry) -> datetime:
        """Return the time of day of a record."""
        return FIRST_DAY + timedelta(seconds=entry.at)

    def write(self, name: str, lines: list[str]) -> None:
        """Write a text file of the folder."""
        (self.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _gathered(number: int, entries: list[Entry]) -> Epoch:
    trained = [entry for entry in entries if entry.kind == "train"]
    names = trained[-1].values if trained else {}
    means = {name: sum(e.values.get(name, math.nan) for e in trained) / len(trained) for name in names}
    held = [entry.values for entry in entries if entry.kind == "eval"]
    seconds = entries[-1].at - entries[0].at
    return Epoch(number, means, held[-1] if held else {}, seconds, [e.text for e in entries if e.kind == "note"])


def short(value: float, digits: int = 4) -> str:
    """Return a number as a console shows it: fixed point, or scientific where that would show no digits."""
    if math.isfinite(value) and value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{max(digits - 2, 1)}e}"
    return f"{value:.{digits}f}"
