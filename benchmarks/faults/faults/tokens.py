"""Faults of tokens: which of them are trained on, and whether they are those that the model knows."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import torch
from torch import Tensor, nn

from benchmarks.faults.faults.fault import Fault, evaluation_below, starts_badly
from benchmarks.faults.loop import Setup, Training
from benchmarks.faults.tasks import Batch, Task, full

TEXTS = ("reverse", "sft")


def prompts_count(setup: Setup, severity: float) -> None:
    """Take the loss over prompts and padding too, in training; a severity of 1: in evaluation as well."""

    def whole(batch: Batch) -> Batch:
        return Batch(batch.inputs, batch.targets, full(batch.targets))

    setup.spoil = lambda _step, batch, _generator: whole(batch)
    if severity == 1:
        setup.spoil_evaluation = lambda batch, _generator: whole(batch)
    setup.config["completion_only_loss"] = False


@lru_cache(maxsize=8)
def trained_weights(task: Task, seed: int) -> dict[str, Tensor]:
    """Return the weights of a model that was trained on a task for a while, with other samples."""
    setup = replace(Setup.usual(task, seed + 100), eval_every=0)
    setup.steps //= 4
    training = Training(setup)
    list(training.records())
    return training.model.state_dict()


def load(model: nn.Module, setup: Setup) -> None:
    """Start from a model that knows the task."""
    model.load_state_dict(trained_weights(setup.task, setup.seed))


def other_tokens(setup: Setup, severity: float) -> None:
    """Fine-tune a model on the tokens of another vocabulary, whose last ones, the signs, have other numbers."""
    setup.prepare = partial(load, setup=setup)
    setup.lr /= 3
    numbers = torch.arange(setup.task.classes)
    moved = torch.arange(setup.task.classes)[-int(severity * setup.task.classes) :]
    numbers[moved] = moved.roll(setup.seed)

    def renumbered(batch: Batch) -> Batch:
        return Batch(numbers[batch.inputs], numbers[batch.targets], batch.mask)

    setup.spoil = lambda _step, batch, _generator: renumbered(batch)
    setup.spoil_evaluation = lambda batch, _generator: renumbered(batch)
    setup.onset = 1


def knows_it(setup: Setup, severity: float) -> None:
    """Fine-tune a model that knows the task nearly as well as it can be known."""
    setup.prepare, setup.lr = partial(load, setup=setup), setup.lr * severity


FAULTS = (
    Fault("prompts_count", "prompt_not_masked", prompts_count, (1, 2), TEXTS, seeds=(1, 2), shown=evaluation_below),
    # A model that does not know its tokens is one that starts badly.
    Fault(
        "other_tokens", "tokenizer_mismatch", other_tokens, (0.5, 1), (*TEXTS, "gpt"), ("bad_init",), (1, 2),
        starts_badly,
    ),
)  # fmt: skip
HEALTHY = (Fault("knows_it", "healthy", knows_it, (0.1, 0.3), (*TEXTS, "gpt")),)
