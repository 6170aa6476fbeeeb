"""Faults of the weights, the gradients, the schedule and the restart."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.loops.science.trainer import Trainer, Trouble


@dataclass
class ScaledWeights(Trouble):
    """The initial weights (matrices alone) are scaled by a factor."""

    factor: float

    def start(self, trainer: Trainer) -> None:
        """Scale them."""
        with torch.no_grad():
            for parameter in trainer.task.model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(self.factor)


@dataclass
class NegativeBiases(Trouble):
    """The hidden layers' biases start so low that their ReLUs never open."""

    value: float = -6.0

    def start(self, trainer: Trainer) -> None:
        """Set all biases but the last layer's."""
        layers = [layer for layer in trainer.task.model.modules() if isinstance(layer, nn.Linear)]
        for layer in layers[:-1]:
            nn.init.constant_(layer.bias, self.value)


@dataclass
class DeadMeter(Trouble):
    """No fault: the share of ReLUs that are closed for the whole batch is logged."""

    def start(self, trainer: Trainer) -> None:
        """Listen to all ReLU layers."""
        layers = [layer for layer in trainer.task.model.modules() if isinstance(layer, nn.ReLU)]
        shares = [0.0] * len(layers)

        def listen(index: int, out: torch.Tensor) -> None:
            shares[index] = float((out <= 0).flatten(0, -2).all(0).float().mean())
            trainer.extra["dead_frac"] = sum(shares) / len(shares)

        for index, layer in enumerate(layers):
            layer.register_forward_hook(lambda _layer, _given, out, index=index: listen(index, out))


@dataclass
class NotGiven(Trouble):
    """The optimizer gets only the parameters whose name holds `only`; with `frozen` the rest has no gradient."""

    only: str
    frozen: bool = False

    def start(self, trainer: Trainer) -> None:
        """Leave the rest out."""
        named = list(trainer.task.model.named_parameters())
        trainer.parameters = [parameter for name, parameter in named if self.only in name]
        for name, parameter in named:
            parameter.requires_grad_(self.only in name or not self.frozen)


@dataclass
class OtherModel(Trouble):
    """The optimizer was given the parameters of a model that was then replaced by another."""

    def start(self, trainer: Trainer) -> None:
        """Give it a copy's."""
        trainer.parameters = list(copy.deepcopy(trainer.task.model).parameters())


@dataclass
class KeptGradients(Trouble):
    """Nobody clears the gradients."""

    def start(self, trainer: Trainer) -> None:
        """Switch clearing off."""
        trainer.zero_grad = False


@dataclass
class SummedShards(Trouble):
    """The losses of the micro-batches are added, not averaged."""

    def start(self, trainer: Trainer) -> None:
        """Switch the division off."""
        trainer.normalise = False


@dataclass
class EvaluatesInTraining(Trouble):
    """Nobody calls `model.eval()`."""

    def start(self, trainer: Trainer) -> None:
        """Switch it off."""
        trainer.evaluates = False


@dataclass
class FrozenStatistics(Trouble):
    """BatchNorm's running statistics never move, so evaluation normalises with the initial ones."""

    def start(self, trainer: Trainer) -> None:
        """Set the momentum of all BatchNorm layers to nothing."""
        for layer in trainer.task.model.modules():
            if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                layer.momentum = 0.0


@dataclass
class WrongSchedule(Trouble):
    """The schedule is counted over a wrong number of steps, or ticks more than once a step."""

    share: float = 1.0
    ticks: float = 1.0

    def start(self, trainer: Trainer) -> None:
        """Change its length and pace."""
        trainer.schedule_steps = int(trainer.recipe.steps * self.share)
        trainer.ticks_per_step = self.ticks


@dataclass
class Restart(Trouble):
    """The run goes on from a checkpoint at a step, without what `loses` names: optimizer, schedule, data."""

    at: int
    loses: tuple[str, ...] = ()

    def stepped(self, trainer: Trainer) -> None:
        """Rebuild the optimizer, and the order of the data, as a new process would."""
        if trainer.step != self.at:
            return
        saved = copy.deepcopy(trainer.optimizer.state_dict())
        trainer.optimizer = trainer.recipe.make_optimizer(trainer.parameters)
        if "optimizer" not in self.loses:
            trainer.optimizer.load_state_dict(saved)
        if "schedule" in self.loses:
            trainer.ticks = 0
        if "data" in self.loses:
            trainer.reshuffle(trainer.recipe.seed)
            trainer.epoch = -1
        trainer.journal.note(
            trainer.step, trainer.epoch, f"Resuming from checkpoint ckpt_{self.at:06d}.pt (step {self.at})"
        )
