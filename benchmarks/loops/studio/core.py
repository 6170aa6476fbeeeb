"""What a run leaves behind (Record), how it is planned (Plan) and labelled (Spec)."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Values = dict[str, float]


@dataclass
class Entry:
    """One logged moment: the values of one split, or a line of free text."""

    split: str
    step: int
    epoch: float
    clock: float
    values: Values
    text: str = ""


@dataclass
class Record:
    """All that a run logged, before a style turns it into files."""

    config: dict[str, Any] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    epochs: int = 0
    per_epoch: int = 0
    clock: float = 0.0
    step: int = 0
    epoch: float = 0.0
    started: float = 1_741_000_000.0

    @property
    def steps(self) -> int:
        """The planned number of steps."""
        return self.epochs * self.per_epoch

    def log(self, split: str, step: int, epoch: float, values: Values) -> None:
        """Add one row of values."""
        self.step, self.epoch = step, epoch
        self.entries.append(Entry(split, step, epoch, self.clock, dict(values)))

    def say(self, text: str) -> None:
        """Add a line (or lines) of free text at the present step."""
        self.entries.append(Entry("text", self.step, self.epoch, self.clock, {}, text))

    def rows(self) -> list[Entry]:
        """The entries with values."""
        return [e for e in self.entries if e.split != "text"]

    def texts(self) -> list[Entry]:
        """The entries of free text."""
        return [e for e in self.entries if e.split == "text"]


@dataclass(frozen=True)
class Plan:
    """The settings of a run that an engineer would write into its configuration."""

    epochs: int = 10
    batch: int = 64
    lr: float = 1e-3
    optim: str = "adam"
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    schedule: str = "constant"
    warmup: int = 0
    clip: float | None = None
    accum: int = 1
    log_every: int = 0
    eval_every: int = 1
    log_lr: bool = False
    log_gnorm: bool = False
    patience: int = 0
    pace: float = 0.31

    def config(self) -> dict[str, Any]:
        """What of the plan goes into a configuration file."""
        out: dict[str, Any] = {
            "epochs": self.epochs,
            "batch_size": self.batch,
            "optimizer": self.optim,
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "scheduler": self.schedule,
        }
        if self.optim == "sgd":
            out["momentum"] = self.momentum
        if self.warmup:
            out["warmup_steps"] = self.warmup
        if self.clip is not None:
            out["grad_clip"] = self.clip
        if self.accum > 1:
            out["accumulate_grad_batches"] = self.accum
        if self.patience:
            out["early_stopping_patience"] = self.patience
        if self.betas != (0.9, 0.999):
            out["betas"] = list(self.betas)
        if self.eps != 1e-8:
            out["eps"] = self.eps
        return out


@dataclass(frozen=True)
class Spec:
    """One run of the set: how it is made, how it is written, and what is wrong with it."""

    cause: str
    style: str
    task: str
    make: Callable[[int], Record]
    fact: str
    also: tuple[str, ...] = ()
    weak: bool = False


@contextmanager
def guard(rec: Record) -> Iterator[None]:
    """Turn an exception of the training into the traceback that a log would end with: the loop and the libraries."""
    try:
        yield
    except (RuntimeError, IndexError, ValueError, MemoryError) as error:
        lines = ["Traceback (most recent call last):"]
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).name == "loop.py"]
        for frame in frames:
            path = frame.filename
            if "site-packages" in path:
                path = "/opt/conda/lib/python3.11/site-packages" + path.split("site-packages")[-1]
                lines.append(f'  File "{path}", line {frame.lineno}, in {frame.name}')
                lines.append(f"    {frame.line}")
            elif frame in own[-1:]:
                lines.append(f'  File "train.py", line {frame.lineno}, in main')
                lines.append(f"    {frame.line}")
        first = str(error).strip().splitlines()
        lines.append(f"{type(error).__name__}: {first[0] if first else ''}")
        rec.say("\n".join(lines))
