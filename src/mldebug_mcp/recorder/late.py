"""What keeps recording cheap and harmless.

Values are read late, times are taken without waiting, costs are bounded, faults end nothing.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

# A recording never ends a training: what goes wrong in it is said once, and left out from then on.


P = ParamSpec("P")
Owner = TypeVar("Owner")

_FAILED: set[tuple[int, str]] = set()


def guarded(function: Callable[Concatenate[Owner, P], None]) -> Callable[Concatenate[Owner, P], None]:
    """Make a method that says on stderr what it failed of, once, and does nothing afterwards.

    It costs a call more. What each step calls has a `try` of its own instead, and fails by `failed_at`.
    """
    name = function.__name__

    @wraps(function)
    def call(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if (id(owner), name) in _FAILED:
            return
        try:
            function(owner, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - models, optimizers and loaders can be anything
            failed_at(owner, name, error)

    return call


def failed_at(owner: object, name: str, error: Exception) -> None:
    """Say on stderr what a method of an object failed of, once."""
    if (id(owner), name) not in _FAILED:
        _FAILED.add((id(owner), name))
        failed(name.strip("_").replace("_", " "), error)


def failed(where: str, error: Exception) -> None:
    """Say on stderr what recording failed of."""
    sys.stderr.write(
        f"mldebug_mcp.recorder: {where}: {type(error).__name__}: {error}; "
        "this is not recorded from here on, training goes on\n"
    )


# Times of the parts of a step: by the wall where the loop computes, by events where a GPU does, without waiting.


Moment: TypeAlias = Any
"""Seconds of `time.perf_counter`, or an event in the work of the GPU."""


def seconds(first: Moment, last: Moment) -> float:
    """Return the time between two moments of one clock; the GPU's must have come."""
    found: float = last - first if isinstance(first, float) else first.elapsed_time(last) / 1000
    return found


def event_now() -> Moment:
    """Return an event at this moment of the GPU."""
    event = sys.modules["torch"].cuda.Event(enable_timing=True)
    event.record()
    return event


# Values that lie on a device, read when they have arrived: the loop never waits for them.


Value: TypeAlias = Any
"""A number, or a tensor with one number."""


@dataclass(slots=True)
class Vector:
    """Numbers of one tensor that have a name each."""

    names: Sequence[str]
    tensor: Tensor


is_here = attrgetter("is_cpu")
"""Says whether the numbers of a tensor can be read without waiting for a device."""


def number_of(value: Value, name: str = "loss") -> Value:
    """Return the number in a tensor on the CPU; a tensor on a device as it is, apart from its graph.

    Raises:
        ValueError: a tensor holds more than one number, or none.
    """
    if not hasattr(value, "detach"):
        return value
    if value.numel() != 1:
        raise ValueError(f"log({name}=…): a tensor of {value.numel()} numbers; log its mean, or single numbers")
    return value.item() if is_here(value) else value.detach()


class Draft:
    """A record some of whose values are still on their way.

    Args:
        values: By name: numbers, tensors of one number, text and lists; a `Vector` under any name.
    """

    batch: Value = None
    """What the step was made of, kept until its loss is known."""
    max_norm = 0.0
    """The norm to which gradients are clipped, 0 where they are not."""
    origin: dict[str, list[str]] | None = None
    """Where values that are not finite began, where that was looked for."""
    sizes: tuple[Sizes, ...] = ()
    """The largest sizes of tensors on a device; the first that is not finite is reported."""
    updates = 0
    """Updates of weights."""
    is_scaled = False
    """Whether a loss scaler skips steps whose gradients are not finite, which is its work."""
    away = False
    """Whether some values, or the times, are still on a device."""
    marks: Sequence[Moment] = ()
    """What begins or ends within a step, each followed by when."""
    tokens = 0

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values

    def put(self, name: str, value: Value) -> Value:
        """Take a value and return it: of a tensor on the CPU its number at once, which may be another one soon."""
        if type(value) is not float:
            value = number_of(value)
            if hasattr(value, "detach"):
                self.away = True
        self.values[name] = value
        return value

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
            self.sizes += (sizes,)
            self.away = True

    @property
    def is_lost(self) -> bool:
        """Whether the loss is not finite, or the norm of gradients that no scaler answers for."""
        values = [self.values.get("train/loss"), None if self.is_scaled else self.values.get("grad_norm")]
        return any(isinstance(value, float | int) and not math.isfinite(value) for value in values)


@dataclass(slots=True)
class Sizes:
    """The largest sizes of some tensors on a device: one that is not finite says that the tensor is not.

    Args:
        tensor: The sizes.
        lost: Takes their numbers and returns what is not finite, as `origin` of a draft has it.
        of_gradients: Whether they are those of all gradients of a model.
        numbers: Those in the tensor, once they have arrived.
    """

    tensor: Tensor
    lost: Callable[[Sequence[float]], dict[str, list[str]]]
    of_gradients: bool = False
    numbers: Sequence[float] = ()


@dataclass(slots=True)
class _Sent:
    """Drafts whose numbers travel together.

    Args:
        drafts: In their order.
        tensors: What travels.
        takes: One for each tensor: takes its numbers.
        numbers: All numbers, on their way.
        arrived: The event of their arrival; None where nothing is waited for.
    """

    drafts: list[Draft]
    tensors: list[Tensor] = field(default_factory=list)
    takes: list[Callable[[list[float]], None]] = field(default_factory=list)
    numbers: Value = None
    arrived: Value = None


SEND_EVERY = 0.1
"""Seconds of drafts that are sent together. Chosen: a copy from a device takes as long for ten numbers as for one."""
MOST_SENT = 256
"""Copies on their way; the oldest of more is given up. Chosen: the queue of a GPU is full long before."""


class Late:
    """Takes drafts, and gives them back complete and in order."""

    def __init__(self) -> None:
        self.waiting: list[Draft] = []
        """Drafts whose tensors are sent with those of the next ones."""
        self.sent: deque[Draft | _Sent] = deque()
        """What is on its way or here, in order."""
        self._next = 0.0
        self._is_sure = True
        """Whether each update so far is known to be of finite gradients, so that the weights are not spoilt."""

    def put(self, draft: Draft, now: float) -> None:
        """Take a draft; tensors of several drafts are copied together, without waiting for the device."""
        if not draft.away and not self.waiting:
            self.sent.append(draft)
            return
        self.waiting.append(draft)
        if now >= self._next:
            self._send(now)

    def _send(self, now: float) -> None:
        self._next = now + SEND_EVERY
        if self.waiting:
            self.sent.append(_sent(self.waiting))
            self.waiting = []

    def arrived(self, now: float, *, wait: bool = False) -> Iterator[Draft]:
        """Yield the drafts whose values are there, in order.

        Args:
            now: The time, in the seconds that `put` was given.
            wait: Whether to wait for them: the run is over.
        """
        if wait:
            self._send(now)
        while self.sent:
            first = self.sent[0]
            if isinstance(first, Draft):
                self.sent.popleft()
                yield first
                continue
            there = first.arrived is None or first.arrived.query()
            if not there and wait:
                first.arrived.synchronize()
                there = True
            if not there and len(self.sent) < MOST_SENT:
                return
            self.sent.popleft()
            if there:
                _take(first)
            for draft in first.drafts:
                draft.marks = draft.marks if there else ()
                self._look(draft, there=there)
                yield draft

    def _look(self, draft: Draft, *, there: bool) -> None:
        """Say where values that are not finite began; weights that may be spoilt say nothing."""
        unchecked = draft.updates
        for sizes in draft.sizes if there else ():
            spoils = sizes.of_gradients and not draft.is_scaled and not math.isfinite(sum(sizes.numbers))
            if self._is_sure and (draft.is_lost or spoils):
                draft.origin = {**sizes.lost(sizes.numbers), **(draft.origin or {})}
            self._is_sure = self._is_sure and not (spoils and draft.updates)
            unchecked -= sizes.of_gradients
        self._is_sure = self._is_sure and there and unchecked <= 0


def _take(sent: _Sent) -> None:
    """Put the numbers that have arrived into their drafts."""
    if sent.numbers is not None:
        numbers, at = sent.numbers.tolist(), 0
        for tensor, take in zip(sent.tensors, sent.takes, strict=True):
            take(numbers[at : at + tensor.numel()])
            at += tensor.numel()


def _sent(drafts: list[Draft]) -> _Sent:
    """Send the tensors of drafts on their way together, or ask when their times are known."""
    sent = _Sent(drafts)
    for draft in drafts:
        for name, value in list(draft.values.items()):
            names, tensor = (value.names, value.tensor) if isinstance(value, Vector) else ([name], value)
            if hasattr(tensor, "device"):
                del draft.values[name]
                sent.tensors.append(tensor)
                sent.takes.append(partial(_take_values, draft, names))
        for sizes in draft.sizes:
            sent.tensors.append(sizes.tensor)
            sent.takes.append(partial(setattr, sizes, "numbers"))
    if sent.tensors:
        sent.numbers, sent.arrived = _sent_off(sent.tensors)
    elif any(draft.marks and not isinstance(draft.marks[1], float) for draft in drafts):
        sent.arrived = sys.modules["torch"].cuda.Event()
        sent.arrived.record()
    return sent


def _take_values(draft: Draft, names: Sequence[str], numbers: list[float]) -> None:
    draft.values |= zip(names, map(float, numbers), strict=True)


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
FREE_SECONDS = 0.25
"""Seconds that may be spent at once. Chosen: a short run is looked into as well, and a long one does not notice."""
FREE_IN_A_STEP = 0.02
"""... by what is measured in each step. Chosen: twenty short steps have it all."""

MAX_STEPS_UNASKED = 50
"""Steps for which a budget is not asked again. Chosen: steps that become longer pay for more, soon."""


class Budget:
    """Keeps account of one measurement.

    Args:
        every: Steps between two of them where they cost nothing.
        share: Of the time of the steps that they may take together.
        free: Seconds that may be spent at once.
    """

    def __init__(self, every: int, share: float = MAX_SHARE_OF_STEP_TIME, free: float = FREE_SECONDS) -> None:
        self._every, self._share, self._free = every, share, free
        self.next_step = 0
        """Before this step the measurement is not due."""
        self._left, self._until, self._asked = free, 0.0, 0
        self._cost = self._earned = 0.0
        """What the measurement costs, and what each step allows for it."""

    def allows(self, step: int, seconds: float) -> bool:
        """Say whether the measurement is due at a step, and can be afforded by what the last one cost.

        Where it cannot, it is due when it can be, so that a loop compares one number until then.

        Args:
            step: The step.
            seconds: What all steps took so far: a share of it may be spent.
        """
        if step < self.next_step:
            return False
        most, took = max(4 * self._cost, self._free), seconds - self._until  # what is saved up is not spent in a row
        self._left = min(self._left + self._share * took, most)
        self._earned = self._share * took / max(step - self._asked, 1)
        self._until, self._asked = seconds, step
        missing = self._steps_missing()
        self.next_step = step + missing
        return not missing

    def spent(self, step: int, seconds: float) -> None:
        """Take what a measurement cost."""
        self._left -= seconds
        self._cost = seconds if not self._cost else max(seconds, 0.7 * self._cost)
        self.next_step = step + max(self._every, self._steps_missing())

    def _steps_missing(self) -> int:
        """Return the steps until the measurement can be afforded again."""
        missing = min(self._cost, 60.0) - self._left
        if missing <= 0:
            return 0
        return min(math.ceil(missing / self._earned), MAX_STEPS_UNASKED) if self._earned > 0 else 1
