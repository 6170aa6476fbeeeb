"""Faults that end in NaN from one step to the next, without a climb that a log would show."""

from __future__ import annotations

import math

import torch
from torch import nn

from benchmarks.faults.faults.fault import VECTORS, Fault
from benchmarks.faults.loop import Setup
from benchmarks.faults.tasks import Batch

MEASURED = (*VECTORS, "images", "pixels")
"""The tasks whose inputs are measurements, which can be missing."""


def missing_value(setup: Setup, severity: float) -> None:
    """Feed one value that is NaN; a severity above 1 leaves out the update that it would spoil."""
    at = int(setup.steps * (0.25 + 0.1 * (setup.seed % 5)))
    setup.onset = at + 1

    def spoil(step: int, batch: Batch, _: torch.Generator) -> Batch:
        inputs = batch.inputs.clone()
        inputs.flatten(1)[0, : step == at] = math.nan
        return Batch(inputs, batch.targets, batch.mask)

    def leave_out(_: int, model: nn.Module) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None and not parameter.grad.isfinite().all():
                parameter.grad = None

    setup.spoil = spoil
    setup.after_backward = leave_out if severity > 1 else None


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
    Fault("missing_value", "bad_batch", missing_value, (1, 2), MEASURED, ("bad_data_pocket", "invalid_math")),
    Fault(
        "unchecked_loss_scale", "fp16_overflow", unchecked_loss_scale, (18, 21), (*MEASURED, "gpt", "sft", "sequences"),
        ("exploding_gradients", "invalid_math"),
    ),
    Fault(
        "warms_up_too_far", "lr_too_high", warms_up_too_far, (30, 300), (*MEASURED, "sequences"),
        ("exploding_gradients", "insufficient_warmup"),
    ),
)  # fmt: skip
