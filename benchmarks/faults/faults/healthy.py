"""Healthy runs, most of which look odd in some way."""

from __future__ import annotations

import torch

from benchmarks.faults.faults.data import partly_randomised
from benchmarks.faults.faults.fault import ALL, Fault
from benchmarks.faults.faults.machine import clock
from benchmarks.faults.loop import Setup
from benchmarks.faults.tasks import Batch


def as_usual(setup: Setup, _: float) -> None:
    """Leave everything as it is."""


def one_cycle(setup: Setup, severity: float) -> None:
    """Warm up for a third of the run or more, to twice the usual rate."""
    setup.warmup, setup.lr, setup.schedule = severity, setup.lr * 2, "linear"


def warmup_stable_decay(setup: Setup, _: float) -> None:
    """Keep the rate constant and let it fall in the last fifth."""
    setup.schedule = "wsd"


def constant_rate(setup: Setup, severity: float) -> None:
    """Use one learning rate from the first step to the last."""
    setup.schedule, setup.warmup, setup.lr = "constant", 0.0, setup.lr * severity


def small_batch(setup: Setup, severity: float) -> None:
    """Train on few samples per step."""
    setup.batch = int(severity)


def long_after_it_is_done(setup: Setup, severity: float) -> None:
    """Train on long after all is learnt."""
    setup.steps = int(setup.steps * severity)


def dropout(setup: Setup, severity: float) -> None:
    """Use dropout, so that the evaluation is better than training."""
    setup.shape.dropout = severity


def hard_examples(setup: Setup, severity: float) -> None:
    """Let one batch in twenty be harder than the others."""

    def spoil(_: int, batch: Batch, generator: torch.Generator) -> Batch:
        hard = torch.rand(1, generator=generator).item() < 0.05
        return partly_randomised(batch, generator, setup.task.classes, severity if hard else 0.0)

    setup.spoil = spoil


def short(setup: Setup, severity: float) -> None:
    """Train for few steps."""
    setup.steps = int(severity)
    setup.eval_every = max(5, setup.steps // 4)


def epochs(setup: Setup, severity: float) -> None:
    """Go through a large training set a few times."""
    setup.examples = int(setup.batch * severity)


def with_clock(setup: Setup, _: float) -> None:
    """Log an even clock and level memory."""
    clock(setup, lambda _step, record, _generator: record)


FAULTS = (
    Fault("as_usual", "healthy", as_usual, (1,), (*ALL, "reverse")),
    Fault("one_cycle", "healthy", one_cycle, (0.3, 0.45), (*ALL, "reverse")),
    Fault("warmup_stable_decay", "healthy", warmup_stable_decay, (1,)),
    Fault("constant_rate", "healthy", constant_rate, (0.5, 1)),
    Fault("small_batch", "healthy", small_batch, (8, 12), (*ALL, "reverse")),
    Fault(
        "long_after_it_is_done", "healthy", long_after_it_is_done, (2,),
        ("tabular", "sequences", "diffusion", "pixels"),
    ),
    Fault("dropout", "healthy", dropout, (0.1, 0.2, 0.5)),
    Fault("hard_examples", "healthy", hard_examples, (0.3,)),
    Fault("short", "healthy", short, (60, 120)),
    # Not the two towers: the target of a pair is its place in the batch.
    Fault("epochs", "healthy", epochs, (60, 100), tuple(task for task in ALL if task != "two_tower")),
    Fault("with_clock", "healthy", with_clock, (1,)),
)  # fmt: skip
