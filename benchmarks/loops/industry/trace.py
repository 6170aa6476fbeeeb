"""What a run leaves behind, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Row = dict[str, float]


@dataclass(slots=True)
class Trace:
    """The rows that a loop logged, the lines that it printed between them, and its settings."""

    rows: list[Row] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)

    def log(self, **values: float) -> None:
        """Keep a row."""
        self.rows.append({name: float(value) for name, value in values.items()})

    def note(self, text: str) -> None:
        """Keep lines that stand after the rows so far."""
        self.notes.append((len(self.rows), text))

    def notes_at(self, row: int) -> list[str]:
        """Return the notes that stand right before a row."""
        return [text for at, text in self.notes if at == row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run to make: how it is trained, how it is written, and what is known of it."""

    task: str
    make: Callable[[], Trace]
    style: str
    names: str = "plain"
    conf: str = "none"
    drop: tuple[str, ...] = ()
    cause: str = "healthy"
    also: tuple[str, ...] = ()
    fact: str = ""
    weak: bool = False
