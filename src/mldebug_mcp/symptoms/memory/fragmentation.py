"""Free memory in pieces too small to use."""

from __future__ import annotations

from mldebug_mcp.memory.sizes import MIB, percent, size
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot, OutOfMemoryEvent
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom, on_worst_device

LEAST_SHARE = 0.25
"""Of reserved memory that is free in partly used segments, or reserved beyond the peak. Chosen: in simulated histories,
training with batches of one size stays below a tenth."""
LEAST_BYTES = 64 * MIB
"""Bytes that must be free so. Chosen: a few segments of 20 MiB, partly used, are normal."""
LEAST_AT_FAILURE = 0.07
"""Of reserved memory that is free at a failure; the message's own advice speaks of "large". Chosen: by hand."""
LEAST_OF_REQUEST = 0.25
"""Of the request that is free at a failure. Chosen: with less, what the device lacks matters more than the pieces."""

LEAST_WITHOUT_STEPS = 0.3
"""Of reserved memory that is free in pieces, where the history shows no steps that would fill them again. Chosen: after
one step, or in the middle of one, a quarter at most is free so in simulated histories."""
LARGEST_PIECE = 0.125
"""Of what is free in pieces there, the most that the largest may have. Chosen: on the same simulated histories."""

ROOM = 64 * MIB
"""Bytes beyond the request that the device must have had left. Chosen: the allocator asks for more than a tensor needs,
in units of 2 and of 20 MiB."""


@memory_symptom(
    severity="warning",
    fix="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_ALLOC_CONF from torch 2.9 on) before the "
    "process starts; pad batches to a few fixed lengths, run the longest first, and do not keep small tensors that "
    "are made in the middle of a step.",
    quotes=("bekman_fragmentation",),
    background=0.001,
)
def fragmentation(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """Reserved memory is far above allocated memory, and the free blocks are too small to use.

    At a failure: what is free inside reserved memory, with what the device still has, would have sufficed for the
    request, but no piece did; or the message says that the device alone had enough left. Without one: a quarter of
    reserved memory is free in segments that tensors hold another part of, and was so at the fullest moment too; or, in
    a history without steps, more of it lies in many small pieces at the end.

    Not this when: whole segments are free (`cached_not_released`); the pieces are filled in each step.
    """
    return on_worst_device(snapshot.devices, _on)


def _on(device: DeviceMemory) -> MemoryEvidence | None:
    if device.oom is not None and device.oom.requested:
        return _at_failure(device, device.oom)
    return _partly_used(device)


def _at_failure(device: DeviceMemory, event: OutOfMemoryEvent) -> MemoryEvidence | None:
    # A snapshot does not tell whether the process was allowed all that the device had left; a message does.
    if event.device_free >= event.requested + ROOM and not event.limited and not event.pieces_known:
        return _although_free(device, event)
    free = event.free.total
    fits_in_pieces = free + event.room >= event.requested
    if not fits_in_pieces or free < max(LEAST_AT_FAILURE * event.reserved, LEAST_OF_REQUEST * event.requested):
        return None
    largest = f", the largest piece {size(event.free.largest)}" if event.pieces_known else ""
    return _evidence(
        device,
        f"{size(free)} are free inside {size(event.reserved)} reserved{largest}, and {size(event.room)} "
        f"on the device: enough for the {size(event.requested)} that failed, but not in one piece",
        free,
        event.free.largest,
        severity_is_error=True,
    )


def _although_free(device: DeviceMemory, event: OutOfMemoryEvent) -> MemoryEvidence:
    return MemoryEvidence(
        f"device {device.device}: {size(event.device_free)} were free on the device, more than the "
        f"{size(event.requested)} that failed: they were not in one piece, or another process held them at that moment",
        bytes=event.device_free,
        device=device.device,
        values={"device_free": event.device_free, "requested": event.requested},
        severity="error",
        fix="Look in nvidia-smi for a second process, also one that comes and goes; set "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the process starts. A smaller batch only hides it.",
    )


def _partly_used(device: DeviceMemory) -> MemoryEvidence | None:
    free = device.free
    often = min(free.split, _never_used(device)) >= max(LEAST_BYTES, LEAST_SHARE * device.reserved)
    if not often and not _ends_in_pieces(device):
        return None
    pieces = f" in {free.pieces} pieces, the largest {size(free.largest)}" if free.pieces else ""
    return _evidence(
        device,
        f"{size(free.split)} ({percent(free.split, device.reserved)} of {size(device.reserved)} reserved) are "
        f"free{pieces}, in segments that tensors hold another part of, so they cannot go back to the device",
        free.split,
        free.largest,
        severity_is_error=False,
    )


def _ends_in_pieces(device: DeviceMemory) -> bool:
    """Tell whether a history without steps ends with much free in small pieces, which nothing shows to be filled."""
    free = device.free
    if device.history is None or len(device.history.steps):
        return False
    many = free.split >= max(LEAST_BYTES, LEAST_WITHOUT_STEPS * device.reserved)
    return many and free.largest <= LARGEST_PIECE * free.split


def _never_used(device: DeviceMemory) -> int:
    """Return what stayed free of all that is reserved, at the fullest moment of the later half of the history.

    Between two steps much is free in pieces that the next step fills again.
    """
    if device.history is None:
        return device.reserved
    later = device.history.replay.allocated[device.history.events // 2 :]
    return device.reserved - int(later.max())


def _evidence(device: DeviceMemory, text: str, free: int, largest: int, *, severity_is_error: bool) -> MemoryEvidence:
    helps = (
        "; the segments are expandable already"
        if device.expandable
        else "; expandable segments would have joined the pieces"
    )
    fix = (
        "The segments are expandable, so pieces are pinned by small tensors that live on between large ones: allocate "
        "what stays before what goes, and keep the batch shapes fixed."
        if device.expandable
        else None
    )
    return MemoryEvidence(
        f"device {device.device}: {text}{helps}",
        bytes=free,
        device=device.device,
        values={
            "free_in_reserved": free,
            "largest_free": largest,
            "reserved": device.reserved,
            "expandable": float(device.expandable),
        },
        severity="error" if severity_is_error else None,
        fix=fix,
    )
