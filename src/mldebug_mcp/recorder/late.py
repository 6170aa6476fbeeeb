"""Values that lie on a device, read when they have arrived: the loop never waits for them."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from mldebug_mcp.recorder.clock import Moment, seconds

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


def number_of(value: Value) -> Value:
    """Return the number in a tensor on the CPU; a tensor on a device as it is, apart from its graph."""
    if not hasattr(value, "detach"):
        return value
    return value.item() if value.is_cpu else value.detach()


def is_finite(value: Value) -> bool:
    """Say whether a number is finite; of a tensor on a device it is not asked, which would wait for it."""
    return not isinstance(value, float | int) or math.isfinite(value)


@dataclass(slots=True)
class Draft:
    """A record some of whose values are still on their way.

    Args:
        values: By name: numbers, tensors of one number, text and lists; a `Vector` under any name.
        spans: Names of times, and from where to where each is taken; those of one name are summed.
        batch: What the step was made of, kept until its loss is known.
        max_norm: The norm to which gradients are clipped, 0 where they are not.
        origin: Where values that are not finite began, where that was looked for.
        away: Whether some values, or the times, are still on a device.
    """

    values: dict[str, Value]
    spans: list[tuple[str, Moment, Moment]] = field(default_factory=list)
    batch: Value = None
    max_norm: float = 0.0
    origin: dict[str, list[str]] | None = None
    away: bool = False

    def put(self, name: str, value: Value) -> None:
        """Take a value: of a tensor on the CPU its number at once, which may be another one soon."""
        if hasattr(value, "detach"):
            value = number_of(value)
            self.away = self.away or not isinstance(value, float | int)
        self.values[name] = value

    def put_all(self, vector: Vector | None) -> None:
        """Take several values of one tensor."""
        if vector is None:
            return
        if vector.tensor.is_cpu:
            self.values |= dict(zip(vector.names, vector.tensor.tolist(), strict=True))
        else:
            self.values[vector.names[0]], self.away = vector, True


@dataclass(slots=True)
class _Sent:
    draft: Draft
    names: Sequence[str] = ()
    numbers: Value = None
    arrived: Value = None
    since: float = 0.0


class Late:
    """Takes drafts, and gives them back complete and in order."""

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()

    def put(self, draft: Draft, now: float) -> None:
        """Take a draft; its tensors are copied without waiting for the device."""
        self._sent.append(_sent(draft, now) if draft.away else _Sent(draft))

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
                if first.numbers is not None:
                    first.draft.values |= dict(zip(first.names, map(float, first.numbers.tolist()), strict=True))
                for name, began, ended in first.draft.spans:
                    first.draft.values[name] = first.draft.values.get(name, 0.0) + seconds(began, ended)
            yield first.draft


def _sent(draft: Draft, now: float) -> _Sent:
    """Send the tensors of a draft on their way, or ask when its times are known."""
    names: list[str] = []
    tensors: list[Tensor] = []
    for name, value in list(draft.values.items()):
        told, tensor = (value.names, value.tensor) if isinstance(value, Vector) else ([name], value)
        if hasattr(tensor, "device"):
            del draft.values[name]
            names += told
            tensors.append(tensor.reshape(-1))
    sent = _Sent(draft, names, since=now)
    if tensors:
        sent.numbers, sent.arrived = _sent_off(tensors)
    else:
        sent.arrived = sys.modules["torch"].cuda.Event()
        sent.arrived.record()
    return sent


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
