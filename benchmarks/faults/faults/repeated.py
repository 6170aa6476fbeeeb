"""Faults of which rows there are: copies, rows of the evaluation, hardly any of most classes, the first ones again."""

from __future__ import annotations

from dataclasses import replace

import torch

from benchmarks.faults.faults.fault import Fault, evaluation_below
from benchmarks.faults.loop import Setup
from benchmarks.faults.tasks import Batch, Task


def duplicated(setup: Setup, severity: float) -> None:
    """Go once through a training set in which each sample stands many times."""
    setup.examples, setup.copies = setup.batch * setup.steps, int(severity)
    setup.examples -= setup.examples % setup.copies
    setup.schedule = "constant"


def leaked(setup: Setup, severity: float) -> None:
    """Go a few times through a training set that holds the evaluation's samples, some of them many times.

    One label in five is wrong by nature, so that only a model that has seen the answers gets below that.
    """
    setup.task = with_noise(setup.task, 0.2)
    setup.examples, setup.leaked = setup.batch * 40 + 128 * int(severity), int(severity)
    setup.schedule = "constant"


def with_noise(task: Task, share: float) -> Task:
    """Return the task with a share of its labels drawn at random, in evaluation too."""

    def sample(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
        batch = task.sample(generator, size, evaluation)
        other = torch.randint(0, task.classes, batch.targets.shape, generator=generator)
        slips = torch.rand(batch.targets.shape, generator=generator) < share
        return Batch(batch.inputs, torch.where(slips, other, batch.targets), batch.mask)

    return replace(task, sample=sample)


def wrong_by_nature(setup: Setup, severity: float) -> None:
    """Let a share of the labels be wrong by nature, in evaluation too: what the model reaches is all there is."""
    setup.task = with_noise(setup.task, severity)


def noisy_targets(setup: Setup, severity: float) -> None:
    """Add so much noise to the values that most of the loss is noise, in evaluation too."""
    task = setup.task

    def sample(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
        batch = task.sample(generator, size, evaluation)
        return Batch(batch.inputs, batch.targets + severity * torch.randn(size, 1, generator=generator), batch.mask)

    setup.task = replace(task, sample=sample)


def with_majority(task: Task, share: float) -> Task:
    """Return the task with its first class in this share of the samples, in evaluation too."""

    def sample(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
        many = task.sample(generator, 4 * task.classes * size, evaluation)
        major = torch.rand(size, generator=generator) < share
        first, others = ((many.targets == 0).nonzero().squeeze(1), (many.targets != 0).nonzero().squeeze(1))
        return many[torch.where(major, first[:size], others[:size])]

    return replace(task, sample=sample)


def imbalanced(setup: Setup, severity: float) -> None:
    """Let one class make up nearly all samples, of a task that is hard enough for it to win by default."""
    setup.task, setup.by_class = with_majority(setup.task, severity), True


def balanced_by_class(setup: Setup, severity: float) -> None:
    """Log the recall of each class of a task whose classes differ a little in size, and are all learnt."""
    setup.task, setup.by_class = with_majority(setup.task, severity), True


def curriculum(setup: Setup, severity: float) -> None:
    """Go once through a training set that begins with what is easy: ever more of the labels are wrong by nature."""
    setup.examples, setup.order, setup.harder = setup.batch * setup.steps, "as it is", severity


def replayed(setup: Setup, severity: float) -> None:
    """Begin with the first sample again at each of some resumes, in a training set that begins with what is easy."""
    curriculum(setup, 0.5)
    every = setup.steps // (int(severity) + 1)
    setup.resumes = tuple(every * (number + 1) for number in range(int(severity)))
    setup.resume_replays_data, setup.rolled_back = True, 5 * (setup.seed % 2)
    setup.onset = setup.resumes[0] + 1 - setup.rolled_back


def resumed_well(setup: Setup, severity: float) -> None:
    """Resume some times, each time with everything restored; the last steps before each are made and logged again."""
    replayed(setup, severity)
    setup.resume_replays_data, setup.harder, setup.order, setup.onset = False, 0.0, "shuffled", None
    setup.rolled_back = 5


FAULTS = (
    Fault(
        "duplicated", "duplicated_data", duplicated, (50, 200),
        ("tabular", "reverse", "regression", "images", "sft"), ("overfitting",), (1, 2),
    ),
    Fault(
        "leaked", "train_eval_leakage", leaked, (4, 12, 24), ("tabular", "reverse", "images", "sequences"),
        seeds=(1, 2), shown=evaluation_below,
    ),
    Fault(
        "imbalanced", "class_imbalance", imbalanced, (0.97, 0.99), ("tabular", "images"), ("metric_bug",), (1, 2)
    ),
    Fault(
        "replayed", "resume_data_replayed", replayed, (1, 3), ("tabular", "gpt", "images", "sft"), seeds=(1, 2)
    ),
)  # fmt: skip
HEALTHY = (
    Fault("balanced_by_class", "healthy", balanced_by_class, (0.5,), ("tabular", "images")),
    Fault("majority_learnt", "healthy", balanced_by_class, (0.9,), ("sequences",)),
    Fault("curriculum", "healthy", curriculum, (0.15,), ("tabular", "gpt", "images", "sft")),
    Fault("resumed_well", "healthy", resumed_well, (1, 3), ("tabular", "gpt", "images", "sft")),
    Fault("wrong_by_nature", "healthy", wrong_by_nature, (0.2,), ("tabular", "reverse", "images", "sequences")),
    Fault("noisy_targets", "healthy", noisy_targets, (1, 2), ("regression",)),
)
