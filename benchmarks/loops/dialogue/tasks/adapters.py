"""Low-rank adapters on a frozen network."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from benchmarks.loops.dialogue.nets import Net


class Lora(nn.Module):
    """A linear layer with a trained low-rank addition."""

    def __init__(self, inner: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.inner = inner
        inner.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, inner.in_features) / math.sqrt(inner.in_features))
        self.lora_b = nn.Parameter(torch.zeros(inner.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        """The old layer plus the addition."""
        out: Tensor = self.inner(x) + self.scale * (x @ self.lora_a.T) @ self.lora_b.T
        return out


def add_lora(model: Net, rank: int, alpha: float) -> None:
    """Freeze `model` and put adapters on its attention and feed-forward layers."""
    model.requires_grad_(False)
    for block in model.layers():
        block.qkv = _with_lora(block.qkv, rank, alpha)
        block.out = _with_lora(block.out, rank, alpha)
        block.up[0] = _with_lora(block.up[0], rank, alpha)


def _with_lora(layer: nn.Module, rank: int, alpha: float) -> Lora:
    assert isinstance(layer, nn.Linear)
    return Lora(layer, rank, alpha)
