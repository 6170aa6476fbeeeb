"""What a loop tells the writers: records of training and evaluation, and notes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["train", "eval", "note"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One record, or a note in words; `at` is in seconds since the run began."""

    kind: Kind
    step: int
    epoch: int
    values: dict[str, float]
    at: float
    text: str = ""


@dataclass
class Journal:
    """The records of a run in order of time."""

    entries: list[Entry] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def train(self, step: int, epoch: int, values: dict[str, float]) -> None:
        """Record a step of training."""
        self._add("train", step, epoch, values)

    def evaluate(self, step: int, epoch: int, values: dict[str, float]) -> None:
        """Record an evaluation after a step."""
        self._add("eval", step, epoch, values)

    def note(self, step: int, epoch: int, text: str) -> None:
        """Record what the loop says in words, such as a resume or an error."""
        self._add("note", step, epoch, {}, text)

    def _add(self, kind: Kind, step: int, epoch: int, values: dict[str, float], text: str = "") -> None:
        self.entries.append(Entry(kind, step, epoch, values, time.perf_counter() - self.began, text))
