"""What is probed: a model, a batch, a loss, and the user's own way to step where there is one."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import nn


@dataclass
class Subject:
    """A model with what it is trained on.

    Args:
        model: The model.
        batch: Whatever `loss` takes; only nested tensors are examined.
        loss: Gives the scalar to minimise.
        optimizer: The user's own, if the probe has to use it.
        train_step: One whole step of the user's own, returning the loss.
        ours: The model was made by the probe, so it can be built again with another seed.
        causal: Position t may depend on positions up to t alone; None where it is not known.
        build_seconds: How long it took to build all this.
    """

    model: nn.Module
    batch: Any
    loss: Callable[[nn.Module, Any], torch.Tensor]
    optimizer: torch.optim.Optimizer | None = None
    train_step: Callable[..., Any] | None = None
    ours: bool = False
    causal: bool | None = None
    dtype: torch.dtype = torch.float32
    hidden: list[tuple[str, nn.Parameter]] = field(default_factory=list)
    build_seconds: float = 0.0

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next((tensor.device for tensor in self.model.parameters()), torch.device("cpu"))

    @cached_property
    def scaler(self) -> torch.amp.GradScaler | None:
        """What keeps gradients in the range of 16-bit floats: one for all loops, so that its scale is found once."""
        if self.dtype is not torch.float16 or self.device.type == "mps":
            return None
        return torch.amp.GradScaler(self.device.type)

    def compute_loss(self) -> torch.Tensor:
        """Return the loss of the batch, in the precision that was asked for."""
        if self.dtype is torch.float32:
            return self.loss(self.model, self.batch)
        with torch.autocast(self.device.type, dtype=self.dtype):
            return self.loss(self.model, self.batch)

    def step(self) -> float:
        """Do one step of the user's own and return its loss."""
        assert self.train_step is not None
        value = _call_step(self.train_step, self)
        return float(value.detach()) if isinstance(value, torch.Tensor) else float(value)

    def parameters(self) -> list[tuple[str, nn.Parameter]]:
        """Return the parameters with their names, the unregistered ones last."""
        return [*self.model.named_parameters(), *self.hidden]


def _call_step(train_step: Callable[..., Any], subject: Subject) -> Any:
    try:
        wanted = len([one for one in inspect.signature(train_step).parameters.values() if one.default is one.empty
                      and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)])  # fmt: skip
    except (TypeError, ValueError):
        wanted = 0
    return train_step(*(subject.model, subject.batch, subject.optimizer)[:wanted])


class State:
    """A copy of all parameters, buffers and optimizer state, to return to."""

    def __init__(self, subject: Subject) -> None:
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in _tensors(subject)]
        self._training = [(module, module.training) for module in subject.model.modules()]
        self._optimizer = subject.optimizer
        self._optimizer_state = copy.deepcopy(subject.optimizer.state_dict()) if subject.optimizer else None

    def restore(self) -> None:
        """Put every tensor back and forget all gradients."""
        with torch.no_grad():
            for tensor, kept in self._tensors:
                tensor.copy_(kept)
                tensor.grad = None
        for module, training in self._training:
            module.training = training
        if self._optimizer is not None and self._optimizer_state is not None:
            self._optimizer.load_state_dict(copy.deepcopy(self._optimizer_state))


def _tensors(subject: Subject) -> list[torch.Tensor]:
    tensors: dict[int, torch.Tensor] = {}
    for tensor in (*(one for _, one in subject.parameters()), *subject.model.buffers()):
        tensors[id(tensor)] = tensor
    if subject.optimizer is not None:
        for group in subject.optimizer.param_groups:
            tensors.update({id(one): one for one in group["params"]})
    return list(tensors.values())
