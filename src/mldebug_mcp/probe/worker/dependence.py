"""What the output depends on: inputs are changed one at a time and the model is run again.

The source of the idea: karpathy_recipe, "use backprop to chart dependencies". Here inputs are perturbed instead, since
token ids have no gradient; like there, an output that changes where it must not shows the fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .outputs import Capture, spans, token_ids
from .subject import Subject
from .tree import Path, inputs, labels_path, mapped

CHANGED = 1e-4
"""Relative change of an output that counts: above what another order of summation does in 32 bits."""


def dependence(subject: Subject) -> dict[str, Any]:
    """Return which dependences are there that should not be, and which are missing that should be there.

    Everything is done in evaluation mode, where rows must not see each other. A key is absent where it cannot be told.
    """
    modes = [(module, module.training) for module in subject.model.modules()]
    subject.model.eval()
    statistics: set[str] = set()
    handles = [
        module.register_forward_pre_hook(_statistics_watch(name, statistics))
        for name, module in subject.model.named_modules()
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    ]
    try:
        with torch.no_grad():
            with DropoutWatch() as dropout:
                _output(subject, subject.batch)
            return {**_measure(subject), "batch_statistics": sorted(statistics), "dropout": sorted(dropout.active)}
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes:
            module.training = training


def _measure(subject: Subject) -> dict[str, Any]:
    first, again = _output(subject, subject.batch), _output(subject, subject.batch, seed=1)
    if first is None or again is None or not bool(torch.isfinite(first).all()):
        return {}
    result: dict[str, Any] = {"evaluation_repeats": not _differs(first, again)}
    if _differs(first, _output(subject, subject.batch)):
        return result  # if the output is random whatever the seed, no other comparison means anything
    rows = _rows(subject)
    changed = _output(subject, _perturbed(subject.batch, slice(None)))
    if changed is not None:
        result["input_used"] = _differs(first, changed)
        result["inputs_change"] = _change(first, changed)
    if rows is not None and rows > 1 and len(first) == rows and first.ndim >= 2 and not _square(first, rows):
        changed = _output(subject, _perturbed(subject.batch, slice(rows - 1, rows)))
        if changed is not None:
            result["rows_mixed"] = _differs(first[:-1], changed[:-1])
            result["row_change"] = _change(first[:-1], changed[:-1])
    ids = token_ids(subject)
    if ids is not None and ids.shape[1] > 2 and first.ndim == 3 and spans(first, ids):
        middle = ids.shape[1] // 2
        changed = _output(subject, _perturbed(subject.batch, slice(None), middle))
        if changed is not None:
            result["sees_future"] = _differs(first[:, :middle], changed[:, :middle])
            result["future_change"] = _change(first[:, :middle], changed[:, :middle])
    return result


def _statistics_watch(name: str, found: set[str]) -> Any:
    def look(module: torch.nn.Module, arguments: Any) -> None:
        del arguments
        if module.training or module.running_mean is None:
            found.add(name)

    return look


def _square(output: torch.Tensor, rows: int) -> bool:
    """Rows against rows, as in a contrastive loss, mix by design."""
    return output.ndim == 2 and output.shape == (rows, rows)


class DropoutWatch(TorchFunctionMode):
    """Names the dropout that is active while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.active: set[str] = set()

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note calls of dropout; pass on all calls."""
        del types
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "dropout" and kwargs.get("training", args[2] if len(args) > 2 else True):
            share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
            if share > 0:
                self.active.add(f"p = {share:g}")
        elif name == "scaled_dot_product_attention" and kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0) > 0:
            self.active.add("in attention")
        return func(*args, **kwargs)


def _output(subject: Subject, batch: Any, seed: int = 0) -> torch.Tensor | None:
    torch.manual_seed(seed)
    with Capture(subject.model) as capture:
        try:
            subject.loss(subject.model, batch)
        except (RuntimeError, ValueError, IndexError):
            return None  # the model does not take the changed input, which tells nothing
    found = capture.tensor()
    return None if found is None else found.float().clone()


def _rows(subject: Subject) -> int | None:
    labels = labels_path(subject.batch)
    tensors = [tensor for _, tensor in inputs(subject.batch) if tensor.ndim]
    if labels is None or not tensors:
        return None
    counts = {len(tensor) for tensor in tensors}
    return counts.pop() if len(counts) == 1 else None


def _perturbed(batch: Any, rows: slice, positions_from: int = 0) -> Any:
    """Return the batch with other contents in these rows from a position on: ids shuffled, values replaced by noise."""
    wanted = {path for path, tensor in inputs(batch) if _is_content(path, tensor)}

    def change(path: Path, tensor: torch.Tensor) -> torch.Tensor:
        if path not in wanted:
            return tensor
        tensor = tensor.clone()
        part = tensor[rows, positions_from:] if tensor.ndim > 1 else tensor[rows]
        if tensor.is_floating_point():
            scale = float(tensor.float().std()) if tensor.numel() > 1 else 1.0
            part.copy_(part + torch.randn_like(part.float()).to(part.dtype) * max(scale, 1e-3))
        else:
            part.copy_(_other_ids(tensor, part))
        return tensor

    return mapped(batch, change)


def _other_ids(tensor: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """Return ids that occur in the tensor, each different from the one it replaces where there is a choice."""
    known = torch.unique(tensor)
    if len(known) < 2:
        return (part + 1).clamp(max=int(tensor.max())) if int(tensor.max()) > 0 else part + 1
    other: torch.Tensor = known[(torch.searchsorted(known, part.contiguous()) + 1) % len(known)]
    return other


def _is_content(path: Path, tensor: torch.Tensor) -> bool:
    name = str(path[-1]) if path else ""
    return (
        "mask" not in name
        and "position" not in name
        and "type" not in name
        and tensor.ndim >= 1
        and (tensor.is_floating_point() or tensor.dtype in (torch.int64, torch.int32, torch.uint8))
    )


def _change(one: torch.Tensor, other: torch.Tensor) -> float:
    if one.shape != other.shape:
        return float("inf")
    scale = float(one.abs().max()) or 1.0
    return float((one - other).abs().max()) / scale


def _differs(one: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is None or _change(one, other) > CHANGED
