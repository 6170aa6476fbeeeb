"""What one task gives to the trainer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Batch = list[torch.Tensor]


@dataclass
class Task:
    """A model with its data and its measures.

    `train` and `val` are lists of tensors with samples along the first dimension; the first is the input, the last the
    target. `forward` maps model and batch to outputs, `criterion` outputs and batch to a scalar loss, `score` outputs
    and batch to named metrics (means over the batch).
    """

    model: nn.Module
    train: Batch
    val: Batch
    forward: Callable[[nn.Module, Batch], Any]
    criterion: Callable[[Any, Batch], torch.Tensor]
    score: Callable[[Any, Batch], dict[str, float]]


def first_input(model: nn.Module, batch: Batch) -> torch.Tensor:
    """The model's output on the first tensor of the batch."""
    output: torch.Tensor = model(batch[0])
    return output


def cross_entropy(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Cross-entropy in nats; classes lie on the last dimension of `logits`, targets of -100 are left out."""
    return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), batch[-1].reshape(-1))


def accuracy(logits: torch.Tensor, batch: Batch) -> dict[str, float]:
    """Share of the targets (those of -100 left out) whose class has the largest logit."""
    target = batch[-1]
    hit = (logits.argmax(-1) == target)[target != -100]
    return {"acc": hit.float().mean().item() if len(hit) else 0.0}
