"""What every kind of run has in common: settings that a fault can change, records, and a way of logging them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

Record = dict[str, float]
Settings = dict[str, float | bool | str]


@dataclass(slots=True, kw_only=True)
class Experiment(ABC):
    """A run before it is trained: the usual settings of its task, which faults change.

    Args:
        seed: Of the weights, the data order and the noise.
        lr: Peak learning rate.
        steps: Planned steps of the run.
        onset: The step at which the fault begins to show, if it has one.
        ends_at: The step after which the run stops without having finished; 0 where it runs to its end.
        last_words: What stands in the log after the last record.
        own_log: What a framework wrote by itself, once trained; empty where the records are written by us.
        config: Settings for the configuration file beside those that the task writes there.
    """

    seed: int
    lr: float = 0.0
    steps: int = 0
    onset: float | None = None
    ends_at: int = 0
    last_words: str = ""
    own_log: str = ""
    config: Settings = field(default_factory=dict)

    formats: ClassVar[tuple[str, ...]] = ("jsonl", "csv", "text", "trainer_state")
    """Formats that its framework logs in; "own" is the file that the framework wrote by itself."""
    own_file: ClassVar[str] = "trainer_state.json"
    """The name of the file that the framework writes by itself."""
    intervals: ClassVar[tuple[int, ...]] = (1, 1, 5, 10)
    """Steps from record to record."""
    left_out: ClassVar[tuple[tuple[str, ...], ...]] = ((),)
    """Metrics that a log may lack; which of these choices it is follows from the name of the run."""
    telling: ClassVar[tuple[str, ...]] = ()
    """Metrics of which one must differ for a fault to show; any metric where it is empty."""
    columns: ClassVar[dict[str, str]] = {}
    """Names that differ in the log of its framework."""

    @abstractmethod
    def train(self) -> list[Record]:
        """Train and return the records, one per step; evaluations stand in the record of their step."""

    @abstractmethod
    def settings(self) -> Settings:
        """Return what stands in the configuration file."""


class Training(Protocol):
    """A model on its way."""

    def step(self, step: int) -> Record:
        """Make a step and return its record."""


@dataclass(slots=True, kw_only=True)
class Stepwise(Experiment):
    """A run that makes one step after the other."""

    @abstractmethod
    def begin(self) -> Training:
        """Return the model before its first step."""

    def train(self) -> list[Record]:
        """Train and return a record for each step."""
        training = self.begin()
        return [training.step(step) for step in range(self.steps)]


@dataclass(frozen=True)
class Subject:
    """Something that can be trained.

    Args:
        name: Its name, the first part of the names of its runs.
        usual: Returns the healthy experiment for a seed.
        tuning: Whether its runs belong to the part that numbers are fitted on.
        needs: Packages without which it cannot be trained.
    """

    name: str
    usual: Callable[[int], Experiment]
    tuning: bool
    needs: tuple[str, ...] = ("torch",)
