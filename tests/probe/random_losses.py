"""Entries whose losses each call draws anew, and entries that return a dict."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional

ROWS, FEATURES, CLASSES = 16, 20, 10


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(ROWS, FEATURES, generator=generator), torch.randint(0, CLASSES, (ROWS,), generator=generator)


def class_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def perceptron() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 48), nn.ReLU(), nn.Linear(48, CLASSES))


def labels_drawn_anew() -> SimpleNamespace:
    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch[0]), torch.randint(0, CLASSES, (len(batch[0]),)))

    return SimpleNamespace(model=perceptron(), batch=data(), loss=loss)


class NewLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, 32)

    def forward(self, inputs: Tensor) -> Tensor:
        return nn.Linear(32, CLASSES)(self.body(inputs).relu())  # type: ignore[no-any-return]


def layers_made_in_forward() -> SimpleNamespace:
    torch.manual_seed(0)
    return SimpleNamespace(model=NewLayers(), batch=data(), loss=class_loss)


def returns_a_dict() -> dict[str, object]:
    return {"model": perceptron(), "batch": data(), "loss_fn": class_loss}


def returns_half_a_dict() -> dict[str, object]:
    return {"model": perceptron()}
