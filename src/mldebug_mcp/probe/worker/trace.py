"""One pass watched operation by operation: where values grow, and where the first non-finite one comes from.

Every torch function of the pass is seen, so a NaN is traced to the operation and the line that made it, in a module or
in the loss function alike. That is slow; it is done for one or two passes, never while training.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from .tree import leaves

KEPT = 400
"""Frames kept; a pass over a deep model has thousands."""
SHOWN = 8
"""Frames shown before the first non-finite value."""
_MAKES_MASKS = ("masked_fill", "masked_fill_", "full", "full_like", "where", "triu", "tril", "triu_", "__setitem__",
                "fill_", "new_full", "to", "clone", "expand", "__get__", "__getitem__", "unsqueeze")  # fmt: skip
"""Operations that put infinities where a program asks for them, as an attention mask does."""
SATURATED = 0.99
"""|tanh|, or a sigmoid's distance from one half doubled, above this has less than 2 % of its greatest slope."""

Frame = dict[str, Any]


class Trace(TorchFunctionMode):
    """Record the operations of a pass.

    Attributes:
        frames: The latest operations: `op`, `module`, `where`, `largest_in`, `largest_out`, `dtype`.
        origins: Operations that made a non-finite value out of finite ones, in order.
        units: Per squashing or rectifying operation, the share of its outputs that is saturated or zero.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.frames: list[Frame] = []
        self.origins: list[Frame] = []
        self.units: list[dict[str, Any]] = []
        self._names = {id(module): name or "model" for name, module in model.named_modules()}
        self._stack: list[str] = []
        self._handles: list[Any] = []
        self._before: list[list[Frame]] = []

    def __enter__(self) -> Trace:
        hooks = nn.modules.module
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter_module),
            hooks.register_module_forward_hook(self._leave_module),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for handle in self._handles:
            handle.remove()

    def _enter_module(self, module: nn.Module, inputs: Any) -> None:
        del inputs
        self._stack.append(self._names.get(id(module), type(module).__name__))

    def _leave_module(self, module: nn.Module, inputs: Any, output: Any) -> None:
        del module, inputs, output
        if self._stack:
            self._stack.pop()

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        # In-place operations destroy their input: look at it first.
        before = _largest((args, kwargs or {}))
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", str(func))
        made = [tensor for _, tensor in leaves(result) if tensor.is_floating_point() and tensor.numel()]
        if made and not name.startswith("__get"):
            self._record(name, before, made)
        return result

    def _record(self, name: str, before: float | None, made: list[torch.Tensor]) -> None:
        with torch._C.DisableTorchFunction():
            after = _largest(made)
            frame = {"op": name, "module": self._stack[-1] if self._stack else "", "largest_in": before,
                     "largest_out": after, "dtype": str(made[0].dtype).removeprefix("torch.")}  # fmt: skip
            if name in ("tanh", "sigmoid", "relu", "tanh_", "sigmoid_", "relu_"):
                self.units.append({**frame, "share": _share_lost(name.rstrip("_"), made[0])})
            self.frames.append(frame)
            del self.frames[:-KEPT]
            if _bad(after) and not _bad(before) and name not in _MAKES_MASKS and len(self.origins) < 50:
                frame["where"] = _where()
                self.origins.append(frame)
                self._before.append(self.frames[-SHOWN - 1 : -1])

    def culprit(self) -> Frame | None:
        """Return the operation to blame for a non-finite loss, with the frames before it; None if none is seen.

        A NaN is blamed on the operation that first made one of finite values. An infinity counts where there is none.
        """
        if not self.origins:
            return None
        index = next((i for i, one in enumerate(self.origins) if one["largest_out"] is None), 0)
        return {**self.origins[index], "frames": self._before[index]}


def _bad(largest: float | None) -> bool:
    return largest is None or largest == float("inf")


def _largest(value: Any) -> float | None:
    """Return the largest absolute value in a nest of tensors; None for a NaN."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        most = 0.0
        for _, tensor in leaves([*value[0], value[1]] if isinstance(value, tuple) else value):
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            one = float(tensor.detach().abs().max())
            if one != one:  # noqa: PLR0124 - NaN
                return None
            most = max(most, one)
        return most


def _share_lost(name: str, output: torch.Tensor) -> float:
    value = output.detach().float()
    if name == "relu":
        # A unit is dead if it is zero for every row; a row's zeros alone are how a ReLU works.
        flat = value.reshape(-1, value.shape[-1]) if value.ndim <= 3 else value.movedim(1, -1).flatten(0, -2)
        return float((flat == 0).all(dim=0).float().mean())
    squashed = value if name == "tanh" else 2 * value - 1
    return float((squashed.abs() > SATURATED).float().mean())


def _where() -> str:
    """Return file and line of the innermost frame that is neither torch's nor the probe's."""
    frame: types.FrameType | None = sys._getframe(1)
    here = str(Path(__file__).parent)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((here, "<")) and f"{Path(torch.__file__).parent}" not in file:
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
