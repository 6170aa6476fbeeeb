"""Faults of runs by the Trainer of Transformers."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.faults.faults.fault import Fault
from benchmarks.faults.trainer import HfRun, Row

TASKS = ("hf_gpt2", "hf_bert")


def rate_times(run: HfRun, severity: float) -> None:
    """Multiply the learning rate; where it rises, nothing is clipped."""
    run.lr *= severity
    if severity > 1:
        run.options = {"max_grad_norm": 0.0}


def without_warmup(run: HfRun, severity: float) -> None:
    """Start at the peak of a high learning rate."""
    run.lr, run.warmup, run.onset = run.lr * severity, 0, 1


def frozen(run: HfRun, _: float) -> None:
    """Train nothing but the bias of one normalisation, which changes little."""

    def freeze(model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            parameter.requires_grad = name.endswith(("ln_f.bias", "embeddings.LayerNorm.bias"))

    run.prepare = freeze


def masked(run: HfRun, _: float) -> None:
    """Give every label the ignored index."""

    def mask(rows: list[Row], _: torch.Generator) -> None:
        for row in rows:
            row["labels"] = torch.full_like(row["labels"], -100)

    run.spoil = mask


def noisy_labels(run: HfRun, severity: float) -> None:
    """Draw a share of the training labels at random."""

    def spoil(rows: list[Row], generator: torch.Generator) -> None:
        most = int(max(int(row["labels"].max()) for row in rows)) + 1
        for row in rows:
            labels = row["labels"]
            wrong = torch.rand(labels.shape, generator=generator) < severity
            row["labels"] = torch.where(wrong, torch.randint(0, most, labels.shape, generator=generator), labels)

    run.spoil = spoil


def few_rows(run: HfRun, severity: float) -> None:
    """Train for long on few rows."""
    run.examples, run.steps = int(severity), 300
    run.options = {"lr_scheduler_type": "constant"}


def schedule(run: HfRun, severity: float) -> None:
    """Use one of the Trainer's other schedules."""
    run.options = {"lr_scheduler_type": ("cosine", "constant_with_warmup")[int(severity) - 1]}


def small_batch(run: HfRun, severity: float) -> None:
    """Train on few rows per step."""
    run.batch = int(severity)


FAULTS = (
    Fault("hf_rate_high", "lr_too_high", rate_times, (100, 300), TASKS, ("exploding_gradients", "insufficient_warmup")),
    Fault("hf_rate_low", "lr_too_low", rate_times, (0.001,), TASKS, ("params_not_training", "no_signal")),
    Fault("hf_no_warmup", "insufficient_warmup", without_warmup, (60,), TASKS, ("lr_too_high",)),
    Fault(
        "hf_frozen", "params_not_training", frozen, (1,), TASKS, ("lr_too_low", "vanishing_gradients", "no_signal")
    ),
    Fault("hf_masked", "all_labels_masked", masked, (1,), TASKS, ("invalid_math",)),
    Fault(
        "hf_noisy_labels", "label_noise", noisy_labels, (0.5, 0.8), TASKS,
        ("no_signal", "too_little_capacity", "train_eval_mismatch"),
    ),
    Fault("hf_few_rows", "overfitting", few_rows, (6, 12), TASKS, ("duplicated_data",)),
)  # fmt: skip
HEALTHY = (
    Fault("hf_schedule", "healthy", schedule, (1, 2), TASKS),
    Fault("hf_small_batch", "healthy", small_batch, (8,), TASKS),
)
