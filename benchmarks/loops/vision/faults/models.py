"""Faults of initialisation and of modes, and of the machine; and harmless turns that look like faults."""

import math
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.loops.vision.faults.data import Fault
from benchmarks.loops.vision.trainer import Trainer


def scaled_weights(times: float, *, last: bool = False) -> Fault:
    """All weight matrices (or the last alone) start `times` too large."""

    def plant(trainer: Trainer) -> None:
        matrices = [p for p in trainer.model.parameters() if p.dim() > 1]
        with torch.no_grad():
            for weight in matrices[-1:] if last else matrices:
                weight.mul_(times)

    return plant


def hidden_bias(value: float) -> Fault:
    """The biases of all layers but the last start at `value`."""

    def plant(trainer: Trainer) -> None:
        layers = [m for m in trainer.model.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
        for layer in layers[:-1]:
            if layer.bias is not None:
                nn.init.constant_(layer.bias, value)

    return plant


def zero_share(trainer: Trainer) -> None:
    """No fault: logs the share of ReLU outputs that are zero in the last forward pass."""
    shares: dict[nn.Module, float] = {}

    def measure(module: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        shares[module] = (output == 0).float().mean().item()

    for module in trainer.model.modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_hook(measure)
    trainer.extras["dead_frac"] = lambda: sum(shares.values()) / max(1, len(shares))


def layer_norms(trainer: Trainer) -> None:
    """No fault: logs the weight gradient's norm of the first and of the last layer."""
    weights = [p for p in trainer.model.parameters() if p.dim() > 1]

    def norm(weight: nn.Parameter) -> Callable[[], float]:
        grads: list[float] = [math.nan]

        def keep(grad: torch.Tensor) -> None:
            grads[0] = grad.norm().item()

        weight.register_hook(keep)  # type: ignore[no-untyped-call]
        return lambda: grads[0]

    trainer.extras["grad_first"], trainer.extras["grad_last"] = norm(weights[0]), norm(weights[-1])


def logit_size(trainer: Trainer) -> None:
    """No fault: logs the largest absolute logit and the mean of the softmax's log normaliser."""
    criterion, seen = trainer.criterion, {"logit_max": 0.0, "logz": 0.0}

    def watch(output: torch.Tensor, batch: list[torch.Tensor]) -> torch.Tensor:
        seen["logit_max"], seen["logz"] = output.abs().max().item(), output.logsumexp(-1).mean().item()
        return criterion(output, batch)

    trainer.criterion = watch
    trainer.extras |= {"logit_max": lambda: seen["logit_max"], "logz": lambda: seen["logz"]}


def drifting_head(pull: float) -> Fault:
    """A term meant to sharpen the logits rewards their mean, which the softmax does not see."""

    def plant(trainer: Trainer) -> None:
        criterion = trainer.criterion
        trainer.criterion = lambda output, batch: criterion(output, batch) - pull * output.mean()

    return plant


def train_mode_at_evaluation(batch: int) -> Fault:
    """Evaluation runs in training mode, in batches of `batch`."""

    def plant(trainer: Trainer) -> None:
        trainer.eval_mode, trainer.eval_batch = trainer.model.train, batch

    return plant


def augmented_evaluation(change: Callable[[torch.Tensor], torch.Tensor]) -> Fault:
    """The random augmentation of training runs at evaluation too, stronger than the model can undo."""

    def plant(trainer: Trainer) -> None:
        forward = trainer.forward

        def augmented(model: nn.Module, batch: list[torch.Tensor]) -> object:
            return forward(model, [change(batch[0]), *batch[1:]] if not model.training else batch)

        trainer.forward = augmented

    return plant


def slow_statistics(momentum: float) -> Fault:
    """BatchNorm's running statistics follow with such a momentum that evaluation uses those of the start."""

    def plant(trainer: Trainer) -> None:
        for module in trainer.model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = momentum

    return plant


def pretrained(epochs: int, *, change: Fault | None = None) -> Fault:
    """No fault: the weights come from a training of their own, on data that `change` may alter."""

    def plant(trainer: Trainer) -> None:
        data = trainer.train
        if change is not None:
            change(trainer)
        optimizer = torch.optim.Adam(trainer.model.parameters(), 3e-3)
        for epoch in range(epochs):
            for rows in torch.split(trainer.order(epoch), 32):
                batch = [part[rows] for part in trainer.train]
                optimizer.zero_grad()
                trainer.criterion(trainer.forward(trainer.model, batch), batch).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        trainer.train = data

    return plant


def renumbered(letters: int) -> Fault:
    """The text's ids come from another vocabulary order than the model was trained with."""

    def plant(trainer: Trainer) -> None:
        order = torch.randperm(letters, generator=torch.Generator().manual_seed(2))
        trainer.train = [order[part] for part in trainer.train]
        trainer.evals = {name: [order[part] for part in data] for name, data in trainer.evals.items()}

    return plant
