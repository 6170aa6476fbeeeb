"""Faults of the model: its initial weights, its depth, its nonlinearity, its size."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from benchmarks.faults.faults.fault import CLASSIFIED, SMALL, Fault, explodes, starts_badly
from benchmarks.faults.loop import Setup


def scale_weights(model: nn.Module, factor: float) -> None:
    """Multiply every weight matrix."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(factor)


def layers_with_weights(model: nn.Module) -> list[nn.Linear | nn.Conv2d]:
    """Return the linear and convolutional layers, the head last."""
    return [module for module in model.modules() if isinstance(module, (nn.Linear, nn.Conv2d))]


def exploding(setup: Setup, severity: float) -> None:
    """Train a deep network without normalisation, with large weights and no clipping."""
    setup.shape.depth, setup.optimizer, setup.lr, setup.clip = 6, "sgd", 0.05 * severity, 0.0
    setup.shape.norm = False
    setup.prepare = partial(scale_weights, factor=1.6)


def large_head(setup: Setup, severity: float) -> None:
    """Start from a head whose weights are far too large."""

    def prepare(model: nn.Module) -> None:
        with torch.no_grad():
            layers_with_weights(model)[-1].weight.mul_(severity)

    setup.prepare = prepare
    setup.onset = 1


def deep_sigmoid(setup: Setup, severity: float) -> None:
    """Stack many saturating layers."""
    setup.shape.depth, setup.shape.activation, setup.shape.norm = int(severity), nn.Sigmoid, False


def dead_relu(setup: Setup, severity: float) -> None:
    """Start with biases so negative that no ReLU passes anything."""
    setup.shape.activation, setup.shape.norm = nn.ReLU, False

    def prepare(model: nn.Module) -> None:
        with torch.no_grad():
            for module in layers_with_weights(model)[:-1]:
                if module.bias is not None:
                    module.bias.fill_(-severity)

    setup.prepare = prepare


def narrow(setup: Setup, severity: float) -> None:
    """Use one layer of a few units."""
    setup.shape.width, setup.shape.depth = int(severity), 1


FAULTS = (
    Fault(
        "exploding", "exploding_gradients", exploding, (1, 4), SMALL,
        # Where nothing overflows, activations that leave every unit saturated give a flat loss.
        ("lr_too_high", "bad_init", "no_signal", "params_not_training", "dead_units"),
        shown=explodes,
    ),
    Fault("large_head", "bad_init", large_head, (30, 100), CLASSIFIED, shown=starts_badly),
    Fault(
        "deep_sigmoid", "vanishing_gradients", deep_sigmoid, (6, 12), SMALL,
        ("lr_too_low", "no_signal", "bad_init", "dead_units"),
    ),
    Fault(
        "dead_relu", "dead_units", dead_relu, (5, 20), SMALL,
        ("vanishing_gradients", "no_signal", "params_not_training"),
    ),
    Fault(
        "narrow", "too_little_capacity", narrow, (2, 4), ("gpt", "images", "sequences", "tabular"),
        ("label_noise", "lr_too_low"),
    ),
)  # fmt: skip
