"""Memory that the allocator keeps while little is in use."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.memory.sizes import MIB, percent, size
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom, on_worst_device

LEAST_SHARE = 0.5
"""Of reserved memory that lies in wholly free segments."""
LEAST_BYTES = 64 * MIB
"""Bytes in wholly free segments that are worth telling. Chosen: by hand."""
RECENT = 0.25
"""The last part of the history, in which nothing may come near what is reserved. Chosen: training comes back to its
peak in every step; what it caches between two steps does not count."""
USED = 0.6
"""Of reserved memory that tensors may hold at most in that part. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Nothing needs fixing for this process: it reuses the memory. If another process or library needs it, call "
    "`torch.cuda.empty_cache()` once at the change of phase, not in each step; it frees no tensors.",
    quotes=("pytorch_caching_allocator", "pytorch_empty_cache"),
    background=0.1,
)
def cached_not_released(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """Most of what the allocator holds is cached and wholly free, and has been for a while.

    `nvidia-smi` shows it as used. With a history, the last quarter of it must stay below 60 % of what is reserved.
    """
    return on_worst_device(snapshot.devices, _on)


def _on(device: DeviceMemory) -> MemoryEvidence | None:
    idle = device.free.releasable
    if device.oom is not None or idle < max(LEAST_BYTES, LEAST_SHARE * device.reserved):
        return None
    history = device.history
    if history is not None:
        allocated = history.replay.allocated
        recent = int(np.max(allocated[-max(1, int(len(allocated) * RECENT)) :]))
        if recent > USED * device.reserved:
            return None
    return MemoryEvidence(
        f"device {device.device}: {size(idle)} ({percent(idle, device.reserved)} of {size(device.reserved)} "
        f"reserved) are cached in wholly free segments, while tensors hold {size(device.allocated)}",
        bytes=idle,
        device=device.device,
        values={"cached": idle, "reserved": device.reserved, "allocated": device.allocated},
    )
