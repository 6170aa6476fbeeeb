"""What a recording tells of how a run is set, from the objects that it watches."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from mldebug_mcp.recorder.late import Value

if TYPE_CHECKING:
    from torch import nn


def settings_of(model: nn.Module, optimizer: Value) -> dict[str, object]:
    """Return the settings that a model and its optimizer tell, by the names of TrainingArguments."""
    own = list(model.parameters())
    found: dict[str, object] = {
        "model": type(model).__name__,
        "parameters": sum(one.numel() for one in own),
        "trained_parameters": sum(one.numel() for one in own if one.requires_grad),
        "dtype": str(own[0].dtype).removeprefix("torch.") if own else None,
    }
    groups = getattr(optimizer, "param_groups", None)
    if groups:
        first = groups[0]
        betas = first.get("betas") or (None, None)
        found |= {
            "optimizer": type(optimizer).__name__.lower(),
            "learning_rate": first.get("initial_lr", first.get("lr")),
            "weight_decay": first.get("weight_decay"),
            "momentum": first.get("momentum"),
            "adam_beta1": betas[0],
            "adam_beta2": betas[1],
            "adam_epsilon": first.get("eps"),
        }
    return {name: _plain(value) for name, value in found.items() if value is not None}


def features_of(model: nn.Module, outputs: int) -> int | None:
    """Return how many numbers the layer reads that makes the outputs, None where none has as many of them."""
    found: int | None = None
    for module in model.modules():
        weight: Value = getattr(module, "weight", None)
        made = getattr(module, "out_features", getattr(module, "out_channels", None))
        if made == outputs and hasattr(weight, "numel"):
            found = weight.numel() // outputs
    return found


def _plain(value: object) -> object:
    return float(value) if hasattr(value, "item") else value  # type: ignore[arg-type]


class Place(NamedTuple):
    """The rank of a process, and how many there are."""

    rank: int
    world: int

    @property
    def mark(self) -> str:
        """What stands in the names of its files; nothing where it is alone."""
        return f".rank{self.rank}" if self.world > 1 else ""


def place_in_world() -> Place:
    """Return the place of this process: of torch.distributed, else of the environment."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return Place(distributed.get_rank(), distributed.get_world_size())
    world = _number("WORLD_SIZE", 1)
    return Place(_number("RANK", 0), world) if world > 1 else Place(0, 1)


def _number(variable: str, other: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else other
