"""Faults of the loss and of what is computed on the way to it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.loops.vision.faults.data import Fault
from benchmarks.loops.vision.task import Batch
from benchmarks.loops.vision.tasks.images import pair_logits
from benchmarks.loops.vision.trainer import Trainer


def outputs_changed(change: Callable[[Any], Any]) -> Fault:
    """The outputs pass through `change` before the loss."""

    def plant(trainer: Trainer) -> None:
        criterion = trainer.criterion
        trainer.criterion = lambda output, batch: criterion(change(output), batch)

    return plant


def softmax_twice(trainer: Trainer) -> None:
    """Probabilities go to a cross-entropy that takes logits."""
    outputs_changed(lambda logits: logits.softmax(-1))(trainer)


def loss_changed(change: Callable[[torch.Tensor], torch.Tensor]) -> Fault:
    """The loss passes through `change`."""

    def plant(trainer: Trainer) -> None:
        criterion = trainer.criterion
        trainer.criterion = lambda output, batch: change(criterion(output, batch))

    return plant


def broadcast_mse(trainer: Trainer) -> None:
    """Outputs (n, 1) meet targets (n): the difference is an n by n matrix."""
    trainer.criterion = lambda output, batch: (output[:, None] - batch[-1][None, :]).square().mean()


def other_criterion(criterion: Callable[[Any, Batch], torch.Tensor]) -> Fault:
    """Another loss altogether."""

    def plant(trainer: Trainer) -> None:
        trainer.criterion = criterion

    return plant


def log_of_probability(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Own binary cross-entropy on probabilities without a floor: 0 * log(0) as soon as one saturates."""
    p, y = (logits[:, 1] - logits[:, 0]).sigmoid(), batch[-1]
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


def unguarded_dice(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Dice on thresholded overlaps without smoothing: 0/0 where neither side has a pixel."""
    p, mask = logits.sigmoid() * (logits > -2), batch[-1]
    ratio = 2 * (p * mask).sum((1, 2, 3)) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)))
    return nn.functional.binary_cross_entropy_with_logits(logits, mask) + 1 - ratio.mean()


def empty_masks(every: int) -> Fault:
    """No fault by itself: each `every`-th picture shows nothing and has an empty mask."""

    def plant(trainer: Trainer) -> None:
        image, mask = trainer.train[0].clone(), trainer.train[-1].clone()
        image[::every], mask[::every] = 0.3 * torch.randn_like(image[::every]) - 0.25, 0.0
        trainer.train = [image, mask]

    return plant


def distance_loss(output: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Root of squared errors beyond a margin: at an exact zero the root's slope is infinite."""
    distance = (output - batch[-1]).abs()
    error = distance * (distance > 0.05)
    return error.square().sqrt().mean()


def relative_error(output: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Root of the relative error, negative under the root when the output undershoots."""
    return (1 + output - batch[-1]).sqrt().mean() + (output - batch[-1]).square().mean()


def overflowing_exp(scale: float) -> Fault:
    """The VAE's log variance is scaled before exp, so exp overflows."""
    return outputs_changed(lambda parts: (parts[0], parts[1], parts[2] * scale))


def own_pair_included(z: torch.Tensor, _batch: Batch) -> torch.Tensor:
    """NT-Xent that takes each view itself as its partner: nothing has to be learnt."""
    logits = z @ z.T / 0.2
    return nn.functional.cross_entropy(logits, torch.arange(len(z)))


def wrong_partner(z: torch.Tensor, _batch: Batch) -> torch.Tensor:
    """NT-Xent whose partner is the neighbouring picture, as if views lay interleaved."""
    logits, _ = pair_logits(z, 0.2)
    return nn.functional.cross_entropy(logits, torch.arange(len(z)) ^ 1)


def metric_changed(change: Callable[[dict[str, float]], dict[str, float]]) -> Fault:
    """The metrics pass through `change` before they are logged."""

    def plant(trainer: Trainer) -> None:
        score = trainer.score
        trainer.score = lambda output, batch: change(score(output, batch))

    return plant


def wrong_axis_accuracy(trainer: Trainer) -> None:
    """Accuracy by the largest logit along the batch in place of along the classes."""

    def score(output: torch.Tensor, batch: Batch) -> dict[str, float]:
        found = output.argmax(0)
        return {"acc": (found == batch[-1][: len(found)]).float().mean().item()}

    trainer.score = score


def wrong_threshold(limit: float) -> Fault:
    """Positive where the logit of class 1 alone passes `limit`."""

    def plant(trainer: Trainer) -> None:
        def score(output: torch.Tensor, batch: Batch) -> dict[str, float]:
            found, y = (output[:, 1] > limit).long(), batch[-1]
            hits = ((found == 1) & (y == 1)).sum().item()
            ones = max(1, int((y == 1).sum().item()))
            return {
                "acc": (found == y).float().mean().item(),
                "recall": hits / ones,
                "f1": 2 * hits / (ones + found.sum().item()),
            }

        trainer.score = score

    return plant


def one_off_accuracy(trainer: Trainer) -> None:
    """Accuracy against classes counted from 1 while the model counts from 0."""

    def score(output: torch.Tensor, batch: Batch) -> dict[str, float]:
        return {"acc": (output.argmax(-1) == batch[-1] + 1).float().mean().item()}

    trainer.score = score
