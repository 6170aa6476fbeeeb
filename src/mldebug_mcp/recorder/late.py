"""What keeps recording cheap and harmless.

Values are read late, times are taken without waiting, costs are bounded, faults end nothing.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

# A recording never ends a training: what goes wrong in it is said once, and left out from then on.


P = ParamSpec("P")
Owner = TypeVar("Owner")

_FAILED: set[tuple[int, str]] = set()


def guarded(function: Callable[Concatenate[Owner, P], None]) -> Callable[Concatenate[Owner, P], None]:
    """Make a method that says on stderr what it failed of, once, and does nothing afterwards."""

    @wraps(function)
    def call(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if _FAILED and (id(owner), function.__name__) in _FAILED:
            return
        try:
            function(owner, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - models, optimizers and loaders can be anything
            _FAILED.add((id(owner), function.__name__))
            where = function.__name__.strip("_").replace("_", " ")
            sys.stderr.write(
                f"mldebug_mcp.recorder: {where}: {type(error).__name__}: {error}; "
                "this is not recorded from here on, training goes on\n"
            )

    return call


# Times of the parts of a step: by the wall where the loop computes, by events where a GPU does, without waiting.


Moment: TypeAlias = Any
"""Seconds of `time.perf_counter`, or an event in the work of the GPU."""


def clock_of(*, on_gpu: bool) -> Callable[[], Moment]:
    """Return what tells this moment."""
    return _event if on_gpu else time.perf_counter


def seconds(first: Moment, last: Moment) -> float:
    """Return the time between two moments of one clock; the GPU's must have come."""
    found: float = last - first if isinstance(first, float) else first.elapsed_time(last) / 1000
    return found


def _event() -> Moment:
    event = sys.modules["torch"].cuda.Event(enable_timing=True)
    event.record()
    return event


# Values that lie on a device, read when they have arrived: the loop never waits for them.


Value: TypeAlias = Any
"""A number, or a tensor with one number."""
WAIT = 2.0
"""Seconds after which a record is written without the values that have not arrived: the device hangs."""


@dataclass(slots=True)
class Vector:
    """Numbers of one tensor that have a name each."""

    names: Sequence[str]
    tensor: Tensor


def is_here(tensor: Value) -> bool:
    """Say whether the numbers of a tensor can be read without waiting for a device."""
    found: bool = tensor.is_cpu
    return found


def number_of(value: Value) -> Value:
    """Return the number in a tensor on the CPU; a tensor on a device as it is, apart from its graph."""
    if not hasattr(value, "detach"):
        return value
    return value.item() if is_here(value) else value.detach()


def is_lost(value: Value) -> bool:
    """Say whether a number is known not to be finite: one on a device is known when it has arrived."""
    return isinstance(value, float | int) and not math.isfinite(value)


@dataclass(slots=True)
class Draft:
    """A record some of whose values are still on their way.

    Args:
        values: By name: numbers, tensors of one number, text and lists; a `Vector` under any name.
        spans: Names of times, and from where to where each is taken; those of one name are summed.
        batch: What the step was made of, kept until its loss is known.
        max_norm: The norm to which gradients are clipped, 0 where they are not.
        origin: Where values that are not finite began, where that was looked for.
        sizes: The largest sizes of tensors on a device; the first that is not finite is reported.
        is_scaled: Whether a loss scaler skips steps whose gradients are not finite, which is its work.
        away: Whether some values, or the times, are still on a device.
    """

    values: dict[str, Value]
    spans: list[tuple[str, Moment, Moment]] = field(default_factory=list)
    batch: Value = None
    max_norm: float = 0.0
    origin: dict[str, list[str]] | None = None
    sizes: list[Sizes] = field(default_factory=list)
    is_scaled: bool = False
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
        if is_here(vector.tensor):
            self.values |= dict(zip(vector.names, vector.tensor.tolist(), strict=True))
        else:
            self.values[vector.names[0]], self.away = vector, True

    def put_sizes(self, sizes: Sizes | None) -> None:
        """Take sizes of tensors on a device."""
        if sizes is not None:
            self.sizes.append(sizes)
            self.away = True

    @property
    def is_lost(self) -> bool:
        """Whether the loss is not finite, or the norm of gradients that no scaler answers for."""
        names = ["train/loss"] if self.is_scaled else ["train/loss", "grad_norm"]
        return any(is_lost(self.values.get(name)) for name in names)


class Sizes(Protocol):
    """The largest sizes of some tensors on a device: one that is not finite says that the tensor is not."""

    tensor: Tensor

    def lost(self, sizes: Sequence[float]) -> dict[str, list[str]]:
        """Return what is not finite, as `origin` of a draft has it, once the sizes are known."""


@dataclass(slots=True)
class _Sent:
    """Drafts whose numbers travel together.

    Args:
        drafts: In their order.
        tensors: What travels.
        takes: One for each tensor: takes its numbers.
        numbers: All numbers, on their way.
        arrived: The event of their arrival; None where nothing is waited for.
        since: When they were sent.
    """

    drafts: list[Draft]
    tensors: list[Tensor] = field(default_factory=list)
    takes: list[Callable[[list[float]], None]] = field(default_factory=list)
    numbers: Value = None
    arrived: Value = None
    since: float = 0.0


SEND_EVERY = 0.1
"""Seconds of drafts that are sent together. Chosen: a copy from a device takes as long for ten numbers as for one."""


class Late:
    """Takes drafts, and gives them back complete and in order."""

    def __init__(self) -> None:
        self._waiting: list[Draft] = []
        self._sent: deque[_Sent] = deque()
        self._next = 0.0

    def put(self, draft: Draft, now: float) -> None:
        """Take a draft; tensors of several drafts are copied together, without waiting for the device."""
        if not draft.away and not self._waiting:
            self._sent.append(_Sent([draft]))
            return
        self._waiting.append(draft)
        if now >= self._next:
            self._send(now)

    def _send(self, now: float) -> None:
        self._next = now + SEND_EVERY
        if self._waiting:
            self._sent.append(_sent(self._waiting, now))
            self._waiting = []

    def arrived(self, now: float, *, wait: bool = False) -> Iterator[Draft]:
        """Yield the drafts whose values are there, in order.

        Args:
            now: The time, in the seconds that `put` was given.
            wait: Whether to wait for them: the run is over.
        """
        if wait:
            self._send(now)
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
                _take(first)
            yield from first.drafts


def _take(sent: _Sent) -> None:
    """Put the numbers and the times that have arrived into their drafts."""
    if sent.numbers is not None:
        numbers, at = sent.numbers.tolist(), 0
        for tensor, take in zip(sent.tensors, sent.takes, strict=True):
            take(numbers[at : at + tensor.numel()])
            at += tensor.numel()
    for draft in sent.drafts:
        for name, began, ended in draft.spans:
            draft.values[name] = draft.values.get(name, 0.0) + seconds(began, ended)


def _sent(drafts: list[Draft], now: float) -> _Sent:
    """Send the tensors of drafts on their way together, or ask when their times are known."""
    sent = _Sent(drafts, since=now)
    for draft in drafts:
        for name, value in list(draft.values.items()):
            names, tensor = (value.names, value.tensor) if isinstance(value, Vector) else ([name], value)
            if hasattr(tensor, "device"):
                del draft.values[name]
                sent.tensors.append(tensor)
                sent.takes.append(partial(_take_values, draft, names))
        for sizes in draft.sizes:
            sent.tensors.append(sizes.tensor)
            sent.takes.append(partial(_take_sizes, draft, sizes))
    if sent.tensors:
        sent.numbers, sent.arrived = _sent_off(sent.tensors)
    elif any(draft.spans and not isinstance(draft.spans[0][1], float) for draft in drafts):
        sent.arrived = sys.modules["torch"].cuda.Event()
        sent.arrived.record()
    return sent


def _take_values(draft: Draft, names: Sequence[str], numbers: list[float]) -> None:
    draft.values |= zip(names, map(float, numbers), strict=True)


def _take_sizes(draft: Draft, sizes: Sizes, numbers: list[float]) -> None:
    """Say where values that are not finite began; sizes come behind the loss and the norm of their draft."""
    if draft.is_lost:
        draft.origin = {**(draft.origin or {}), **sizes.lost(numbers)}


def _sent_off(tensors: list[Tensor]) -> tuple[Value, Value]:
    """Return the numbers of tensors of a device, on their way from there, and the event of their arrival."""
    torch = sys.modules["torch"]
    device = tensors[0].device
    together = torch.cat(
        [tensor.reshape(-1) if tensor.device == device else tensor.to(device).reshape(-1) for tensor in tensors]
    )
    if device.type != "cuda":
        return together, None
    here = torch.empty(together.shape, dtype=together.dtype, pin_memory=True)
    here.copy_(together, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return here, event


# What recording may cost: a share of the time of the steps, of which dear measurements are paid.
#
# What they cost is the time on the core: where others are on it too, the wall would say that nothing can be afforded.


MAX_SHARE_OF_STEP_TIME = 0.005
"""Of the time of steps that dear measurements may take: half of what a recording may cost in all."""
FREE = 0.25
"""Seconds that may be spent at once. Chosen: a short run is looked into as well, and a long one does not notice."""
FREE_IN_A_STEP = 0.02
"""... by what is measured in each step. Chosen: twenty short steps have it all."""


class Budget:
    """Keeps account of one measurement.

    Args:
        every: Steps between two of them where they cost nothing.
        share: Of the time of the steps that they may take together.
        free: Seconds that may be spent at once.
    """

    def __init__(self, every: int, share: float = MAX_SHARE_OF_STEP_TIME, free: float = FREE) -> None:
        self.every = every
        self._share, self._free = share, free
        self._last_step = 0
        self._left = free
        self._cost = 0.0

    def step(self, seconds: float) -> None:
        """Take the time of a step: a share of it may be spent."""
        most = max(4 * self._cost, self._free)  # what was saved up long ago is not spent in a row
        self._left = min(self._left + self._share * seconds, most)

    def allows(self, step: int) -> bool:
        """Say whether the measurement is due at a step, and can be afforded by what the last one cost."""
        return (self._last_step == 0 or step - self._last_step >= self.every) and self._left >= min(self._cost, 60.0)

    def spent(self, step: int, seconds: float) -> None:
        """Take what a measurement cost."""
        self._last_step = max(step, 1)
        self._left -= seconds
        self._cost = seconds if not self._cost else max(seconds, 0.7 * self._cost)
