"""A history whose beginning was overwritten."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.memory.sizes import size
from mldebug_mcp.memory.snapshot import History, MemorySnapshot
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom

ROUND_NUMBER = 1000
"""A history of exactly so many events, or a multiple, has filled its buffer. Chosen: `max_entries` is given in round
numbers."""


@memory_symptom(
    severity="info",
    fix="Record with a larger `max_entries`, or fewer steps; keep `stacks='python'` to make entries smaller.",
    history=True,
    background=0.2,
)
def history_truncated(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """The history's ring buffer wrapped: its early events are missing.

    Seen where blocks carry a stack, so were allocated while recording, but their event is gone; or where a history of
    a round number of events frees what it never allocated.

    Not this when: recording began late; then older blocks carry no stack.
    """
    for device in snapshot.recorded:
        history = device.history
        assert history is not None  # noqa: S101 - `recorded` devices have one
        lost = _lost(history)
        if lost:
            return MemoryEvidence(
                f"device {device.device}: the {history.events:,} events do not hold the allocation of "
                f"{size(lost)} that were allocated while "
                "recording; what was freed before the first event is unknown, so the true peak may be higher",
                bytes=lost,
                device=device.device,
                values={"events": history.events, "lost": lost},
            )
    return None


def _lost(history: History) -> int:
    allocations = history.allocations
    old = allocations.start < 0
    with_stack = old & (allocations.stack > 0)
    if with_stack.any():
        return int(allocations.size[with_stack].sum())
    full = history.events >= ROUND_NUMBER and history.events % ROUND_NUMBER == 0
    return int(allocations.size[old].sum()) if full and np.any(old & (allocations.end < history.events)) else 0
