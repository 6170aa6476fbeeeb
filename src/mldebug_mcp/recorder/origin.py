"""Where values that are not finite began: the first module of a forward pass that makes some of finite inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mldebug_mcp.recorder.late import Value

if TYPE_CHECKING:
    from torch import nn

MOST = 8
"""Modules that are named."""


def origin_of(model: nn.Module, inputs: tuple[Value, Value] | None) -> dict[str, list[str]]:
    """Return what is not finite: columns under "inputs", modules under "weights", "outputs" and "gradients".

    The forward pass is made again with the batch of the step, without gradients, with the same random numbers, and
    statistics of normalisations are put back. Of outputs the first is where it began; of gradients the last layers.

    Args:
        model: The model.
        inputs: What it was called with, positional and by name; None where it may not be called again.
    """
    parameters = dict(model.named_parameters())
    found = {
        "inputs": _inputs(inputs) if inputs is not None else [],
        "weights": _named(name for name, one in parameters.items() if not _is_finite(one)),
        "outputs": _outputs(model, inputs) if inputs is not None else [],
        "gradients": _named(
            name for name, one in reversed(parameters.items()) if one.grad is not None and not _is_finite(one.grad)
        ),
    }
    return {what: names for what, names in found.items() if names}


def _named(names: Iterable[str]) -> list[str]:
    """Return the modules of parameters, each once."""
    return list(dict.fromkeys(name.rpartition(".")[0] or name for name in names))[:MOST]


def _outputs(model: nn.Module, inputs: tuple[Value, Value]) -> list[str]:
    torch = sys.modules["torch"]
    found: list[str] = []
    names = {module: name for name, module in model.named_modules()}

    def look(module: nn.Module, given: Value, output: Value) -> None:
        if len(found) < MOST and not _all_finite(output) and _all_finite(given) and names[module]:
            found.append(names[module])

    handles = [module.register_forward_hook(look) for module in names]
    buffers = {name: one.clone() for name, one in model.named_buffers()}
    devices = {one.device for one in model.parameters() if one.device.type == "cuda"}
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=list(devices)):
            model(*inputs[0], **inputs[1])
    finally:
        for handle in handles:
            handle.remove()
        with torch.no_grad():
            for name, one in model.named_buffers():
                one.copy_(buffers[name])
    return found


def _inputs(inputs: tuple[Value, Value]) -> list[str]:
    """Return the names of the columns that hold values which are not finite; of unnamed ones the number."""
    named = {**{str(at): one for at, one in enumerate(inputs[0])}, **inputs[1]}
    return [name for name, one in named.items() if not _all_finite(one)]


def _all_finite(value: Value) -> bool:
    return all(_is_finite(one) for one in _tensors(value))


def _tensors(value: Value) -> Iterator[Value]:
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _is_finite(tensor: Value) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())
