"""What is trained: a model, its training and held-out rows, a loss and measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import ClassVar, TypeVar

from torch import Tensor, nn

Rows = dict[str, Tensor]
Terms = dict[str, Tensor]
Setting = str | int | float | bool
T = TypeVar("T")


def bug(default: T) -> T:
    """Return a field that plants a fault in the code: no setting, so no configuration shows it."""
    planted: T = field(default=default, metadata={"bug": True})
    return planted


def settings_of(thing: object) -> dict[str, Setting]:
    """Return a dataclass's fields as its author would save them: without planted faults."""
    shown = [part.name for part in fields(thing) if part.init and not part.metadata.get("bug")]  # type: ignore[arg-type]
    return {name: getattr(thing, name) for name in shown}


@dataclass
class Task(ABC):
    """A task: its fields are settings, or faults planted in it, and `setup` makes model and rows from a seed."""

    name: ClassVar[str]
    model: nn.Module = field(init=False, repr=False)
    data: Rows = field(init=False, repr=False)
    held: Rows = field(init=False, repr=False)
    test: Rows = field(init=False, repr=False, default_factory=dict)

    @abstractmethod
    def setup(self, seed: int) -> None:
        """Set the model, the training rows and the held-out rows."""

    @abstractmethod
    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the loss of rows, and its terms by name if it has any."""

    def measure(self, rows: Rows) -> dict[str, float]:
        """Return the loss of rows and the measures of the field, without gradients."""
        loss, terms = self.loss(rows)
        return {"loss": loss.item()} | {name: term.item() for name, term in terms.items()}

    def size(self, rows: Rows) -> int:
        """Return how many rows there are."""
        return len(next(iter(rows.values())))

    def take(self, rows: Rows, which: Tensor) -> Rows:
        """Return the rows at these indices."""
        return {name: column[which] for name, column in rows.items()}
