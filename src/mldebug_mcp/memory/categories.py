"""What each allocation holds, inferred from the phase of its stack and from how long it lived.

| category | rule | how sure |
| --- | --- | --- |
| any | torch's profiler wrote it | certain |
| optimizer_state | allocated where optimizers create state, or by the optimizer and kept beyond the step | high |
| collective | allocated inside torch.distributed, NCCL or DeepSpeed's communication | high |
| logits | allocated by the loss; or in forward or backward with the size of what the loss allocates | high; medium |
| parameters | allocated while the model was built, moved or loaded, and kept | high |
| gradients | allocated in backward and kept beyond its end | medium |
| activations | allocated in forward and alive when backward runs, or through many later allocations | high; medium |
| temporary | anything freed before that | medium |
| parameters | older than the history and never freed (optimizer state may be among it) | low |
| unknown | the rest | - |

If other allocations have Python frames, one without is taken to be backward: autograd runs the backward pass of a
device in a thread of its own, which has no Python frames.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from mldebug_mcp.memory.layout import PROFILER
from mldebug_mcp.memory.replay import Allocations
from mldebug_mcp.memory.stacks import Phase, Stacks
from mldebug_mcp.memory.tables import Action, Bools, Events, Ints

MANY_LATER = 20
"""Forward allocations during its life after which a tensor counts as kept for backward. Chosen: without a graph a
tensor outlives the next two or three."""
FRAMES_RECORDED = 0.2
"""Share of the allocations with Python frames above which frames were recorded at all. Chosen by hand: backward alone
takes half of them."""
LEAST_LOGITS = 1024 * 1024
"""Bytes below which sizes coincide by chance too easily."""


class Category(IntEnum):
    """What memory holds."""

    UNKNOWN = 0
    PARAMETERS = 1
    GRADIENTS = 2
    OPTIMIZER_STATE = 3
    ACTIVATIONS = 4
    LOGITS = 5
    TEMPORARY = 6
    COLLECTIVE = 7

    @property
    def label(self) -> str:
        """The name in answers."""
        return self.name.lower()


class Sure(IntEnum):
    """How sure a category is."""

    NOT = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CERTAIN = 4


_FROM_PROFILER = {
    "input": Category.TEMPORARY,
    "temporary": Category.TEMPORARY,
    "activation": Category.ACTIVATIONS,
    "gradient": Category.GRADIENTS,
    "autograd_detail": Category.TEMPORARY,
    "parameter": Category.PARAMETERS,
    "optimizer_state": Category.OPTIMIZER_STATE,
}
"""What each of the profiler's categories is here."""


class _Assignment:
    """The categories assigned so far: a later rule never overwrites an earlier one."""

    def __init__(self, count: int) -> None:
        self.category = np.zeros(count, np.int8)
        self.sure = np.zeros(count, np.int8)

    def give(self, which: Bools, category: Category, sure: Sure) -> None:
        free = which & (self.category == Category.UNKNOWN)
        self.category[free] = category
        self.sure[free] = sure


def categorise(allocations: Allocations, events: Events, stacks: Stacks) -> tuple[np.ndarray, np.ndarray]:
    """Return each allocation's `Category` and `Sure`, both of shape (allocations,) and type int8."""
    count = len(events)
    done = _Assignment(len(allocations))
    if not len(allocations):
        return done.category, done.sure
    phase = _phases(allocations, stacks)
    start, end = allocations.start, allocations.end
    _take_stated(done, allocations, events)
    timeline = _PhaseTimeline(phase, start, count)
    kept = end == count
    forward = (phase == Phase.FORWARD) | (phase == Phase.LOSS)

    done.give(phase == Phase.OPTIMIZER_STATE, Category.OPTIMIZER_STATE, Sure.HIGH)
    beyond_step = end > timeline.next_of(start, Phase.FORWARD)
    done.give((phase == Phase.OPTIMIZER) & (kept | beyond_step), Category.OPTIMIZER_STATE, Sure.HIGH)
    done.give(phase == Phase.COLLECTIVE, Category.COLLECTIVE, Sure.HIGH)
    _give_logits(done, allocations, phase)
    done.give((phase == Phase.SETUP) & kept, Category.PARAMETERS, Sure.HIGH)
    done.give((phase == Phase.BACKWARD) & (end > timeline.end_of_backward(start)), Category.GRADIENTS, Sure.MEDIUM)
    failed = np.append(np.flatnonzero(events.action == Action.OOM), count)
    next_oom = failed[np.minimum(np.searchsorted(failed, start), len(failed) - 1)]
    done.give(forward & (end > timeline.next_of(start, Phase.BACKWARD)), Category.ACTIVATIONS, Sure.HIGH)
    done.give(
        forward & (start >= 0) & (kept | (end > next_oom) | (timeline.forward_between(start, end) >= MANY_LATER)),
        Category.ACTIVATIONS,
        Sure.MEDIUM,
    )
    done.give(forward & kept, Category.ACTIVATIONS, Sure.MEDIUM)
    done.give((start >= 0) & ~kept, Category.TEMPORARY, Sure.MEDIUM)
    done.give((start < 0) & kept & (count > 0) & (phase == Phase.UNKNOWN), Category.PARAMETERS, Sure.LOW)
    return done.category, done.sure


def _phases(allocations: Allocations, stacks: Stacks) -> Ints:
    """Return each allocation's phase; if others have frames, one without belongs to backward."""
    table = np.array([one.phase for one in stacks.all], np.int64)
    phase = table[allocations.stack]
    in_history = allocations.start >= 0
    recorded = allocations.stack > 0
    if in_history.any() and recorded[in_history].mean() > FRAMES_RECORDED:
        phase = np.where(in_history & ~recorded, Phase.BACKWARD, phase)
    return phase


def _take_stated(done: _Assignment, allocations: Allocations, events: Events) -> None:
    if not len(events) or not (events.stated >= 0).any():
        return
    stated = np.where(allocations.start >= 0, events.stated[np.maximum(allocations.start, 0)], -1)
    for number, name in enumerate(PROFILER):
        done.give(stated == number, _FROM_PROFILER[name], Sure.CERTAIN)


def _give_logits(done: _Assignment, allocations: Allocations, phase: Ints) -> None:
    """Mark what the loss allocates, and the logits and their gradient by the same number of elements."""
    size = allocations.requested
    of_loss = (phase == Phase.LOSS) & (size >= LEAST_LOGITS)
    done.give(of_loss, Category.LOGITS, Sure.HIGH)
    if not of_loss.any():
        return
    largest = int(size[of_loss].max())
    # The loss computes in float32 or in the logits' own precision, so the logits are as large, half or twice as large.
    same = np.isin(size, (largest, largest // 2, largest * 2)) & (size >= LEAST_LOGITS)
    done.give(
        same
        & ((phase == Phase.FORWARD) | (phase == Phase.BACKWARD) | (phase == Phase.UNKNOWN))
        & (allocations.start >= 0),
        Category.LOGITS,
        Sure.MEDIUM,
    )


class _PhaseTimeline:
    """Finds the next allocation of a phase after a given one."""

    def __init__(self, phase: Ints, start: Ints, count: int) -> None:
        self.count = count
        order = np.argsort(start, kind="stable")
        order = order[start[order] >= 0]
        self.start, self.phase = start[order], phase[order]

    def _moments(self, phase: Phase) -> Ints:
        return np.asarray(self.start[self.phase == phase])

    def next_of(self, after: Ints, phase: Phase) -> Ints:
        """Return the event of the next allocation in this phase, or the number of events if none comes."""
        moments = np.append(self._moments(phase), self.count)
        return np.asarray(moments[np.minimum(np.searchsorted(moments, after, side="right"), len(moments) - 1)])

    def end_of_backward(self, after: Ints) -> Ints:
        """Return the last allocation of the stretch of backward that each of these moments lies in."""
        backward = self.phase == Phase.BACKWARD
        if not backward.any():
            return np.full(len(after), self.count, np.int64)
        # Unknown phases (data loading in another thread) do not end backward.
        ends = self.start[
            (self.phase == Phase.FORWARD) | (self.phase == Phase.OPTIMIZER) | (self.phase == Phase.OPTIMIZER_STATE)
        ]
        moments = self.start[backward]
        next_other = np.append(ends, self.count)[np.searchsorted(ends, after, side="right")]
        return np.asarray(moments[np.maximum(np.searchsorted(moments, next_other, side="left") - 1, 0)])

    def forward_between(self, after: Ints, before: Ints) -> Ints:
        """Return how many allocations of the forward pass lie between."""
        moments = self._moments(Phase.FORWARD)
        return np.asarray(np.searchsorted(moments, before) - np.searchsorted(moments, after, side="right"))
