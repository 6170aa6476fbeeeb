"""How a supervised run is trained, and the bugs that its loop may have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from benchmarks.loops.industry.machine import Machine
from benchmarks.loops.industry.trace import Row

Batch = tuple[Tensor, ...]


@dataclass(slots=True, kw_only=True)
class Job:
    """A task: its model, its rows, its loss and what else is measured."""

    model: nn.Module
    train: Batch
    valid: Batch
    loss: Callable[[nn.Module, Batch], Tensor]
    metrics: Callable[[nn.Module, Batch], Row] = lambda _model, _batch: {}
    touch: Callable[[int, Tensor, Batch], Batch] = lambda _step, _rows, batch: batch
    order: Callable[[int, torch.Generator], Tensor] | None = None
    valid_loss: Callable[[nn.Module, Batch], Tensor] | None = None
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The settings of a run; `bugs` are what the settings do not tell."""

    steps: int = 600
    batch: int = 64
    lr: float = 1e-3
    optimizer: str = "adam"
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: str = "constant"
    warmup: int = 0
    horizon: int | None = None
    weight_decay: float = 0.0
    clip: float | None = None
    accumulate: int = 1
    every: int = 10
    eval_every: int = 50
    smooth: bool = True
    patience: int | None = None
    stop: int | None = None
    resume_at: int | None = None
    overrun: int = 0
    bugs: frozenset[str] = frozenset()
    machine: Machine | None = None
    says: tuple[tuple[int, str], ...] = ()
    seed: int = 0

    def lr_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        horizon = self.horizon or self.steps
        done = min(1.0, (step - self.warmup) / max(1, horizon - self.warmup))
        shapes: dict[str, Callable[[], float]] = {
            "constant": lambda: 1.0,
            "cosine": lambda: 0.5 * (1 + math.cos(math.pi * done)),
            "linear": lambda: 1 - done,
            "step": lambda: 0.1 ** int(3 * done),
            "restarts": lambda: 0.5 * (1 + math.cos(math.pi * ((3 * done) % 1.0))),
            "exp": lambda: 0.93**step,
        }
        return self.lr * shapes[self.schedule]()

    def shown(self) -> dict[str, object]:
        """Return the settings as a configuration would hold them."""
        shown: dict[str, object] = {
            "optimizer": self.optimizer,
            "lr": self.lr,
            "batch_size": self.batch,
            "max_steps": self.steps,
            "lr_schedule": self.schedule,
            "weight_decay": self.weight_decay,
            "seed": self.seed,
        }
        if self.optimizer == "sgd":
            shown["momentum"] = self.momentum
        optional = {
            "warmup_steps": self.warmup,
            "grad_clip": self.clip,
            "early_stopping_patience": self.patience,
            "decay_steps": self.horizon,
        }
        shown.update({name: value for name, value in optional.items() if value})
        if self.accumulate > 1:
            shown["accumulate_grad_batches"] = self.accumulate
        return shown
