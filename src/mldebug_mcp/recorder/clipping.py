"""Hears of every gradient clipping that torch makes, with the norm that it worked out anyway."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

_INNER = "_clip_grads_with_norm_"
"""What `clip_grad_norm_` scales gradients with, however a script has imported that. Source: torch 2.6 and later."""


class Listener(Protocol):
    """Is told before gradients are scaled."""

    def clips(self, parameters: list[Any], max_norm: float, norm: Any) -> None:  # noqa: ANN401 - a tensor
        """Take the parameters whose gradients are about to be scaled, to which norm, and the norm that they have."""


_LISTENERS: list[Listener] = []


def listen(listener: Listener) -> None:
    """Tell a listener of clippings until it leaves; a torch that is too old for that tells of none."""
    module = import_module("torch.nn.utils.clip_grad")
    inner = getattr(module, _INNER, None)
    if inner is None:
        return
    if not getattr(inner, "tells_recorder", False):
        setattr(module, _INNER, _telling(inner))
    _LISTENERS.append(listener)


def leave(listener: Listener) -> None:
    """Tell a listener no more."""
    if listener in _LISTENERS:
        _LISTENERS.remove(listener)


def _telling(inner: Callable[..., None]) -> Callable[..., None]:
    def clip(parameters: Any, max_norm: float, total_norm: Any, *more: Any, **named: Any) -> None:  # noqa: ANN401
        own = [parameters] if hasattr(parameters, "grad") else list(parameters)
        for listener in _LISTENERS:
            listener.clips(own, max_norm, total_norm)
        inner(own, max_norm, total_norm, *more, **named)

    clip.tells_recorder = True  # type: ignore[attr-defined]
    return clip
