"""Faults of the loss: what is measured, over what, and with which mathematics."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.faults.faults.fault import CLASSIFIED, VECTORS, Fault
from benchmarks.faults.loop import Setup, plain_loss
from benchmarks.faults.tasks import Batch


def masked(setup: Setup, severity: float) -> None:
    """Count no target at all; a severity above 1 divides by their number all the same."""

    def loss(logits: Tensor, batch: Batch) -> Tensor:
        nothing = Batch(batch.inputs, batch.targets, torch.zeros_like(batch.mask))
        # A mean over no target is NaN; frameworks that divide by at least one report 0 instead.
        return plain_loss(logits, nothing) if severity > 1 else 0.0 * logits.sum()

    setup.loss = loss


def double_softmax(setup: Setup, _: float) -> None:
    """Feed probabilities to a loss that expects logits."""
    setup.loss = lambda logits, batch: plain_loss(logits.softmax(dim=1 if logits.dim() == 4 else -1), batch)


def wrong_sign(setup: Setup, _: float) -> None:
    """Maximise what is to be minimised."""
    setup.loss = lambda logits, batch: -plain_loss(logits, batch)


def unsafe_log(setup: Setup, severity: float) -> None:
    """Take the logarithm of a softmax that underflows to zero."""

    def loss(logits: Tensor, batch: Batch) -> Tensor:
        scores = logits.permute(0, 2, 3, 1) if logits.dim() == 4 else logits
        probabilities = (scores * severity).softmax(dim=-1).flatten(0, -2)[batch.mask.flatten()]
        chosen = probabilities.gather(1, batch.targets[batch.mask].unsqueeze(1))
        return -chosen.log().mean()

    setup.loss = loss
    setup.clip = 0.0


def unsafe_root(setup: Setup, severity: float) -> None:
    """Take the gradient of a norm at zero, once a batch holds nothing but zeros."""
    at = int(setup.steps * severity)
    setup.onset = at + 1

    def spoil(step: int, batch: Batch, _: torch.Generator) -> Batch:
        return Batch(batch.inputs * (0.0 if step == at else 1.0), batch.targets, batch.mask)

    setup.spoil = spoil
    setup.loss = lambda logits, batch: plain_loss(logits, batch) + 0 * (logits - logits.detach()).norm(dim=-1).mean()


def summed_over_accumulation(setup: Setup, severity: float) -> None:
    """Add the losses of micro-batches instead of averaging them."""
    setup.accumulation = 1
    setup.loss = lambda logits, batch: severity * plain_loss(logits, batch)
    setup.evaluation_loss = plain_loss
    setup.config["gradient_accumulation_steps"] = severity


FAULTS = (
    Fault("masked_zero", "all_labels_masked", masked, (1,), ("sft", "gpt"), ("params_not_training",)),
    Fault("masked_nan", "all_labels_masked", masked, (2,), ("sft", "gpt"), ("invalid_math",)),
    Fault(
        "double_softmax", "double_softmax", double_softmax, (1,), CLASSIFIED,
        ("too_little_capacity", "wrong_loss", "lr_too_low", "label_noise"),
    ),
    Fault("wrong_sign", "wrong_loss", wrong_sign, (1,)),
    Fault(
        "unsafe_log", "invalid_math", unsafe_log, (60, 300), ("tabular", "images", "sequences", "pixels"),
        # What underflows is the softmax of logits that start far too large.
        ("exploding_gradients", "fp16_overflow", "bad_init"),
    ),
    Fault(
        "unsafe_root", "invalid_math", unsafe_root, (0.3, 0.6), VECTORS,
        ("bad_batch", "fp16_overflow", "exploding_gradients"),
    ),
    Fault(
        "summed", "grad_accum_scaling", summed_over_accumulation, (4, 16), ("gpt", "sft", "images", "sequences")
    ),
)  # fmt: skip
