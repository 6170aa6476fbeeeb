"""What makes the peak of memory, does memory grow from step to step, and is a graph kept alive?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, known, memory_symptom
from mldebug_mcp.checks.memory import memory_evidence, on_worst_device
from mldebug_mcp.core.arrays import median
from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import (
    MIN_TIMELINE_STEPS,
    DeviceMemory,
    Grower,
    History,
    MemorySnapshot,
    growers,
    of_forward,
)
from mldebug_mcp.memory.tables import MIB, Ints, Phase, Stack, percent, size

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
            others = [size for category, size in totals.items() if category not in categories]
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
    return _of_peak(share, "activations", of_attention, attention_scores=scores)


def _of_peak(share: Share, what: str, more: str = "", **values: float) -> Evidence:
    return memory_evidence(
        share.device,
        f"{what} hold {size(share.bytes)}, {percent(share.bytes, share.total)} of what is allocated at the peak{more}; "
        f"most of it at {share.stack.site}",
        share.bytes,
        share.stack.frames,
        values={"bytes": share.bytes, "share": share.part, **values},
        severity="warning" if share.device.oom is not None else None,
    )


LOGITS_DOMINATE_LEAST_SHARE = 0.3
"""Of the peak that logits must hold, if nothing else holds more. Chosen: by hand."""
MIN_OUTRANKED_LOGITS_SHARE = 0.45
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
        or share.part < (LOGITS_DOMINATE_LEAST_SHARE if share.largest else MIN_OUTRANKED_LOGITS_SHARE)
    ):
        return None
    return _of_peak(share, "logits, their copies and gradients")


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
@on_worst_device
def large_allocation(device: DeviceMemory) -> Evidence | None:
    """One allocation holds a third or more of all that is allocated at the peak, or is the request that failed.

    A request counts that is at least half as large as all that was allocated when it failed.
    """
    event = device.oom
    if event is not None and event.requested >= max(
        LARGE_ALLOCATION_LEAST_BYTES, (event.allocated + event.requested) * LARGE_ALLOCATION_LEAST_SHARE
    ):
        site = event.stack.site if event.stack else "unknown"
        return memory_evidence(
            device,
            f"the request that failed is {size(event.requested)}, against "
            f"{size(event.allocated)} allocated; asked for at {site}",
            event.requested,
            event.stack.frames if event.stack else (),
            values={"requested": event.requested, "allocated": event.allocated},
            severity="warning",
        )
    view = known(device.view, _TOTALS_ONLY)
    if not view.held.any():
        return None
    live = np.flatnonzero(view.held)
    largest = int(live[view.allocations.size[live].argmax()])
    bytes_, total = int(view.allocations.size[largest]), int(view.allocations.size[live].sum())
    if bytes_ < max(LARGE_ALLOCATION_LEAST_BYTES, LARGE_ALLOCATION_LEAST_SHARE * total):
        return None
    stack = view.stacks[int(view.allocations.stack[largest])]
    what = Category(int(view.category[largest])).label.replace("_", " ")
    return memory_evidence(
        device,
        f"one allocation of {size(bytes_)} ({what}) is {percent(bytes_, total)} of the "
        f"{size(total)} allocated at the peak; asked for at {stack.site}",
        bytes_,
        stack.frames,
        values={"bytes": bytes_, "share": bytes_ / total},
    )


# Optimizer state that appears with the first step.


OPTIMIZER_STATE_JUMP_LEAST_SHARE = 0.05
"""Of the peak that the state must reach. Chosen: less is not worth telling."""
OPTIMIZER_STATE_JUMP_LEAST_BYTES = 4 * MIB
"""Bytes that the state must have. Chosen: less needs no plan."""
MAX_FLOOR_CHANGE_SHARE = 0.02
"""Largest relative change of the floor after the jump, where there are no stacks to tell by. Chosen: by hand."""


@memory_symptom(
    severity="info",
    fix="Plan for it: the first step does not show the peak. An 8-bit or factored optimizer, sharding (ZeRO, "
    "FSDP) or offload shrink it.",
    history=True,
    background=0.3,
)
@on_worst_device
def optimizer_state_jump(device: DeviceMemory) -> Evidence | None:
    """Memory steps up at the first optimizer step, when the state is created, and stays up.

    Normal, and the usual reason why the second step fails although the first fitted.
    """
    history = device.history
    if history is None:
        return None
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
        device,
        f"the optimizer allocates {size(state)} of state{where} and keeps it; {size(before)} "
        f"were allocated before ({percent(state, device.peak_allocated)} of the peak)",
        state,
        frames,
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
    if jump <= 0 or float(rest.max() - rest.min()) > MAX_FLOOR_CHANGE_SHARE * float(rest.max()):
        return None
    return int(starts[1]), jump, ()


# A step that takes far more memory than the others.


MIN_HISTORY_STEPS = 8
"""Steps that the history must have. Chosen: fewer show no usual peak."""
MIN_TIMES_MEDIAN_PEAK = 2.0
"""How many times the median peak above what is always held. Chosen: batches of random lengths stay below it."""
MAX_SHARE_OF_PEAK_STEPS = 0.1
"""Of the steps that may peak so. Chosen: more of them are the run's habit."""
MAX_STEPS_PER_BATCH = 2
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
        MAX_STEPS_PER_BATCH, MAX_SHARE_OF_PEAK_STEPS * len(peaks)
    )
    if (
        many
        or high - floor < MIN_TIMES_MEDIAN_PEAK * (usual - floor)
        or high - usual < UNEVEN_STEPS_LEAST_SHARE * device.peak_allocated
    ):
        return None
    return memory_evidence(
        device,
        f"step {step} peaks at {size(high)}, the others at {size(usual)} (median of {len(peaks)} steps)",
        high - int(usual),
        values={"step": step, "peak": high, "usual": usual},
        severity="warning" if device.oom is not None and step >= len(peaks) - 1 else None,
    )


# Memory that grows from step to step.


LEAST_GROWTH = MIB
MIN_SHARE_OF_PEAK_LEFT = 0.002
"""Of the peak that must be left behind over the whole history. Chosen: a list of scalars leaves less."""


@memory_symptom(
    severity="error",
    fix="Look at the line: what keeps a reference (a list, a dictionary, a closure, an attribute, the graph)? Keep "
    "numbers (`loss.item()`), or `detach()` and move to the CPU what must be kept; clear caches at the end of a step.",
    quotes=("pytorch_dont_accumulate_history", "pytorch_ref_cycles"),
    history=True,
    background=0.0005,
)
def leak(snapshot: MemorySnapshot) -> Evidence | None:
    """Memory allocated at one call site is left behind step after step and never freed.

    Not this when: it is allocated once (parameters, optimizer state), or only the last steps' allocations are alive
    (prefetching). It needs at least 4 steps, or as many batches of an evaluation that the history ends with. The
    shares were chosen on simulated histories.
    """
    found = [(device, grower) for device in snapshot.recorded for grower in worth_telling(device)]
    if not found:
        if all(len(device.history.steps) < MIN_TIMELINE_STEPS for device in snapshot.recorded if device.history):
            raise CannotTell(f"fewer than {MIN_TIMELINE_STEPS} steps found in the history")
        return None
    device, worst = max(found, key=lambda pair: pair[1].total)
    here = [grower for where, grower in found if where is device]
    rate = sum(grower.per_step for grower in here)
    left = _steps_left(device, rate)
    end = f"; at this rate the device is full after about {left:,} more steps" if left is not None else ""
    more = f" ({len(here)} such lines, {size(rate)} per step together)" if len(here) > 1 else ""
    return memory_evidence(
        device,
        f"{worst.stack.site} leaves {size(worst.per_step)} behind in {worst.steps} of "
        f"{worst.of} steps, {size(worst.total)} so far{more}{end}",
        sum(grower.total for grower in here),
        worst.stack.frames,
        values={
            "bytes_per_step": rate,
            "bytes_so_far": sum(grower.total for grower in here),
            "sites": len(here),
            **({"steps_left": left} if left is not None else {}),
        },
    )


def worth_telling(device: DeviceMemory) -> list[Grower]:
    """Return the growing sites of a device, if together they amount to something."""
    if device.history is None:
        return []
    found = growers(device.history, device.history.steps)
    if not found and device.history.evaluation is not None:
        found = growers(device.history, device.history.evaluation)
    total = sum(grower.total for grower in found)
    return found if total >= max(LEAST_GROWTH, MIN_SHARE_OF_PEAK_LEFT * device.peak_allocated) else []


def _steps_left(device: DeviceMemory, rate: int) -> int | None:
    """Return how many steps fit until the device is full, where its size is known and it is not full already."""
    if device.capacity is None or device.oom is not None or rate <= 0:
        return None
    return max(0, (device.capacity - device.peak_allocated) // rate)


# Autograd graphs that are kept.


LEAST_SITES = 3
"""Lines of the forward pass whose results stay. Chosen: a list keeps one, a cache of keys and values two."""
LEAST_KEPT = 0.5
"""Share of what forward passes make that must stay, by lines over steps, by tensors within an evaluation. Chosen: a
graph keeps most of it; under `no_grad` only what the program itself keeps stays, its outputs."""
MIN_COUNTED_SIZE_SHARE = 0.02
"""Of the largest, that a tensor or a line must hold to be counted. Chosen: less is a mask, a statistic or a scalar."""
LEAST_HELD = 0.1
"""Of the peak that an evaluation's kept tensors must reach. Chosen: by hand."""
PER_SITE = 3
"""Tensors per line that an evaluation must hold at once. Chosen: several layers or batches."""


@memory_symptom(
    severity="error",
    fix="Evaluate under `torch.inference_mode()` or `torch.no_grad()`; accumulate `loss.item()` or `loss.detach()`, "
    "never the loss itself; do not keep outputs that require gradients.",
    quotes=("pytorch_dont_accumulate_history",),
    history=True,
    background=0.0005,
)
def graph_kept_alive(snapshot: MemorySnapshot) -> Evidence | None:
    """Tensors that autograd keeps for backward stay although no backward follows.

    Two signs: tensors of several lines of the forward pass survive each step (losses accumulated as tensors); or an
    evaluation holds the activations of many layers at once (no `no_grad`).

    Not this when: only one line leaves something (`leak`); keys and values are cached in generation (two lines); most
    of what a pass makes goes while the pass runs, as under `no_grad`, and only its outputs are kept (`leak`). The
    counts were chosen on simulated histories. Without stacks an evaluation is not recognised: tensors that go together
    without a backward may as well be gradients, cached keys and values, or a model that is deleted.
    """
    for device in snapshot.recorded:
        evidence = _left_by_steps(device) or _held_by_evaluation(device)
        if evidence is not None:
            return evidence
    if not any(device.history.frames_recorded for device in snapshot.recorded if device.history):
        raise CannotTell("no stacks recorded, by which an evaluation is known")
    return None


def _left_by_steps(device: DeviceMemory) -> Evidence | None:
    found = worth_telling(device)
    graph = [grower for grower in found if of_forward(grower) or not grower.stack.recorded]
    if len(graph) < LEAST_SITES or sum(grower.total for grower in graph) < 0.5 * sum(grower.total for grower in found):
        return None
    if not _most_lines_stay(device, graph):
        return None
    total, rate = sum(grower.total for grower in graph), sum(grower.per_step for grower in graph)
    return memory_evidence(
        device,
        f"results of {len(graph)} lines of the forward pass survive each step, {size(rate)} "
        f"per step, {size(total)} so far; the largest is {graph[0].stack.site}",
        total,
        graph[0].stack.frames,
        values={"sites": len(graph), "bytes_per_step": rate, "bytes_so_far": total},
    )


def _most_lines_stay(device: DeviceMemory, graph: list[Grower]) -> bool:
    """Tell whether most lines of the forward passes leave something; true where no stacks tell lines apart.

    Of the passes that are made where those are that leave something: the training around them frees its own.
    """
    history = device.history
    assert history is not None  # noqa: S101 - `recorded` devices have one
    if not all(grower.stack.recorded for grower in graph):
        return True
    stays = {grower.stack for grower in graph}
    evaluation = all(stay.evaluation for stay in stays)
    made = _forward_results(history, evaluation=evaluation)
    largest = np.zeros(len(history.stacks), np.int64)
    np.maximum.at(largest, history.allocations.stack[made], history.allocations.size[made])
    callers = history.stacks.shared(number for number, stack in enumerate(history.stacks.all) if stack in stays)
    by_caller = history.stacks.within(callers)
    lines = {
        history.stacks[number] for number in by_caller if largest[number] >= MIN_COUNTED_SIZE_SHARE * largest.max()
    }
    return len(stays & lines) >= LEAST_KEPT * len(lines)


def _held_by_evaluation(device: DeviceMemory) -> Evidence | None:
    history = device.history
    assert history is not None  # noqa: S101 - `recorded` devices have one
    made = _forward_results(history, evaluation=True)
    if len(made) < LEAST_SITES * PER_SITE:
        return None
    moment, live_bytes = _fullest(history, made)
    allocations = history.allocations
    total = int(allocations.size[live_bytes].sum())
    sites = np.bincount(allocations.stack[live_bytes], allocations.size[live_bytes])
    large = int((sites >= MIN_COUNTED_SIZE_SHARE * total).sum())
    least = MIN_COUNTED_SIZE_SHARE * allocations.size[live_bytes].max()
    counted = int((allocations.size[live_bytes] >= least).sum())
    if large < LEAST_SITES or counted < PER_SITE * large or total < LEAST_HELD * device.peak_allocated:
        return None
    if not _most_stay(history, made[allocations.size[made] >= least], moment):
        return None
    top = history.stacks[int(sites.argmax())]
    now = int(history.replay.allocated[moment + 1])
    return memory_evidence(
        device,
        f"an evaluation holds {size(total)} of forward results at once ({counted} "
        f"tensors of {large} lines, "
        f"{percent(total, now)} of what is allocated then), as training does for backward, but no backward follows",
        total,
        top.frames,
        values={"held": total, "tensors": counted, "sites": large},
    )


def _forward_results(history: History, *, evaluation: bool) -> Ints:
    """Return the recorded allocations of forward passes: of evaluations alone, or of all else too."""

    def is_forward(stack: Stack) -> bool:
        return stack.phase in (Phase.FORWARD, Phase.LOSS) and (stack.evaluation or not evaluation)

    forward = np.array([is_forward(stack) for stack in history.stacks.all])
    return np.flatnonzero(forward[history.allocations.stack] & (history.allocations.start >= 0))


def _fullest(history: History, made: Ints) -> tuple[int, Ints]:
    """Return the moment at which these allocations hold most, and which are held then."""
    allocations = history.allocations
    delta = np.zeros(history.events + 1, np.int64)
    np.add.at(delta, allocations.start[made], allocations.size[made])
    np.subtract.at(delta, allocations.end[made], allocations.size[made])
    moment = int(np.argmax(np.cumsum(delta[:-1])))
    return moment, made[(allocations.start[made] <= moment) & (allocations.end[made] > moment)]


def _most_stay(history: History, made: Ints, moment: int) -> bool:
    """Tell whether most of what was made lately is still held.

    Lately: since half of what is held was made, which lies in the last passes where a graph holds it, however many
    outputs were kept before.
    """
    start, end = history.allocations.start[made], history.allocations.end[made]
    is_live = (start <= moment) & (end > moment)
    lately = (start >= np.median(start[is_live])) & (start <= moment)
    return bool(is_live[lately].mean() >= LEAST_KEPT)
