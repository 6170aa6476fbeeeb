"""One allocation that dominates."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.sizes import MIB, percent, size
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom, on_worst_device

LEAST_SHARE = 0.33
"""Of what is allocated at the peak. Chosen: no layer of a model of ordinary depth reaches a third."""
LEAST_BYTES = 16 * MIB
"""Bytes that the allocation must have to be worth telling. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Compute it in chunks, in lower precision, or not at all: an attention matrix of length x length, logits of "
    "all positions, a broadcast that was not meant.",
    background=0.05,
)
def large_allocation(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """One allocation holds a third or more of all that is allocated at the peak, or is the request that failed.

    A request counts that is at least half as large as all that was allocated when it failed.
    """
    return on_worst_device(snapshot.devices, _on)


def _on(device: DeviceMemory) -> MemoryEvidence | None:
    event = device.oom
    if event is not None and event.requested >= max(LEAST_BYTES, (event.allocated + event.requested) * LEAST_SHARE):
        site = event.stack.site if event.stack else "unknown"
        return MemoryEvidence(
            f"device {device.device}: the request that failed is {size(event.requested)}, against "
            f"{size(event.allocated)} allocated; asked for at {site}",
            bytes=event.requested,
            device=device.device,
            stack=event.stack.frames if event.stack else (),
            values={"requested": event.requested, "allocated": event.allocated},
            severity="warning",
        )
    view = device.view
    if view is None or not view.held.any():
        return None
    held = np.flatnonzero(view.held)
    largest = int(held[view.allocations.size[held].argmax()])
    bytes_, total = int(view.allocations.size[largest]), int(view.allocations.size[held].sum())
    if bytes_ < max(LEAST_BYTES, LEAST_SHARE * total):
        return None
    stack = view.stacks[int(view.allocations.stack[largest])]
    what = Category(int(view.category[largest])).label.replace("_", " ")
    return MemoryEvidence(
        f"device {device.device}: one allocation of {size(bytes_)} ({what}) is {percent(bytes_, total)} of the "
        f"{size(total)} allocated at the peak; asked for at {stack.site}",
        bytes=bytes_,
        device=device.device,
        stack=stack.frames,
        values={"bytes": bytes_, "share": bytes_ / total},
    )
