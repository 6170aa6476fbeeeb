"""Faults of the data: what is fed to the model, and what it is compared with."""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.faults.faults.fault import CLASSIFIED, SMALL, Fault
from benchmarks.faults.loop import Setup
from benchmarks.faults.tasks import Batch, full


def randomised(batch: Batch, generator: torch.Generator, classes: int) -> Batch:
    """Return the batch with targets that have nothing to do with its inputs."""
    if batch.targets.is_floating_point():
        return Batch(batch.inputs, 3 * torch.randn(batch.targets.shape, generator=generator), batch.mask)
    return Batch(batch.inputs, torch.randint(0, max(2, classes), batch.targets.shape, generator=generator), batch.mask)


def partly_randomised(batch: Batch, generator: torch.Generator, classes: int, share: float) -> Batch:
    """Return the batch with a share of its targets drawn at random."""
    wrong = torch.rand(batch.targets.shape, generator=generator) < share
    other = randomised(batch, generator, classes).targets
    return Batch(batch.inputs, torch.where(wrong, other, batch.targets), batch.mask)


def rubbish(setup: Setup, batch: Batch, generator: torch.Generator, scale: float) -> Batch:
    """Return a batch with random targets and, where inputs are numbers, far too large ones."""
    batch = randomised(batch, generator, setup.task.classes)
    inputs = batch.inputs * scale if batch.inputs.is_floating_point() else batch.inputs
    return Batch(inputs, batch.targets * (scale if batch.targets.is_floating_point() else 1), batch.mask)


def bad_batch(setup: Setup, severity: float) -> None:
    """Feed one batch of rubbish in the middle of the run."""
    at = int(setup.steps * (0.4 + 0.05 * (setup.seed % 8)))
    setup.onset = at + 1
    setup.spoil = lambda step, batch, generator: rubbish(setup, batch, generator, severity) if step == at else batch


def bad_data_pocket(setup: Setup, severity: float) -> None:
    """Feed some batches of rubbish that come round again four times."""
    period, width = setup.steps // 4, int(severity)
    setup.onset = period // 2 + 1

    def spoil(step: int, batch: Batch, generator: torch.Generator) -> Batch:
        inside = period // 2 <= step % period < period // 2 + width
        return rubbish(setup, batch, generator, 2.0) if inside else batch

    setup.spoil = spoil


def label_noise(setup: Setup, severity: float) -> None:
    """Draw a share of the training labels at random."""
    setup.spoil = lambda _, batch, generator: partly_randomised(batch, generator, setup.task.classes, severity)


def shuffled_labels(setup: Setup, _: float) -> None:
    """Draw all labels at random, in evaluation too."""
    setup.spoil = lambda _, batch, generator: randomised(batch, generator, setup.task.classes)
    setup.spoil_evaluation = lambda batch, generator: randomised(batch, generator, setup.task.classes)


def blank(batch: Batch) -> Batch:
    """Return the batch with zeros for inputs."""
    return Batch(torch.zeros_like(batch.inputs), batch.targets, batch.mask)


def zeroed_inputs(setup: Setup, _: float) -> None:
    """Feed zeros, in evaluation too."""
    setup.spoil = lambda _step, batch, _generator: blank(batch)
    setup.spoil_evaluation = lambda batch, _: blank(batch)


def unshuffled(setup: Setup, severity: float) -> None:
    """Feed the training set sorted by label, epoch after epoch."""
    setup.examples, setup.order = int(setup.batch * severity), "by label"


def few_examples(setup: Setup, severity: float) -> None:
    """Train for long on a training set of a few batches."""
    setup.examples = int(setup.batch * severity)
    setup.schedule = "constant"
    setup.steps = int(setup.steps * 1.5)


def evaluation_shifted(setup: Setup, severity: float) -> None:
    """Evaluate on inputs of another scale and offset, or with token numbers moved by one."""

    def spoil(batch: Batch, _: torch.Generator) -> Batch:
        if batch.inputs.is_floating_point():
            return Batch(batch.inputs * severity + severity, batch.targets, batch.mask)
        return Batch((batch.inputs + 1) % max(2, int(batch.inputs.max()) + 1), batch.targets, batch.mask)

    setup.spoil_evaluation = spoil


def batchnorm_never_settles(setup: Setup, severity: float) -> None:
    """Keep the running statistics, which evaluation uses, at their first values."""

    def prepare(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = severity

    setup.prepare = prepare


def unshifted(setup: Setup, _: float) -> None:
    """Let the model predict the token that it sees."""
    setup.spoil = lambda _step, batch, _generator: Batch(batch.inputs, batch.inputs, full(batch.inputs))
    setup.spoil_evaluation = lambda batch, _generator: Batch(batch.inputs, batch.inputs, full(batch.inputs))


FAULTS = (
    Fault("bad_batch", "bad_batch", bad_batch, (3, 10, 30), also=("bad_data_pocket",)),
    Fault("bad_data_pocket", "bad_data_pocket", bad_data_pocket, (2, 5), also=("bad_batch",)),
    Fault(
        "label_noise", "label_noise", label_noise, (0.5, 0.8), CLASSIFIED,
        ("no_signal", "too_little_capacity", "train_eval_mismatch"),
    ),
    Fault(
        "shuffled_labels", "no_signal", shuffled_labels, (1,),
        also=("label_noise", "lr_too_low", "double_softmax", "params_not_training", "too_little_capacity"),
    ),
    Fault(
        "zeroed_inputs", "no_signal", zeroed_inputs, (1,), SMALL,
        ("label_noise", "params_not_training", "too_little_capacity", "lr_too_low"),
    ),
    Fault(
        "unshuffled", "unshuffled_data", unshuffled, (8, 16), ("tabular", "images", "sequences"), ("bad_data_pocket",)
    ),
    Fault(
        "overfitting", "overfitting", few_examples, (1, 2, 4, 12, 24), ("tabular", "images", "gpt", "regression"),
        ("duplicated_data",),
    ),
    Fault(
        "evaluation_shifted", "train_eval_mismatch", evaluation_shifted, (3, 8),
        ("tabular", "images", "pixels", "sequences", "gpt"), ("eval_mode_bug",),
    ),
    Fault(
        "batchnorm_never_settles", "eval_mode_bug", batchnorm_never_settles, (0.0, 0.001), ("images", "pixels"),
        ("train_eval_mismatch",),
    ),
    Fault(
        "unshifted", "label_shift_error", unshifted, (1,), ("gpt", "sft"), ("train_eval_leakage", "duplicated_data")
    ),
)  # fmt: skip
