"""An allocation that failed."""

from __future__ import annotations

from mldebug_mcp.memory.sizes import size
from mldebug_mcp.memory.snapshot import MemorySnapshot, OutOfMemoryEvent
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom
from mldebug_mcp.text import counted

NAMED = 256 * 1024**2
"""Bytes of others on the device that are worth naming. Chosen: a CUDA context alone takes as much."""


@memory_symptom(
    severity="error",
    fix="Lower what `levers` names first. After catching the error, leave the except block before trying again: the "
    "exception keeps the tensors alive.",
    quotes=("axolotl_oom_batch", "pytorch_oom_handler"),
    background=0.0005,
)
def oom(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """An allocation failed for lack of memory.

    Seen as an oom event in the history, an out-of-memory message, or the count in `memory_summary()`.
    """
    failed = [(device.device, device.oom) for device in snapshot.devices if device.oom is not None]
    if not failed:
        return None
    device, event = max(failed, key=lambda one: one[1].requested)
    return MemoryEvidence(
        _summary(device, event),
        bytes=event.requested,
        device=device,
        stack=event.stack.frames if event.stack else (),
        values={
            "requested": event.requested,
            "device_free": event.device_free,
            "allocated": event.allocated,
            "reserved": event.reserved,
            "missing": event.short,
            "failures": event.count,
        },
        fix=_OTHERS_FIRST if event.others > max(NAMED, event.reserved) else None,
    )


_OTHERS_FIRST = (
    "Most of the device is held by others: look in nvidia-smi for a second process (an earlier run, a notebook, an "
    "inference server), end it or take another device. What this process saves comes second."
)


def _summary(device: int, event: OutOfMemoryEvent) -> str:
    if not event.requested:
        failed = counted(event.count, "allocation")
        return f"device {device}: {failed} failed so far; {size(event.allocated)} are allocated"
    where = f" at {event.stack.site}" if event.stack and event.stack.recorded else ""
    inside = f"{size(event.free.total)} are free inside what is reserved"
    if event.pieces_known:
        inside += f", the largest piece {size(event.free.largest)}"
    more = f"; {event.count} allocations failed in all" if event.count > 1 else ""
    others = f"; others on this device hold {size(event.others)}" if event.others > NAMED else ""
    return (
        f"device {device}: {size(event.requested)} were asked for{where} with {size(event.device_free)} free on "
        f"the device; {size(event.allocated)} are allocated of {size(event.reserved)} reserved, {inside}{others}{more}"
    )
