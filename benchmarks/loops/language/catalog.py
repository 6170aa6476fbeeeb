"""One labelled run, and the short way to write one of the supervised loop."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.loops.language import loop
from benchmarks.loops.language.settings import Plant, Settings
from benchmarks.loops.language.task import Record, Task
from benchmarks.loops.language.writers import Writer


@dataclass(frozen=True)
class Run:
    """A run with what is known about it; `make` fills the folder and returns the records that were logged."""

    key: str
    cause: str
    task: str
    style: str
    fact: str
    make: Callable[[Path], list[Record]]
    also: tuple[str, ...] = ()
    weak: bool = False

    @property
    def name(self) -> str:
        """The folder's name: the task and a number that tells nothing of the cause."""
        return f"{self.task}-{hashlib.sha256(self.key.encode()).hexdigest()[:6]}"

    def label(self) -> dict[str, object]:
        """The line of labels.jsonl."""
        row: dict[str, object] = {"run": self.name, "cause": self.cause, "also": list(self.also), "task": self.task}
        row |= {"style": self.style, "fact": self.fact}
        return row | ({"weak": True} if self.weak else {})


OK = "healthy"


def sup(  # noqa: PLR0917 - a row of a table
    task: Callable[..., Task], key: str, cause: str, fact: str, writer: type[Writer], args: str = "", *,
    also: tuple[str, ...] = (), plant: Plant | None = None, data: dict[str, Any] | None = None, weak: bool = False,
    **settings: Any,  # noqa: ANN401 - fields of Settings
) -> Run:  # fmt: skip
    """A run of the supervised loop: `data` goes to the task, `settings` into Settings."""

    def make(folder: Path) -> list[Record]:
        s = Settings(**settings)
        torch.manual_seed(s.seed)
        log = writer(folder, args)
        loop.train(task(s, **data or {}), s, log, plant)
        return log.history

    style = f"{writer.__name__.lower()}{'+' + args if args else ''}"
    name = getattr(task, "name", key.split("/", maxsplit=1)[0])
    return Run(f"{name}/{key}", cause, name, style, fact, make, also, weak)
