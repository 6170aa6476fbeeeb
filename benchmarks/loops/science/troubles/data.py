"""Faults of the rows: what they hold, and in which order they come."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmarks.loops.science.task import Rows
from benchmarks.loops.science.trainer import Trainer, Trouble


@dataclass
class WrongTargets(Trouble):
    """A share of the training rows has the targets of other rows; of the held-out rows too, if `held`."""

    share: float
    key: str = "y"
    held: bool = False

    def start(self, trainer: Trainer) -> None:
        """Exchange targets between random rows."""
        for rows in (trainer.task.data, trainer.task.held)[: 2 if self.held else 1]:
            target = rows[self.key].clone()
            hit = torch.rand(len(target)) < self.share
            target[hit] = target[hit][torch.randperm(int(hit.sum()))]
            rows[self.key] = target


@dataclass
class SortedBy(Trouble):
    """The file is sorted by the target (of the mean over what a row holds)."""

    key: str = "y"

    def start(self, trainer: Trainer) -> None:
        """Sort the training rows."""
        data = trainer.task.data
        order = (
            data[self.key].float().flatten(1).mean(1).argsort() if data[self.key].ndim > 1 else data[self.key].argsort()
        )
        trainer.task.data = trainer.task.take(data, order)


@dataclass
class ScaledHeld(Trouble):
    """Held-out inputs are not preprocessed as training inputs are."""

    key: str = "x"
    factor: float = 5.0
    shift: float = 0.0

    def start(self, trainer: Trainer) -> None:
        """Undo the preprocessing of held-out inputs."""
        trainer.task.held[self.key] = trainer.task.held[self.key] * self.factor + self.shift


@dataclass
class RawInputs(Trouble):
    """All inputs, training's and held-out ones, stay in their raw unit."""

    factor: float
    key: str = "x"
    shift: float = 0.0

    def start(self, trainer: Trainer) -> None:
        """Scale and shift both."""
        for rows in (trainer.task.data, trainer.task.held):
            rows[self.key] = rows[self.key] * self.factor + self.shift


@dataclass
class HeldInTraining(Trouble):
    """Half of what was held out, the validation, is in the training file too; the other half is a clean test."""

    def start(self, trainer: Trainer) -> None:
        """Cut the held-out rows in two and append a copy of the first half."""
        task = trainer.task
        first, second = torch.arange(task.size(task.held)).chunk(2)
        task.test, task.held = task.take(task.held, second), task.take(task.held, first)
        data, held = task.data, task.held
        trainer.task.data = {name: torch.cat([column, held[name]]) for name, column in data.items()}


@dataclass
class BadBatches(Trouble):
    """At some steps the batch comes in a wrong scale (sensor glitch, raw counts)."""

    at: tuple[int, ...]
    key: str = "x"
    factor: float = 100.0

    def batch(self, trainer: Trainer, rows: Rows) -> Rows:
        """Scale the batch if it is one of them."""
        return rows | {self.key: rows[self.key] * self.factor} if trainer.step in self.at else rows


@dataclass
class BadPocket(Trouble):
    """A stretch of the file, read in order each epoch, holds values of a wrong scale."""

    first: float
    last: float
    key: str = "x"
    factor: float = 30.0

    def start(self, trainer: Trainer) -> None:
        """Scale that stretch."""
        size = trainer.task.size(trainer.task.data)
        column = trainer.task.data[self.key].clone()
        stretch = slice(int(self.first * size), int(self.last * size))
        column[stretch] = column[stretch] * self.factor
        trainer.task.data[self.key] = column
