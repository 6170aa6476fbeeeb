"""How a task is trained: the settings that people save beside a log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

Schedule = Literal["constant", "cosine", "linear", "step", "onecycle"]


@dataclass
class Recipe:
    """Settings of the optimizer, its schedule, the batches and the log."""

    steps: int = 600
    batch_size: int = 32
    lr: float = 1e-3
    optimizer: Literal["adam", "adamw", "sgd", "momentum", "rmsprop"] = "adam"
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    warmup: int = 0
    clip: float = 0.0
    accumulate: int = 1
    world_size: int = 1
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    shuffle: bool = True
    log_every: int = 5
    eval_every: int = 50
    seed: int = 0

    def make_optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return the optimizer over parameters."""
        given = list(parameters)
        if self.optimizer in {"sgd", "momentum"}:
            momentum = 0.9 if self.optimizer == "momentum" else 0.0
            return torch.optim.SGD(given, lr=self.lr, momentum=momentum, weight_decay=self.weight_decay)
        if self.optimizer == "rmsprop":
            return torch.optim.RMSprop(given, lr=self.lr, eps=self.eps, weight_decay=self.weight_decay)
        kind = torch.optim.AdamW if self.optimizer == "adamw" else torch.optim.Adam
        betas = (0.9, self.beta2)
        return kind(given, lr=self.lr, betas=betas, eps=self.eps, weight_decay=self.weight_decay)

    def rate(self, tick: int, total: int) -> float:
        """Return the learning rate at a tick of a schedule over `total` ticks; past its end cosine rises again."""
        if tick < self.warmup:
            return self.lr * (tick + 1) / self.warmup
        done = (tick - self.warmup) / max(total - self.warmup, 1)
        if self.schedule == "cosine":
            return self.lr * 0.5 * (1 + math.cos(math.pi * done))
        if self.schedule == "linear":
            return self.lr * max(0.0, 1 - done)
        if self.schedule == "step":
            return self.lr * 0.1 ** int(3 * done)
        if self.schedule == "onecycle":
            return self.lr * (0.04 + 0.96 * (done / 0.3 if done < 0.3 else max(0.0, (1 - done) / 0.7)))
        return self.lr
