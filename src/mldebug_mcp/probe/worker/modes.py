"""What makes a model act differently in training and in evaluation."""

from __future__ import annotations

import torch

from .parameters import LISTED


def mode_modules(model: torch.nn.Module) -> list[str]:
    """Return the modules that act differently in evaluation mode."""
    found = []
    for name, one in model.named_modules():
        dropout = isinstance(one, torch.nn.modules.dropout._DropoutNd) and one.p > 0
        if dropout or isinstance(one, torch.nn.modules.batchnorm._BatchNorm):
            found.append(f"{name} ({type(one).__name__})")
    return found[:LISTED]


def has_batch_norm(model: torch.nn.Module) -> bool:
    """Tell whether a model keeps running statistics."""
    return any(isinstance(one, torch.nn.modules.batchnorm._BatchNorm) for one in model.modules())
