"""Faults that end in NaN from one step to the next, without a climb that a log would show.

One severity each: how often a cause ends so, rather than otherwise, is counted from what is injected.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.faults.faults.fault import VECTORS, Fault
from benchmarks.faults.loop import Setup
from benchmarks.faults.tasks import Batch

MEASURED = (*VECTORS, "images", "pixels")
"""The tasks whose inputs are measurements, which can be missing."""


def missing_value(setup: Setup, _: float) -> None:
    """Feed one row that is NaN, where inputs are not mere indices."""
    at = int(setup.steps * (0.25 + 0.1 * (setup.seed % 5)))
    setup.onset = at + 1

    def spoil(step: int, batch: Batch, _: torch.Generator) -> Batch:
        if step != at or not batch.inputs.is_floating_point():
            return batch
        inputs = batch.inputs.clone()
        inputs[0] = math.nan
        return Batch(inputs, batch.targets, batch.mask)

    setup.spoil = spoil


def unchecked_loss_scale(setup: Setup, severity: float) -> None:
    """Scale the loss for half precision by a power of two, and use the gradients whether they overflow or not."""
    scale = 2.0**severity

    def through_half(_: int, model: nn.Module) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad = (parameter.grad * scale).half().float() / scale

    setup.after_backward = through_half
    setup.config["fp16"] = True


def warms_up_too_far(setup: Setup, severity: float) -> None:
    """Let plain SGD warm up to a rate at which the loss overflows within a few steps."""
    setup.optimizer, setup.lr, setup.clip, setup.warmup = "sgd", 0.05 * severity, 0.0, 0.5


FAULTS = (
    Fault(
        "missing_value", "bad_batch", missing_value, (1,), MEASURED,
        ("bad_data_pocket", "fp16_overflow", "invalid_math"),
    ),
    Fault(
        "unchecked_loss_scale", "fp16_overflow", unchecked_loss_scale, (18,), (*MEASURED, "gpt", "sft", "sequences"),
        ("bad_batch", "exploding_gradients", "invalid_math"),
    ),
    Fault(
        "warms_up_too_far", "lr_too_high", warms_up_too_far, (30,), (*MEASURED, "sequences"),
        ("exploding_gradients", "insufficient_warmup"),
    ),
)  # fmt: skip
