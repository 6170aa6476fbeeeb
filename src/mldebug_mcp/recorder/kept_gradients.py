"""Looks whether gradients are cleared between two updates: before some backward pass there has to be none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mldebug_mcp.recorder.guard import guarded
from mldebug_mcp.recorder.late import Value

if TYPE_CHECKING:
    from torch import Tensor, nn

KEPT = "gradients_kept"
"""Least norm of the gradients that were there before a backward pass, of all backward passes since the last update: 0
where a loop clears them."""


class KeptGradients:
    """Follows the gradients of a model from update to update.

    A loop that accumulates gradients keeps them from one backward pass to the next, and one with two optimizers has
    other gradients in between: but each clears them once between two updates.

    Args:
        model: The model.
        norm: Returns the norm of all of some gradients together.
    """

    def __init__(self, model: nn.Module, norm: Callable[[list[Value]], Value]) -> None:
        self._norm = norm
        self._parameters = [one for one in model.parameters() if one.requires_grad]
        self._norms: list[Value] = []
        self._cleared = self._unseen = False

    @guarded
    def watch(self, output: Tensor | None, *, deep: bool) -> None:
        """Look before the backward pass of an output.

        Args:
            output: What the loss is made of; None where that is not known.
            deep: Whether a norm may be worked out.
        """
        if self._cleared:
            return
        if output is None or not output.requires_grad:
            self._unseen = True
            return
        output.register_hook(lambda _: self._look(deep=deep))

    def _look(self, *, deep: bool) -> None:
        kept = [one.grad for one in self._parameters if one.grad is not None]
        if not kept:
            self._cleared = True
        elif deep:
            self._norms.append(self._norm(kept))
        else:
            self._unseen = True

    def updated(self) -> Value:
        """Return the least norm since the last update, and begin anew; None where not all of it was seen."""
        norms, cleared, unseen = self._norms, self._cleared, self._unseen
        self._norms, self._cleared, self._unseen = [], False, False
        if cleared:
            return 0.0
        if unseen or not norms:
            return None
        return _least(norms)


def _least(norms: list[Tensor]) -> Tensor:
    import torch

    return torch.stack(norms).min()
