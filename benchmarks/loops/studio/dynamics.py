"""Regression on physics."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import data
from benchmarks.loops.studio.core import Values
from benchmarks.loops.studio.loop import Batch, Bench, LossFn
from benchmarks.loops.studio.tables import mlp


def motion(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Damped oscillators: mass, stiffness, damping, time -> position (B,1)."""
    x = torch.rand(count, 4, generator=data.gen(seed))
    w = 2 + 4 * x[:, 1] / (0.5 + x[:, 0])
    y = torch.exp(-x[:, 2] * 2 * x[:, 3]) * torch.cos(w * x[:, 3] * 1.5)
    return x * 2 - 1, y[:, None]


def squared(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Mean squared error."""
    return {"loss": functional.mse_loss(model(batch[0]), batch[1])}


def fitness(model: nn.Module, batch: Batch) -> Values:
    """Mean squared error, its root, and the share of variance explained."""
    p = model(batch[0])
    mse = functional.mse_loss(p, batch[1]).item()
    return {"loss": mse, "rmse": math.sqrt(mse), "r2": 1 - mse / batch[1].var().item()}


def physics(seed: int, count: int = 2000, net: nn.Module | None = None, loss: LossFn = squared) -> Bench:
    """Regression of a damped oscillator."""
    torch.manual_seed(seed)
    return Bench(
        net or mlp([4, 48, 48, 1], act=nn.SiLU),
        motion(count, seed),
        {"val": motion(500, seed + 5000)},
        loss,
        fitness,
        {"model": "mlp_surrogate", "target": "x(t)", "inputs": ["m", "k", "c", "t"]},
    )
