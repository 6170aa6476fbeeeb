"""What makes the peak of memory?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, memory_symptom
from mldebug_mcp.checks.memory.devices import memory_evidence, on_worst_device
from mldebug_mcp.core.arrays import median
from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import DeviceMemory, History, MemorySnapshot
from mldebug_mcp.memory.tables import MIB, Stack, percent, size

# What memory symptoms share that judge the composition of the peak.


_TOTALS_ONLY = "only totals are given, no allocations"


@dataclass(frozen=True, slots=True)
class Share:
    """What some categories hold on a device, at the peak or the failure.

    Args:
        device: Where.
        bytes: Their bytes.
        total: Bytes of all categories.
        largest: Whether no other category holds more.
        stack: The stack that holds most of it.
    """

    device: DeviceMemory
    bytes: int
    total: int
    largest: bool
    stack: Stack

    @property
    def part(self) -> float:
        """Its share, between 0 and 1."""
        return self.bytes / self.total if self.total else 0.0

    def of(self, category: Category) -> int:
        """Return the bytes of one category on the device."""
        view = self.device.view
        return view.bytes_by_category(view.held).get(category, 0) if view is not None else 0


def largest_share(snapshot: MemorySnapshot, *categories: Category) -> Share | None:
    """Return the device on which these categories hold most; None if none holds any.

    Results of a forward pass that go before backward could use them do not count.

    Raises CannotTell where allocations are not listed, as in a text.
    """
    if snapshot.devices and all(device.view is None for device in snapshot.devices):
        raise CannotTell(_TOTALS_ONLY)
    shares: list[Share] = []
    for device in snapshot.devices:
        view = device.view
        if view is None:
            continue
        totals = view.bytes_by_category(view.held)
        which = view.held & ~view.transient & np.isin(view.category, categories)
        if mine := int(view.allocations.size[which].sum()):
            by_stack = np.bincount(view.allocations.stack[which], view.allocations.size[which])
            top = view.stacks[int(by_stack.argmax())]
            others = [held for category, held in totals.items() if category not in categories]
            shares.append(Share(device, mine, sum(totals.values()), mine >= max(others, default=0), top))
    return max(shares, key=lambda share: share.bytes, default=None)


# Activations that make the peak.


ACTIVATIONS_DOMINATE_LEAST_SHARE = 0.5
"""Of what is allocated at the peak."""
SCORES_WORTH_NAMING = 0.1
"""Of these activations that attention scores must hold to be named. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="If memory is short: a smaller micro-batch with more accumulation, shorter sequences, activation "
    "checkpointing, FlashAttention.",
    quotes=("torchtune_ckpt_tradeoff", "axolotl_oom_batch"),
    background=0.3,
)
def activations_dominate(snapshot: MemorySnapshot) -> Evidence | None:
    """Activations kept for backward, attention scores among them, are more than half of the peak.

    Common in healthy training with large batches; it says where to save.
    """
    share = largest_share(snapshot, Category.ACTIVATIONS, Category.ATTENTION_SCORES)
    if share is None or share.bytes < 16 * MIB or share.part < ACTIVATIONS_DOMINATE_LEAST_SHARE:
        return None
    scores = share.of(Category.ATTENTION_SCORES)
    of_attention = f", {size(scores)} of them attention scores" if scores >= SCORES_WORTH_NAMING * share.bytes else ""
    return memory_evidence(
        f"device {share.device.device}: activations hold {size(share.bytes)}, {percent(share.bytes, share.total)} of "
        f"what is allocated at the peak{of_attention}; most of it at {share.stack.site}",
        bytes=share.bytes,
        device=share.device.device,
        stack=share.stack.frames,
        values={"bytes": share.bytes, "share": share.part, "attention_scores": scores},
        severity="warning" if share.device.oom is not None else None,
    )


# Logits that make the peak.


LOGITS_DOMINATE_LEAST_SHARE = 0.3
"""Of the peak that logits must hold, if nothing else holds more. Chosen: by hand."""
ALONE = 0.45
"""Of the peak that logits must hold, whatever else holds more. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Compute the loss in chunks or with a fused kernel (`use_liger_kernel=True`, cut cross entropy); do not copy "
    "the logits to float32; drop positions whose label is ignored before the last layer; shorten the sequence.",
    quotes=("axolotl_oom_batch",),
    background=0.05,
)
def logits_dominate(snapshot: MemorySnapshot) -> Evidence | None:
    """Logits of vocabulary size, their float32 copy or their gradient make the peak.

    They take batch x length x vocabulary elements, several times over. Known by the loss's stack, and by what the
    forward pass makes last before the loss.
    """
    share = largest_share(snapshot, Category.LOGITS)
    if (
        share is None
        or share.bytes < 16 * MIB
        or share.part < (LOGITS_DOMINATE_LEAST_SHARE if share.largest else ALONE)
    ):
        return None
    return memory_evidence(
        f"device {share.device.device}: logits, their copies and gradients hold {size(share.bytes)}, "
        f"{percent(share.bytes, share.total)} of what is allocated at the peak; most of it at {share.stack.site}",
        bytes=share.bytes,
        device=share.device.device,
        stack=share.stack.frames,
        values={"bytes": share.bytes, "share": share.part},
        severity="warning" if share.device.oom is not None else None,
    )


# One allocation that dominates.


LARGE_ALLOCATION_LEAST_SHARE = 0.33
"""Of what is allocated at the peak. Chosen: no layer of a model of ordinary depth reaches a third."""
LARGE_ALLOCATION_LEAST_BYTES = 16 * MIB
"""Bytes that the allocation must have to be worth telling. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Compute it in chunks, in lower precision, or not at all: an attention matrix of length x length, logits of "
    "all positions, a broadcast that was not meant.",
    background=0.05,
)
def large_allocation(snapshot: MemorySnapshot) -> Evidence | None:
    """One allocation holds a third or more of all that is allocated at the peak, or is the request that failed.

    A request counts that is at least half as large as all that was allocated when it failed.
    """
    return on_worst_device(snapshot.devices, _large_allocation_on)


def _large_allocation_on(device: DeviceMemory) -> Evidence | None:
    event = device.oom
    if event is not None and event.requested >= max(
        LARGE_ALLOCATION_LEAST_BYTES, (event.allocated + event.requested) * LARGE_ALLOCATION_LEAST_SHARE
    ):
        site = event.stack.site if event.stack else "unknown"
        return memory_evidence(
            f"device {device.device}: the request that failed is {size(event.requested)}, against "
            f"{size(event.allocated)} allocated; asked for at {site}",
            bytes=event.requested,
            device=device.device,
            stack=event.stack.frames if event.stack else (),
            values={"requested": event.requested, "allocated": event.allocated},
            severity="warning",
        )
    view = device.view
    if view is None:
        raise CannotTell(_TOTALS_ONLY)
    if not view.held.any():
        return None
    held = np.flatnonzero(view.held)
    largest = int(held[view.allocations.size[held].argmax()])
    bytes_, total = int(view.allocations.size[largest]), int(view.allocations.size[held].sum())
    if bytes_ < max(LARGE_ALLOCATION_LEAST_BYTES, LARGE_ALLOCATION_LEAST_SHARE * total):
        return None
    stack = view.stacks[int(view.allocations.stack[largest])]
    what = Category(int(view.category[largest])).label.replace("_", " ")
    return memory_evidence(
        f"device {device.device}: one allocation of {size(bytes_)} ({what}) is {percent(bytes_, total)} of the "
        f"{size(total)} allocated at the peak; asked for at {stack.site}",
        bytes=bytes_,
        device=device.device,
        stack=stack.frames,
        values={"bytes": bytes_, "share": bytes_ / total},
    )


# Optimizer state that appears with the first step.


OPTIMIZER_STATE_JUMP_LEAST_SHARE = 0.05
"""Of the peak that the state must reach. Chosen: less is not worth telling."""
OPTIMIZER_STATE_JUMP_LEAST_BYTES = 4 * MIB
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
def optimizer_state_jump(snapshot: MemorySnapshot) -> Evidence | None:
    """Memory steps up at the first optimizer step, when the state is created, and stays up.

    Normal, and the usual reason why the second step fails although the first fitted.
    """
    return on_worst_device(snapshot.recorded, _optimizer_state_jump_on)


def _optimizer_state_jump_on(device: DeviceMemory) -> Evidence | None:
    history = device.history
    assert history is not None  # noqa: S101 - `recorded` devices have one
    found = _by_stack(history) if history.frames_recorded else _by_floor(history)
    if found is None:
        return None
    moment, state, frames = found
    if state < max(OPTIMIZER_STATE_JUMP_LEAST_BYTES, OPTIMIZER_STATE_JUMP_LEAST_SHARE * device.peak_allocated):
        return None
    before = int(history.replay.allocated[moment])
    step = int(history.steps.of(np.array([moment]))[0]) if len(history.steps) else -1
    where = f" in step {step}" if step >= 0 else f" at event {moment}"
    return memory_evidence(
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


# A step that takes far more memory than the others.


MIN_HISTORY_STEPS = 8
"""Steps that the history must have. Chosen: fewer show no usual peak."""
MIN_TIMES_MEDIAN_PEAK = 2.0
"""How many times the median peak above what is always held. Chosen: batches of random lengths stay below it."""
MAX_SHARE_OF_PEAK_STEPS = 0.1
"""Of the steps that may peak so. Chosen: more of them are the run's habit."""
SPLIT = 2
"""Steps that one batch may lie in: where a step begins is inferred, and may be in the middle of a pass."""
UNEVEN_STEPS_LEAST_SHARE = 0.2
"""Of the device's peak by which the step must stand out. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Look at what runs there. An evaluation: a smaller batch for it. One batch with a sequence or image far longer "
    "than the rest: cap or bucket lengths, or fill batches by tokens instead of rows.",
    quotes=("axolotl_oom_batch",),
    history=True,
    background=0.02,
)
def uneven_steps(snapshot: MemorySnapshot) -> Evidence | None:
    """One step, or few, peak far above the others, as with one long batch among short ones.

    Not this when: it is the first step, in which libraries try out kernels and state is made. It needs at least 8
    steps. The factor was chosen on simulated histories.
    """
    found = [evidence for device in snapshot.recorded if (evidence := _uneven_steps_on(device)) is not None]
    if not found and all(
        len(device_memory.history.steps) < MIN_HISTORY_STEPS
        for device_memory in snapshot.recorded
        if device_memory.history
    ):
        raise CannotTell(f"fewer than {MIN_HISTORY_STEPS} steps found in the history")
    return max(found, key=lambda evidence: evidence.allocation.bytes, default=None)


def _uneven_steps_on(device: DeviceMemory) -> Evidence | None:
    history = device.history
    if history is None or len(history.steps) < MIN_HISTORY_STEPS:
        return None
    allocated = history.replay.allocated[1:]
    peaks = np.maximum.reduceat(allocated, history.steps.starts)
    floor = int(np.minimum.reduceat(allocated, history.steps.starts)[1:].min())
    usual = median(peaks[1:])
    step = 1 + int(np.argmax(peaks[1:]))
    high = int(peaks[step])
    many = int((peaks[1:] - floor >= MIN_TIMES_MEDIAN_PEAK * (usual - floor)).sum()) > max(
        SPLIT, MAX_SHARE_OF_PEAK_STEPS * len(peaks)
    )
    if (
        many
        or high - floor < MIN_TIMES_MEDIAN_PEAK * (usual - floor)
        or high - usual < UNEVEN_STEPS_LEAST_SHARE * device.peak_allocated
    ):
        return None
    return memory_evidence(
        f"device {device.device}: step {step} peaks at {size(high)}, the others at {size(usual)} (median of "
        f"{len(peaks)} steps)",
        bytes=high - int(usual),
        device=device.device,
        values={"step": step, "peak": high, "usual": usual},
        severity="warning" if device.oom is not None and step >= len(peaks) - 1 else None,
    )
