"""A run of the catalogue: what is trained, what is wrong with it, and how it is logged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from benchmarks.loops.science.journal import Journal
from benchmarks.loops.science.task import Setting


class Experiment(Protocol):
    """What can be run: its name, its settings, and the run itself."""

    @property
    def name(self) -> str:
        """The task's name."""

    def settings(self) -> dict[str, Setting]:
        """Return the settings that its author would save."""

    def run(self, journal: Journal) -> None:
        """Train, telling the journal."""


@dataclass(frozen=True)
class Run:
    """An experiment with its label, its style of log, the form of its settings, and columns beside the usual."""

    experiment: Experiment
    cause: str
    fact: str
    style: str
    settings: str = ""
    columns: tuple[str, ...] = ("lr", "grad_norm")
    also: tuple[str, ...] = ()
    weak: bool = False

    def label(self, name: str) -> dict[str, object]:
        """Return the line of the index for a run of this name."""
        known: dict[str, object] = {"run": name, "cause": self.cause, "also": list(self.also)}
        known |= {"task": self.experiment.name, "style": self.style, "settings": self.settings or "none"}
        known["fact"] = self.fact
        if self.weak:
            known["weak"] = True
        return known
