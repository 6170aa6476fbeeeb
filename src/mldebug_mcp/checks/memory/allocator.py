"""Did an allocation fail?

Is free memory in pieces or kept, do devices differ, and does the snapshot hold a complete history?
"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.checks.check import Allocation, CannotTell, Evidence, memory_symptom
from mldebug_mcp.checks.memory import memory_evidence, on_worst_device
from mldebug_mcp.core.text import counted
from mldebug_mcp.knowledge.errors import lies_in_pieces
from mldebug_mcp.memory.snapshot import DeviceMemory, History, MemorySnapshot, OutOfMemoryEvent
from mldebug_mcp.memory.tables import MIB, percent, size
from mldebug_mcp.models.base import Severity

NAMED = 256 * 1024**2
"""Bytes of others on the device that are worth naming. Chosen: a CUDA context alone takes as much."""
_SMALLER = (
    "Lower the micro-batch first and accumulate more steps; then checkpoint activations, shorten sequences, or take "
    "what else would save most."
)


@memory_symptom(
    severity="error",
    fix=f"{_SMALLER} After catching the error, leave the except block before trying again: the exception keeps the "
    "tensors alive.",
    quotes=("axolotl_oom_batch", "pytorch_oom_handler"),
    background=0.0005,
)
@on_worst_device
def oom(device: DeviceMemory) -> Evidence | None:
    """An allocation failed for lack of memory.

    Seen as an oom event in the history, an out-of-memory message, or the count in `memory_summary()`.
    """
    event = device.oom
    if event is None:
        return None
    return memory_evidence(
        device,
        _summary(event),
        event.requested,
        event.stack.frames if event.stack else (),
        values={
            "requested": event.requested,
            "device_free": event.device_free,
            "allocated": event.allocated,
            "reserved": event.reserved,
            "missing": event.short,
            "failures": event.count,
        },
        fix=_fix(event),
    )


def _fix(event: OutOfMemoryEvent) -> str | None:
    if event.others > max(NAMED, event.reserved):
        return _OTHERS_FIRST
    return _LIMIT_FIRST if event.limited and event.device_free >= event.requested > 0 else None


_LIMIT_FIRST = (
    "The device has room that this process may not take: raise or drop `torch.cuda.set_per_process_memory_fraction`, "
    f"or the limit of the container. Otherwise {_SMALLER[:1].lower()}{_SMALLER[1:]}"
)
_OTHERS_FIRST = (
    "Most of the device is held by others: look in nvidia-smi for a second process (an earlier run, a notebook, an "
    "inference server), end it or take another device. What this process saves comes second."
)


def _summary(event: OutOfMemoryEvent) -> str:
    if not event.requested:
        failed = counted(event.count, "allocation")
        return f"{failed} failed so far; {size(event.allocated)} are allocated"
    where = f" at {event.stack.site}" if event.stack and event.stack.recorded else ""
    inside = f"{size(event.free.total)} are free inside what is reserved"
    if event.pieces_known:
        inside += f", the largest piece {size(event.free.largest)}"
    more = f"; {event.count} allocations failed in all" if event.count > 1 else ""
    others = f"; other processes on this device hold {size(event.others)}" if event.others > NAMED else ""
    if event.own > NAMED:
        others += f"; CUDA's context and libraries of this process hold {size(event.own)}"
    others += _limit(event)
    return (
        f"{size(event.requested)} were asked for{where} with {size(event.device_free)} free on "
        f"the device; {size(event.allocated)} are allocated of {size(event.reserved)} reserved, {inside}{others}{more}"
    )


def _limit(event: OutOfMemoryEvent) -> str:
    """Name the share of the device that the process may take; its size is between what it had and what it asked for."""
    if event.limit is not None:
        return f"; this process may take {size(event.limit)} of the device"
    if not event.limited:
        return ""
    return (
        f"; this process may not take what is free: its limit (set_per_process_memory_fraction) is between "
        f"{size(event.reserved)} and {size(event.reserved + event.requested)}"
    )


FRAGMENTATION_LEAST_SHARE = 0.25
"""Of reserved memory that is free in partly used segments, or reserved beyond the peak. Chosen: in simulated histories,
training with batches of one size stays below a tenth."""
FRAGMENTATION_LEAST_BYTES = 64 * MIB
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


@memory_symptom(
    severity="warning",
    fix="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_ALLOC_CONF from torch 2.9 on) before the "
    "process starts; pad batches to a few fixed lengths, run the longest first; do not keep small tensors that "
    "are made in the middle of a step.",
    quotes=("bekman_fragmentation",),
    background=0.001,
)
@on_worst_device
def fragmentation(device: DeviceMemory) -> Evidence | None:
    """Reserved memory is far above allocated memory, and the free blocks are too small to use.

    At a failure: what is free inside reserved memory, with what the device still has, would have sufficed for the
    request, but no piece did; or the message says that the device alone had enough left. Without one: a quarter of
    reserved memory is free in segments that tensors hold another part of, and was so at the fullest moment too; or, in
    a history without steps, more of it lies in many small pieces at the end.

    Not this when: whole segments are free (`cached_not_released`); the pieces are filled in each step.
    """
    if device.oom is not None and device.oom.requested:
        return _at_failure(device, device.oom)
    return _partly_used(device) if device.free.split_known else _beyond_peak(device)


def _at_failure(device: DeviceMemory, event: OutOfMemoryEvent) -> Evidence | None:
    # A snapshot does not tell whether the process was allowed all that the device had left; a message does.
    if not event.pieces_known and not event.limited and lies_in_pieces(event.requested, 0, 0, event.device_free):
        return memory_evidence(
            device,
            f"{size(event.device_free)} were free on the device, more than the {size(event.requested)} that failed: "
            "they were not in one piece, or another process held them at that moment",
            event.device_free,
            values={"device_free": event.device_free, "requested": event.requested},
            severity="error",
            fix="Look in nvidia-smi for a second process, also one that comes and goes; set "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the process starts. A smaller batch only hides "
            "it.",
        )
    free = event.free.total
    # The numbers of a message know no pieces.
    unused = lies_in_pieces(event.requested, event.allocated, free, 0.0)
    if not (_fits_in_pieces(event) if event.pieces_known else unused):
        return None
    largest = f", the largest piece {size(event.free.largest)}" if event.pieces_known else ""
    return _evidence(
        device,
        f"{size(free)} are free inside {size(event.reserved)} reserved{largest}, and {size(event.room)} "
        f"on the device: enough for the {size(event.requested)} that failed, but not in one piece",
        free,
        event.free.largest,
        severity="error",
    )


def _fits_in_pieces(event: OutOfMemoryEvent) -> bool:
    """Say whether a snapshot shows enough that is free, and enough of it inside what is reserved."""
    free = event.free.total
    return free + event.room >= event.requested and free >= max(
        LEAST_AT_FAILURE * event.reserved, LEAST_OF_REQUEST * event.requested
    )


def _partly_used(device: DeviceMemory) -> Evidence | None:
    free = device.free
    often = min(free.split, _never_used(device)) >= max(
        FRAGMENTATION_LEAST_BYTES, FRAGMENTATION_LEAST_SHARE * device.reserved
    )
    if not often and not _ends_in_pieces(device):
        return None
    pieces = f" in {free.pieces} pieces, the largest {size(free.largest)}" if free.pieces else ""
    return _evidence(
        device,
        f"{size(free.split)} ({percent(free.split, device.reserved)} of {size(device.reserved)} reserved) are "
        f"free{pieces}, in segments that tensors hold another part of, so they cannot go back to the device",
        free.split,
        free.largest,
    )


def _beyond_peak(device: DeviceMemory) -> Evidence | None:
    """Judge totals that a script prints: what is reserved beyond what tensors held at most was never used at once."""
    beyond = device.reserved - device.peak_allocated
    if beyond < max(FRAGMENTATION_LEAST_BYTES, FRAGMENTATION_LEAST_SHARE * device.reserved):
        return None
    if device.peak_allocated <= device.allocated:
        raise CannotTell(
            f"device {device.device}: {size(device.free.total)} of {size(device.reserved)} reserved are free; whether "
            "in pieces or in whole segments is not in the text; print torch.cuda.memory_summary(), or the peak of "
            "allocated memory too"
        )
    return _evidence(
        device,
        f"{size(beyond)} ({percent(beyond, device.reserved)} of {size(device.reserved)} reserved) are beyond the "
        f"{size(device.peak_allocated)} that tensors held at most",
        beyond,
        0,
    )


def _ends_in_pieces(device: DeviceMemory) -> bool:
    """Tell whether a history without steps ends with much free in small pieces, which nothing shows to be filled."""
    free = device.free
    if device.history is None or len(device.history.steps):
        return False
    many = free.split >= max(FRAGMENTATION_LEAST_BYTES, LEAST_WITHOUT_STEPS * device.reserved)
    return many and free.largest <= LARGEST_PIECE * free.split


def _never_used(device: DeviceMemory) -> int:
    """Return what stayed free of all that is reserved, at the fullest moment of the later half of the history.

    Between two steps much is free in pieces that the next step fills again.
    """
    if device.history is None:
        return device.reserved
    later = device.history.replay.allocated[device.history.events // 2 :]
    return device.reserved - int(later.max())


def _evidence(
    device: DeviceMemory, text: str, free: int, largest: int, *, severity: Severity | None = None
) -> Evidence:
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
    return memory_evidence(
        device,
        f"{text}{helps}",
        free,
        values={
            "free_in_reserved": free,
            "largest_free": largest,
            "reserved": device.reserved,
            "expandable": float(device.expandable),
        },
        severity=severity,
        fix=fix,
    )


# Memory that the allocator keeps while little is in use.


CACHED_NOT_RELEASED_LEAST_SHARE = 0.5
"""Of reserved memory that lies in wholly free segments."""
CACHED_NOT_RELEASED_LEAST_BYTES = 64 * MIB
"""Bytes in wholly free segments that are worth telling. Chosen: by hand."""
RECENT_HISTORY_SHARE = 0.25
"""The last part of the history, in which nothing may come near what is reserved. Chosen: training comes back to its
peak in every step; what it caches between two steps does not count."""
MAX_USED_RESERVED_SHARE = 0.6
"""Of reserved memory that tensors may hold at most in that part. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Nothing needs fixing for this process: it reuses the memory. If another process or library needs it, call "
    "`torch.cuda.empty_cache()` once at the change of phase, not in each step; it frees no tensors.",
    quotes=("pytorch_caching_allocator", "pytorch_empty_cache"),
    background=0.1,
)
@on_worst_device
def cached_not_released(device: DeviceMemory) -> Evidence | None:
    """Most of what the allocator holds is cached and wholly free, and has been for a while.

    `nvidia-smi` shows it as used. With a history, the last quarter of it must stay below 60 % of what is reserved.
    """
    known = device.free.split_known  # totals that a script prints do not tell segments from pieces
    idle = device.free.releasable if known else device.free.total
    least = max(CACHED_NOT_RELEASED_LEAST_BYTES, CACHED_NOT_RELEASED_LEAST_SHARE * device.reserved)
    if idle < least or (known and device.oom is not None):
        return None
    if known and device.history is not None:
        allocated = device.history.replay.allocated
        recent = int(np.max(allocated[-max(1, int(len(allocated) * RECENT_HISTORY_SHARE)) :]))
        if recent > MAX_USED_RESERVED_SHARE * device.reserved:
            return None
    are = "are cached in wholly free segments" if known else "are free"
    unknown = "" if known else "; whether in whole segments or in pieces is not in the text"
    return memory_evidence(
        device,
        f"{size(idle)} ({percent(idle, device.reserved)} of {size(device.reserved)} reserved) {are}, while tensors "
        f"hold {size(device.allocated)}{unknown}",
        idle,
        values={"cached": idle, "reserved": device.reserved, "allocated": device.allocated},
    )


LEAST_RATIO = 1.5
"""Fullest to emptiest device. Chosen: the first and last stage of a balanced pipeline differ by less."""
GATHERED_RATIO = 1.1
"""The same for outputs gathered by `nn.DataParallel`. Chosen: otherwise its replicas hold the same."""
DEVICE_IMBALANCE_LEAST_BYTES = 64 * MIB
"""Bytes by which the fullest device must exceed the emptiest. Chosen: by hand."""
TAKES_PART = 0.02
"""Of the fullest device's memory that a device must hold to take part. Chosen: what holds less only has a context."""


@memory_symptom(
    severity="warning",
    fix="See what the fullest device holds that the others do not: checkpoints loaded without `map_location`, "
    "`.cuda()` without a device in every rank, `nn.DataParallel` gathering outputs on device 0, `device_map` without "
    "`max_memory`, uneven stages.",
    background=0.03,
)
def device_imbalance(snapshot: MemorySnapshot) -> Evidence | None:
    """The devices that take part hold very different amounts at their peaks.

    A smaller difference is reported where `nn.DataParallel` gathers at least that much on the fullest device.

    Not this when: a device holds next to nothing, so does not take part.
    """
    amounts = {device.device: device.peak_allocated or device.peak_reserved for device in snapshot.devices}
    most = max(amounts.values(), default=0)
    part = {number: amount for number, amount in amounts.items() if amount > TAKES_PART * most}
    if len(part) < 2:
        return None
    full, empty = max(part, key=lambda number: part[number]), min(part, key=lambda number: part[number])
    gap = part[full] - part[empty]
    gathered = _gathered(next(device for device in snapshot.devices if device.device == full))
    least = GATHERED_RATIO if gathered >= DEVICE_IMBALANCE_LEAST_BYTES else LEAST_RATIO
    if part[full] < least * part[empty] or gap < DEVICE_IMBALANCE_LEAST_BYTES:
        return None
    fullness = (
        f"; {size(gathered)} of it are outputs that DataParallel gathered there"
        if gathered >= DEVICE_IMBALANCE_LEAST_BYTES
        else ""
    )
    return Evidence(
        f"device {full} holds {size(part[full])} at its peak, device {empty} {size(part[empty])}: "
        f"{part[full] / part[empty]:.1f} times as much{fullness}",
        allocation=Allocation(gap, full),
        values={f"device_{number}": float(amount) for number, amount in part.items()} | {"gathered": float(gathered)},
    )


def _gathered(device: DeviceMemory) -> int:
    view = device.view
    if view is None:
        return 0
    gathers = np.array([stack.gathers for stack in view.stacks.all])
    return int(view.allocations.size[view.held & gathers[view.allocations.stack]].sum())


@memory_symptom(
    severity="warning",
    fix="Call `torch.cuda.memory._record_memory_history(max_entries=200_000)` before the model is built, run a few "
    "steps, then `torch.cuda.memory._dump_snapshot('snapshot.pickle')`.",
    background=0.1,
)
def history_missing(snapshot: MemorySnapshot) -> Evidence | None:
    """The snapshot holds no allocation history: peaks, leaks and steps cannot be judged."""
    if snapshot.from_text:
        raise CannotTell("a text or a timeline names no allocations")
    if snapshot.of_one_moment:
        raise CannotTell("a JAX profile has no history; compare two with `against`")
    if snapshot.recorded:
        return None
    blocks = sum(device.segments for device in snapshot.devices)
    stacks = any(device.blocks is not None and device.blocks.frames_recorded for device in snapshot.devices)
    known = "with the stacks of what is allocated" if stacks else "without stacks"
    return Evidence(f"no events were recorded; only the state at the end is known ({blocks} segments, {known})")


# A history whose beginning was overwritten.


ROUND_NUMBER = 1000
"""A history of so many events, or a multiple, has filled its buffer. Chosen: `max_entries` is round."""


@memory_symptom(
    severity="info",
    fix="Record with a larger `max_entries`, or fewer steps; keep `stacks='python'` to make entries smaller.",
    history=True,
    background=0.2,
)
def history_truncated(snapshot: MemorySnapshot) -> Evidence | None:
    """The history's ring buffer wrapped: its early events are missing.

    Seen where blocks carry a stack, so were allocated while recording, but their event is gone; or where a history of
    a round number of events frees what it never allocated.

    Not this when: recording began late; then older blocks carry no stack.
    """
    for device in snapshot.recorded:
        history = device.history
        assert history is not None  # noqa: S101 - `recorded` devices have one
        lost = _lost_bytes(history)
        if lost:
            return memory_evidence(
                device,
                f"the {history.events:,} events do not hold the allocation of {size(lost)} that were allocated while "
                "recording; what was freed before the first event is unknown, so the true peak may be higher",
                lost,
                values={"events": history.events, "lost": lost},
            )
    return None


def _lost_bytes(history: History) -> int:
    allocations = history.allocations
    old = allocations.start < 0
    with_stack = old & (allocations.stack > 0)
    if with_stack.any():
        return int(allocations.size[with_stack].sum())
    full = history.events >= ROUND_NUMBER and history.events % ROUND_NUMBER == 0
    return int(allocations.size[old].sum()) if full and np.any(old & (allocations.end < history.events)) else 0
