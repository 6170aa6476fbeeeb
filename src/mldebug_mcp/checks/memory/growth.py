"""Does memory grow from step to step, and is a graph kept alive?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.checks.check import CannotTell, Evidence, memory_symptom
from mldebug_mcp.checks.memory.devices import memory_evidence
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
        f"device {device.device}: {worst.stack.site} leaves {size(worst.per_step)} behind in {worst.steps} of "
        f"{worst.of} steps, {size(worst.total)} so far{more}{end}",
        bytes=sum(grower.total for grower in here),
        device=device.device,
        stack=worst.stack.frames,
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
"""Lines of the forward pass whose results stay. Chosen: a graph keeps those of nearly every layer, a list keeps one,
and a cache of keys and values two."""
LEAST_KEPT = 0.5
"""Share of what forward passes make that must stay, by lines over steps, by tensors within an evaluation. Chosen: a
graph keeps most of it; under `no_grad` only what the program itself keeps stays, its outputs."""
SIZABLE = 0.02
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
        f"device {device.device}: results of {len(graph)} lines of the forward pass survive each step, {size(rate)} "
        f"per step, {size(total)} so far; the largest is {graph[0].stack.site}",
        bytes=total,
        device=device.device,
        stack=graph[0].stack.frames,
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
    beside = history.stacks.within(callers)
    lines = {history.stacks[number] for number in beside if largest[number] >= SIZABLE * largest.max()}
    return len(stays & lines) >= LEAST_KEPT * len(lines)


def _held_by_evaluation(device: DeviceMemory) -> Evidence | None:
    history = device.history
    assert history is not None  # noqa: S101 - `recorded` devices have one
    made = _forward_results(history, evaluation=True)
    if len(made) < LEAST_SITES * PER_SITE:
        return None
    moment, held = _fullest(history, made)
    allocations = history.allocations
    total = int(allocations.size[held].sum())
    sites = np.bincount(allocations.stack[held], allocations.size[held])
    large = int((sites >= SIZABLE * total).sum())
    least = SIZABLE * allocations.size[held].max()
    counted = int((allocations.size[held] >= least).sum())
    if large < LEAST_SITES or counted < PER_SITE * large or total < LEAST_HELD * device.peak_allocated:
        return None
    if not _most_stay(history, made[allocations.size[made] >= least], moment):
        return None
    top = history.stacks[int(sites.argmax())]
    now = int(history.replay.allocated[moment + 1])
    return memory_evidence(
        f"device {device.device}: an evaluation holds {size(total)} of forward results at once ({counted} "
        f"tensors of {large} lines, "
        f"{percent(total, now)} of what is allocated then), as training does for backward, but no backward follows",
        bytes=total,
        device=device.device,
        stack=top.frames,
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
    held = (start <= moment) & (end > moment)
    lately = (start >= np.median(start[held])) & (start <= moment)
    return bool(held[lately].mean() >= LEAST_KEPT)
