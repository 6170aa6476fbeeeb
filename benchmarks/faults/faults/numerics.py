"""Faults of numbers: a second moment that is nearly zero, logits that outgrow their format, a scale of zero."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.faults.experiment import Record
from benchmarks.faults.faults.fault import Fault
from benchmarks.faults.faults.model import layers_with_weights
from benchmarks.faults.loop import Setup
from benchmarks.faults.tasks import Batch

LARGEST_FP8 = 448.0
"""Of the format with four bits of exponent (E4M3)."""


def forgets_its_scale(setup: Setup, severity: float) -> None:
    """Let Adam's second moment fade to nothing once all is learnt: the next gradient makes a step of the full rate.

    With an epsilon of 1e-16 nothing bounds it. Thilak et al. 2022 call what follows the slingshot mechanism.
    """
    setup.examples, setup.schedule, setup.clip, setup.weight_decay = 8 * setup.batch, "constant", 0.0, 0.0
    setup.betas, setup.eps, setup.lr = (0.9, 0.9), 1e-16, setup.lr * severity
    setup.steps = int(setup.steps * 1.5)
    setup.config |= {"adam_beta1": 0.9, "adam_beta2": 0.9, "adam_epsilon": 1e-16}


def watch_logits(_: nn.Module, logits: Tensor) -> Record:
    """Return the mean normaliser of the softmax and the largest logit."""
    return {"log_z": logits.logsumexp(dim=-1).mean().item(), "logits/max": logits.abs().amax().item()}


def half_normaliser(logits: Tensor, batch: Batch) -> Tensor:
    """Return a cross-entropy whose normaliser is summed in half precision, without taking off the maximum first."""
    scores = logits.flatten(0, -2)[batch.mask.flatten()]
    log_z = scores.exp().sum(dim=-1).half().float().log()
    return (log_z - scores.gather(1, batch.targets[batch.mask].unsqueeze(1)).squeeze(1)).mean()


def logits_drift(setup: Setup, severity: float) -> None:
    """Train on without decay, so that the logits grow until their normaliser leaves the range of the format."""
    setup.schedule, setup.clip, setup.weight_decay = "constant", 0.0, 0.0
    setup.lr *= severity
    if setup.task.name == "tabular":
        setup.batch, setup.steps, setup.lr = 128, 800, setup.lr * 5
    setup.loss, setup.watch = half_normaliser, watch_logits if setup.seed % 2 else None


def in_fp8(values: Tensor) -> Tensor:
    """Return rows rounded to fp8, each by its own scale; a row of zeros has the scale zero and becomes NaN."""
    scale = values.detach().flatten(1).abs().amax(dim=1).div(LARGEST_FP8).view(-1, *[1] * (values.dim() - 1))
    rounded = (values.detach() / scale).to(torch.float8_e4m3fn).float() * scale
    return values + (rounded - values.detach())


def scale_of_zero(setup: Setup, severity: float) -> None:
    """Compute in fp8, and meet a batch in which one row, or each, is nothing but padding."""
    at = int(setup.steps * (0.2 + 0.15 * (setup.seed % 4)))
    setup.onset = at + 1

    def prepare(model: nn.Module) -> None:
        for layer in layers_with_weights(model):
            layer.register_forward_pre_hook(lambda module, given: (in_fp8(given[0]),) if module.training else None)

    def spoil(step: int, batch: Batch, _: torch.Generator) -> Batch:
        inputs = batch.inputs.clone()
        inputs[: int(severity) if step == at else 0] = 0
        return Batch(inputs, batch.targets, batch.mask)

    setup.prepare, setup.spoil = prepare, spoil
    setup.config["fp8"] = True


def rounded_to_fp8(setup: Setup, _: float) -> None:
    """Compute in fp8, and meet no row of zeros."""
    scale_of_zero(setup, 0)
    setup.onset = None


def logits_watched(setup: Setup, severity: float) -> None:
    """Log the logits of a run at a brisk rate: they grow as long as something is learnt."""
    setup.watch, setup.lr = watch_logits, setup.lr * severity


FAULTS = (
    # Where the whole set is memorised, evaluation suffers too.
    Fault(
        "forgets_its_scale", "adam_instability", forgets_its_scale, (5, 10), ("tabular", "images", "sequences"),
        ("lr_too_high", "overfitting", "duplicated_data"), (1, 2),
    ),
    # Logits that leave the range of fp16 are an overflow of fp16 as well.
    Fault(
        "logits_drift", "logit_drift", logits_drift, (0.5, 1), ("tabular", "images", "sequences"),
        ("fp16_overflow", "invalid_math", "exploding_gradients"), (1, 2),
    ),
    Fault(
        "scale_of_zero", "fp8_zero_scale", scale_of_zero, (1, 8), ("tabular", "regression", "diffusion", "images"),
        ("invalid_math", "bad_batch"), (1, 2),
    ),
)  # fmt: skip
HEALTHY = (
    Fault("rounded_to_fp8", "healthy", rounded_to_fp8, (1,), ("tabular", "regression", "images")),
    Fault("logits_watched", "healthy", logits_watched, (1, 3), ("tabular", "gpt", "images", "sequences")),
)
