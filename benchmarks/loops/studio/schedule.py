"""The learning rate, the optimizer and the running means of a loop."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.loops.studio.core import Plan, Values


def factor(plan: Plan, step: int, total: int) -> float:
    """The planned multiplier of the learning rate at a step."""
    if plan.warmup and step < plan.warmup:
        return (step + 1) / plan.warmup
    part = min(1.0, (step - plan.warmup) / max(1, total - plan.warmup))
    if plan.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * part)) + 1e-4
    if plan.schedule == "linear":
        return 1 - part + 1e-4
    if plan.schedule == "step":
        return 0.1 ** (int(part >= 0.5) + int(part >= 0.8))
    if plan.schedule == "onecycle":
        return _one_cycle(part)
    return 1.0


def _one_cycle(part: float, rise: float = 0.3) -> float:
    if part < rise:
        return 0.04 + 0.96 * part / rise
    return 0.5 * (1 + math.cos(math.pi * (part - rise) / (1 - rise))) + 1e-4


def optimizer(plan: Plan, params: list[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer that the plan names."""
    if plan.optim == "sgd":
        return torch.optim.SGD(params, lr=plan.lr, momentum=plan.momentum, weight_decay=plan.weight_decay)
    kind = torch.optim.AdamW if plan.optim == "adamw" else torch.optim.Adam
    return kind(params, lr=plan.lr, betas=plan.betas, eps=plan.eps, weight_decay=plan.weight_decay)


class Meter:
    """Means over the steps since the last row."""

    def __init__(self) -> None:
        self.sums: Values = {}
        self.count = 0

    def add(self, values: Values) -> None:
        """Take in one step."""
        self.count += 1
        for key, value in values.items():
            self.sums[key] = self.sums.get(key, 0.0) + value

    def take(self) -> Values:
        """The means, and start again."""
        out = {key: value / self.count for key, value in self.sums.items()}
        self.sums, self.count = {}, 0
        return out
