"""Values that lie on a device, read when they have arrived: the loop never waits for them."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from mldebug_mcp.recorder.clock import Stamp, seconds
from mldebug_mcp.recorder.rows import Rows

if TYPE_CHECKING:
    from torch import Tensor

Value: TypeAlias = Any
"""A number, or a tensor with one number."""
WAIT = 2.0
"""Seconds after which a record is written without the values that have not arrived: the device hangs."""


@dataclass(slots=True)
class Vector:
    """Numbers of one tensor that have a name each."""

    names: Sequence[str]
    tensor: Tensor


@dataclass(slots=True)
class Draft:
    """A record some of whose values are still on their way.

    Args:
        values: By name: numbers, tensors of one number, text and lists; a `Vector` under any name.
        spans: By name, from where to where time is taken.
        batch: What the step was made of, kept until its loss is known.
        max_norm: The norm to which gradients are clipped, 0 where they are not.
        origin: Where values that are not finite began, where that was looked for.
    """

    values: dict[str, Value]
    spans: dict[str, list[tuple[Stamp, Stamp]]] = field(default_factory=dict)
    batch: Value = None
    max_norm: float = 0.0
    origin: dict[str, list[str]] | None = None


@dataclass(slots=True)
class _Sent:
    draft: Draft
    names: list[str]
    numbers: Value = None
    arrived: Value = None
    since: float = 0.0


class Late:
    """Takes drafts, and gives them back complete and in order."""

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()

    def put(self, draft: Draft, now: float) -> None:
        """Take a draft; its tensors are copied without waiting for the device."""
        names: list[str] = []
        tensors: list[Tensor] = []
        for name, value in list(draft.values.items()):
            if isinstance(value, float | int | Rows):
                continue
            told, tensor = (value.names, value.tensor) if isinstance(value, Vector) else ([name], value)
            if not hasattr(tensor, "device"):
                continue
            del draft.values[name]
            if tensor.device.type == "cpu":
                draft.values |= dict(zip(told, tensor.reshape(-1).tolist(), strict=True))
            else:
                names += told
                tensors.append(tensor.detach().reshape(-1))
        sent = _Sent(draft, names, since=now)
        if tensors:
            sent.numbers, sent.arrived = _sent_off(tensors)
        elif any(span[0].event is not None for spans in draft.spans.values() for span in spans):
            sent.arrived = sys.modules["torch"].cuda.Event()
            sent.arrived.record()
        self._sent.append(sent)

    def arrived(self, now: float, *, wait: bool = False) -> Iterator[Draft]:
        """Yield the drafts whose values are there, in order.

        Args:
            now: The time, in the seconds that `put` was given.
            wait: Whether to wait for them: the run is over.
        """
        while self._sent:
            first = self._sent[0]
            there = first.arrived is None or first.arrived.query()
            if not there and wait:
                first.arrived.synchronize()
                there = True
            if not there and now - first.since < WAIT:
                return
            self._sent.popleft()
            if there:
                first.draft.values |= dict(zip(first.names, _listed(first.numbers), strict=True))
                first.draft.values |= {
                    name: sum(seconds(*span) for span in spans) for name, spans in first.draft.spans.items()
                }
            yield first.draft


def _listed(numbers: Value) -> list[float]:
    return [] if numbers is None else [float(one) for one in numbers.tolist()]


def _sent_off(tensors: list[Tensor]) -> tuple[Value, Value]:
    """Return the numbers of tensors of a device, on their way from there, and the event of their arrival."""
    torch = sys.modules["torch"]
    device = tensors[0].device
    together = torch.cat([one.to(device, torch.float32, non_blocking=True) for one in tensors])
    if device.type != "cuda":
        return together, None
    here = torch.empty(together.shape, dtype=together.dtype, pin_memory=True)
    here.copy_(together, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return here, event


def is_finite(value: Value) -> bool:
    """Say whether a number is finite; of a tensor on a device it is not asked, which would wait for it."""
    if hasattr(value, "detach"):
        value = value.detach()
        return value.device.type != "cpu" or bool(math.isfinite(float(value)))
    return not isinstance(value, float | int) or math.isfinite(value)
