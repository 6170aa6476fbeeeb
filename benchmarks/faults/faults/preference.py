"""Faults of DPO runs: of the pairs, of the reference, of the learning rate."""

from __future__ import annotations

import torch

from benchmarks.faults.faults.fault import Fault
from benchmarks.faults.preference import Dpo, Pairs, swapped

TASKS = ("dpo_style", "dpo_answer")


def some_swapped(run: Dpo, severity: float) -> None:
    """Exchange chosen and rejected in a share of the training pairs; those held out are right."""
    run.spoil = lambda pairs, generator: swapped(pairs, severity, generator)


def equal_sides(run: Dpo, severity: float) -> None:
    """Make chosen and rejected the same in a share of the pairs, in evaluation too."""
    draw = run.draw

    def equal(generator: torch.Generator, count: int) -> Pairs:
        pairs = draw(generator, count)
        same = (torch.rand(count, generator=generator) < severity).unsqueeze(1)
        return Pairs(pairs.chosen, torch.where(same, pairs.chosen, pairs.rejected), pairs.mask)

    run.draw = equal


def random_sides(run: Dpo, _: float) -> None:
    """Let a coin choose, in evaluation too."""
    draw = run.draw
    run.draw = lambda generator, count: swapped(draw(generator, count), 0.5, generator)


def reference_follows(run: Dpo, severity: float) -> None:
    """Use the policy itself for its reference: the margin is zero while the log-probabilities fall."""
    run.follows, run.lr = True, run.lr * severity


def collapse(run: Dpo, severity: float) -> None:
    """Learn from pairs without a pattern at a rate that drives both sides down."""
    run.lr *= severity
    random_sides(run, severity)
    run.clip = 0.0


def rate_times(run: Dpo, severity: float) -> None:
    """Multiply the learning rate; where it rises, nothing is clipped and nothing warmed up."""
    run.lr *= severity
    if severity > 1:
        run.clip, run.warmup = 0.0, 1


def frozen(run: Dpo, _: float) -> None:
    """Train no parameter."""
    run.frozen = True


def few_pairs(run: Dpo, severity: float) -> None:
    """Go over a few pairs again and again, at a high rate."""
    run.examples, run.lr, run.steps = int(severity), run.lr * 5, 300
    some_swapped(run, 0.2)


def as_usual(run: Dpo, severity: float) -> None:
    """Change nothing but the size of the batch."""
    run.batch = int(severity)


def both_fall(run: Dpo, severity: float) -> None:
    """Train at a brisk rate with a loose tie: both log-probabilities fall while the margin grows."""
    run.lr, run.beta = run.lr * severity, 0.05


def tight(run: Dpo, severity: float) -> None:
    """Tie the policy closely to its reference."""
    run.beta = severity


def noisy_pairs(run: Dpo, severity: float) -> None:
    """Learn from annotators who disagree now and then, as annotators do, in evaluation too."""
    draw = run.draw
    run.draw = lambda generator, count: swapped(draw(generator, count), severity, generator)


FAULTS = (
    Fault(
        "all_swapped", "preference_labels_swapped", some_swapped, (1.0,), TASKS,
        ("train_eval_mismatch", "overfitting"),
    ),
    Fault(
        "some_swapped", "preference_labels_swapped", some_swapped, (0.35, 0.5), TASKS,
        ("no_preference_signal", "label_noise"),
    ),
    Fault("equal_sides", "no_preference_signal", equal_sides, (0.95, 1.0), TASKS, ("params_not_training",)),
    Fault(
        "random_sides", "no_preference_signal", random_sides, (1,), TASKS,
        ("preference_labels_swapped", "label_noise"),
    ),
    Fault("reference_follows", "dpo_collapse", reference_follows, (1, 5), TASKS),
    Fault(
        "dpo_collapse", "dpo_collapse", collapse, (10, 30), TASKS,
        ("lr_too_high", "preference_labels_swapped", "no_preference_signal"),
    ),
    Fault("dpo_rate_high", "lr_too_high", rate_times, (100, 400), TASKS, ("dpo_collapse", "insufficient_warmup")),
    Fault(
        "dpo_rate_low", "lr_too_low", rate_times, (0.002,), TASKS, ("params_not_training", "no_preference_signal")
    ),
    Fault("dpo_frozen", "params_not_training", frozen, (1,), TASKS, ("no_preference_signal", "lr_too_low")),
    Fault("few_pairs", "overfitting", few_pairs, (24, 48), TASKS[1:], ("duplicated_data", "train_eval_mismatch")),
)  # fmt: skip
HEALTHY = (
    Fault("dpo_as_usual", "healthy", as_usual, (6, 16), TASKS),
    Fault("both_fall", "healthy", both_fall, (3,), TASKS),
    Fault("tight", "healthy", tight, (0.3,), TASKS),
    Fault("noisy_pairs", "healthy", noisy_pairs, (0.1, 0.2), TASKS),
)
