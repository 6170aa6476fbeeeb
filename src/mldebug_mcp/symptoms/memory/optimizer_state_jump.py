"""Optimizer state that appears with the first step."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.sizes import MIB, percent, size
from mldebug_mcp.memory.snapshot import DeviceMemory, History, MemorySnapshot
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom, on_worst_device

LEAST_SHARE = 0.05
"""Of the peak that the state must reach. Chosen: less is not worth telling."""
LEAST_BYTES = 4 * MIB
"""Bytes that the state must have. Chosen: less needs no plan."""
FLAT = 0.02
"""Largest relative change of the floor after the jump, where there are no stacks to tell by. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Plan for it: the first step does not show the peak. An 8-bit or factored optimizer, sharding (ZeRO, "
    "FSDP) or offload shrink it.",
    history=True,
    background=0.3,
)
def optimizer_state_jump(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """Memory steps up at the first optimizer step, when the state is created, and stays up.

    Normal, and the usual reason why the second step fails although the first fitted.
    """
    return on_worst_device(snapshot.recorded, _on)


def _on(device: DeviceMemory) -> MemoryEvidence | None:
    history = device.history
    assert history is not None  # noqa: S101 - `recorded` devices have one
    found = _by_stack(history) if history.frames_recorded else _by_floor(history)
    if found is None:
        return None
    moment, state, frames = found
    if state < max(LEAST_BYTES, LEAST_SHARE * device.peak_allocated):
        return None
    before = int(history.replay.allocated[moment])
    step = int(history.steps.of(np.array([moment]))[0]) if len(history.steps) else -1
    where = f" in step {step}" if step >= 0 else f" at event {moment}"
    return MemoryEvidence(
        f"device {device.device}: the optimizer allocates {size(state)} of state{where} and keeps it; {size(before)} "
        f"were allocated before ({percent(state, device.peak_allocated)} of the peak)",
        bytes=state,
        device=device.device,
        stack=frames,
        values={"state": state, "before": before, "event": moment, "step": step},
    )


def _by_stack(history: History) -> tuple[int, int, tuple[str, ...]] | None:
    allocations = history.allocations
    state = np.flatnonzero((history.category == Category.OPTIMIZER_STATE) & (allocations.start >= 0))
    if not len(state):
        return None
    first = int(allocations.start[state].min())
    top = int(state[allocations.size[state].argmax()])
    return first, int(allocations.size[state].sum()), history.stacks[int(allocations.stack[top])].frames


def _by_floor(history: History) -> tuple[int, int, tuple[str, ...]] | None:
    """Without stacks: the least that is held in each step rises once, after the first, and is flat from then on."""
    starts = history.steps.starts
    if len(starts) < 4:
        return None
    floors = np.minimum.reduceat(history.replay.allocated[1:], starts)
    jump, rest = int(floors[1] - floors[0]), floors[1:-1]
    if jump <= 0 or float(rest.max() - rest.min()) > FLAT * float(rest.max()):
        return None
    return int(starts[1]), jump, ()
