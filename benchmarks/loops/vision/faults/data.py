"""Faults of the data and of how it is fed."""

import time
from collections.abc import Callable

import torch

from benchmarks.loops.vision.task import Batch
from benchmarks.loops.vision.trainer import Trainer

Fault = Callable[[Trainer], None]


def replace(data: Batch, place: int, tensor: torch.Tensor) -> Batch:
    """The batch with the tensor at `place` exchanged."""
    changed = list(data)
    changed[place] = tensor
    return changed


def bad_batch(at: int, scale: float) -> Fault:
    """The inputs of fetch number `at` come in other units, once."""

    def plant(trainer: Trainer) -> None:
        fetch, count = trainer.fetch, iter(range(10**9))

        def broken(rows: torch.Tensor) -> Batch:
            batch = fetch(rows)
            return replace(batch, 0, batch[0] * scale) if next(count) == at else batch

        trainer.fetch = broken

    return plant


def bad_targets(at: int, scale: float) -> Fault:
    """The targets of fetch number `at` come in other units, once."""

    def plant(trainer: Trainer) -> None:
        fetch, count = trainer.fetch, iter(range(10**9))

        def broken(rows: torch.Tensor) -> Batch:
            batch = fetch(rows)
            return replace(batch, -1, (batch[-1] * scale).to(batch[-1].dtype)) if next(count) == at else batch

        trainer.fetch = broken

    return plant


def bad_pocket(start: int, rows: int, scale: float) -> Fault:
    """A stretch of rows holds inputs in other units; the order is the same each epoch."""

    def plant(trainer: Trainer) -> None:
        x = trainer.train[0].clone()
        x[start : start + rows] *= scale
        trainer.train = replace(trainer.train, 0, x)

    return plant


def wrong_pocket(start: int, rows: int) -> Fault:
    """A stretch of rows holds targets that belong to other rows; the order is the same each epoch."""

    def plant(trainer: Trainer) -> None:
        y = trainer.train[-1].clone()
        y[start : start + rows] = y[start : start + rows].roll(1, 0)
        trainer.train = replace(trainer.train, -1, y)

    return plant


def exchanged(y: torch.Tensor, share: float) -> torch.Tensor:
    """The share of the targets is dealt out anew among the rows."""
    rng = torch.Generator().manual_seed(5)
    chosen = torch.randperm(len(y), generator=rng)[: int(share * len(y))]
    y = y.clone()
    y[chosen] = y[chosen[torch.randperm(len(chosen), generator=rng)]]
    return y


def noisy_labels(share: float, *, everywhere: bool = False) -> Fault:
    """A share of the training targets (and of those evaluated, if `everywhere`) belongs to other rows."""

    def plant(trainer: Trainer) -> None:
        trainer.train = replace(trainer.train, -1, exchanged(trainer.train[-1], share))
        if everywhere:
            val = trainer.evals["val"]
            trainer.evals["val"] = replace(val, -1, exchanged(val[-1], share))

    return plant


def constant_inputs(trainer: Trainer) -> None:
    """All inputs are zero, in training and evaluation."""
    trainer.train = replace(trainer.train, 0, torch.zeros_like(trainer.train[0]))
    trainer.evals = {name: replace(data, 0, torch.zeros_like(data[0])) for name, data in trainer.evals.items()}


def sorted_by_target(trainer: Trainer) -> None:
    """The rows lie in the order of their target (a class or a number)."""
    y = trainer.train[-1]
    key = y if y.dim() == 1 else y.flatten(1)[:, 0]
    order = key.argsort(stable=True)
    trainer.train = [part[order] for part in trainer.train]


def repeated(count: int) -> Fault:
    """The first `count` rows stand again and again in place of the others."""

    def plant(trainer: Trainer) -> None:
        total = len(trainer.train[0])
        trainer.train = [part[torch.arange(total) % count] for part in trainer.train]

    return plant


def evaluation_in_training(trainer: Trainer) -> None:
    """Half of what was held out is trained on and evaluated as `val`; the other half is `test`."""
    val = trainer.evals["val"]
    half = len(val[0]) // 2
    seen, unseen = [p[:half] for p in val], [p[half:] for p in val]
    rest = len(trainer.train[0]) - half
    trainer.train = [torch.cat([new, old[:rest]]) for new, old in zip(seen, trainer.train, strict=True)]
    trainer.evals = {"val": seen, "test": unseen}


def held_out(trainer: Trainer) -> None:
    """No fault: what was held out is split in `val` and `test`."""
    val = trainer.evals["val"]
    half = len(val[0]) // 2
    trainer.evals = {"val": [p[:half] for p in val], "test": [p[half:] for p in val]}


def target_among_inputs(trainer: Trainer) -> None:
    """The last feature is the target itself, with a little noise, in training and `val`, but not in `test`."""

    def told(data: Batch) -> Batch:
        x = data[0].clone()
        x[:, -1] = 3.0 * data[-1] - 1 + 0.1 * torch.randn(len(x), generator=torch.Generator().manual_seed(3))
        return replace(data, 0, x)

    held_out(trainer)
    trainer.train, trainer.evals["val"] = told(trainer.train), told(trainer.evals["val"])


def other_evaluation(change: Callable[[torch.Tensor], torch.Tensor]) -> Fault:
    """The inputs of evaluation pass through another preprocessing than those of training."""

    def plant(trainer: Trainer) -> None:
        val = trainer.evals["val"]
        trainer.evals["val"] = replace(val, 0, change(val[0]))

    return plant


def other_training(change: Callable[[torch.Tensor], torch.Tensor]) -> Fault:
    """The inputs of training pass through another preprocessing than those of evaluation."""

    def plant(trainer: Trainer) -> None:
        trainer.train = replace(trainer.train, 0, change(trainer.train[0]))

    return plant


def ignore_all_labels(trainer: Trainer) -> None:
    """Each training target is the ignore index."""
    trainer.train = replace(trainer.train, -1, torch.full_like(trainer.train[-1], -100))


def padding_labelled(trainer: Trainer) -> None:
    """Places of padding carry tag 0 in place of the ignore index, in training and evaluation."""

    def fix(data: Batch) -> Batch:
        return replace(data, -1, data[-1].masked_fill(data[-1] == -100, 0))

    trainer.train = fix(trainer.train)
    trainer.evals = {name: fix(data) for name, data in trainer.evals.items()}


def labels_moved(by: int) -> Fault:
    """The targets of a language model stand `by` places off: 1 is shifted twice, -1 not at all."""

    def plant(trainer: Trainer) -> None:
        def move(data: Batch) -> Batch:
            return replace(data, -1, data[0] if by < 0 else data[-1].roll(-by, 1))

        trainer.train = move(trainer.train)
        trainer.evals = {name: move(data) for name, data in trainer.evals.items()}

    return plant


def slow_fetch(seconds: float, *, after: int = 0, every: int = 1) -> Fault:
    """Reading a batch waits for a slow disk, from fetch `after` on, each `every`-th time."""

    def plant(trainer: Trainer) -> None:
        fetch, count = trainer.fetch, iter(range(10**9))

        def wait(rows: torch.Tensor) -> Batch:
            number = next(count)
            if number >= after and number % every == 0:
                time.sleep(seconds)
            return fetch(rows)

        trainer.fetch = wait

    return plant


def easy_first(epochs: int) -> Fault:
    """No fault: a curriculum takes the quieter half of the rows alone in the first epochs."""

    def plant(trainer: Trainer) -> None:
        draw = trainer.draw
        size = trainer.train[0].flatten(1).square().mean(1)
        easy = size.argsort()[: len(size) // 2]

        def curriculum(epoch: int) -> torch.Tensor:
            rows = draw(epoch)
            return rows[torch.isin(rows, easy)] if epoch < epochs else rows

        trainer.draw = curriculum

    return plant
