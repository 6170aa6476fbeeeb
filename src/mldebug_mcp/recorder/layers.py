"""The model layer by layer: norms of gradients and weights, and how far a step moves them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mldebug_mcp.recorder.late import Vector

if TYPE_CHECKING:
    from torch import Tensor, nn

MOST = 128
"""Layers that are told apart. Chosen: readers keep 2000 metrics, and a layer has three."""
SAMPLE = 8192
"""Weights of a parameter that are compared before and after a step. Chosen: 1 % of error in the norm of a movement."""
TINY = 1e-12


class Layers:
    """The parameters of a model by layer.

    Args:
        model: The model.
    """

    def __init__(self, model: nn.Module) -> None:
        self.layers = layers_of(model)
        self._before: list[list[Tensor]] = []

    def gradients(self) -> Vector | None:
        """Return the norm of the gradient of each layer that has one."""
        found = {name: [p.grad for p in own if p.grad is not None] for name, own in self.layers.items()}
        found = {name: grads for name, grads in found.items() if grads}
        return _vector("grad_norm", list(found), [_norm(grads) for grads in found.values()])

    def weights(self) -> Vector | None:
        """Return the norm of the weights of each layer."""
        return _vector("weight_norm", list(self.layers), [_norm(own) for own in self.layers.values()])

    def before_step(self) -> None:
        """Keep some of the weights of each layer, to compare them after the step."""
        self._before = [[_sample(one).clone() for one in own] for own in self.layers.values()]

    def moved(self) -> Vector | None:
        """Return how far the step moved each layer, as a share of its weights."""
        before, self._before = self._before, []
        ratios = []
        for old, own in zip(before, self.layers.values(), strict=False):
            moved = _norm([_sample(one) - was for one, was in zip(own, old, strict=True)])
            ratios.append(moved / _norm(old).clamp(min=TINY))
        return _vector("update_ratio", list(self.layers), ratios) if ratios else None


def layers_of(model: nn.Module) -> dict[str, list[Tensor]]:
    """Return the trained parameters of a model by the module that holds them.

    Modules of a block that is repeated many times are taken together: `layers.3.attention.query` is `layers.3`.
    """
    owned = {
        name or "model": [one for one in module.parameters(recurse=False) if one.requires_grad]
        for name, module in model.named_modules()
    }
    owned = {name: parameters for name, parameters in owned.items() if parameters}
    if len(owned) <= MOST // 2:
        return owned
    together: dict[str, list[Tensor]] = {}
    for name, parameters in owned.items():
        together.setdefault(_block(name), []).extend(parameters)
    return dict(list(together.items())[:MOST])


def _block(name: str) -> str:
    """Return the path of a module up to its first number."""
    pieces = name.split(".")
    end = next((at + 1 for at, piece in enumerate(pieces) if piece.isdecimal()), len(pieces))
    return ".".join(pieces[:end])


def _sample(tensor: Tensor) -> Tensor:
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // SAMPLE)]


def _norm(tensors: Sequence[Tensor]) -> Tensor:
    torch = sys.modules["torch"]
    norms = [torch.linalg.vector_norm(one.detach(), dtype=torch.float32) for one in tensors]
    found: Tensor = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms))
    return found


def _vector(what: str, names: Sequence[str], values: Sequence[Tensor]) -> Vector | None:
    if not values:
        return None
    return Vector([f"{what}/{name}" for name in names], sys.modules["torch"].stack(list(values)))
