"""Autograd graphs that are kept."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.memory.snapshot import DeviceMemory, History, MemorySnapshot
from mldebug_mcp.memory.stacks import Phase
from mldebug_mcp.memory.survivors import of_forward
from mldebug_mcp.symptoms.memory.leak import worth_telling
from mldebug_mcp.symptoms.memory.registry import MemoryEvidence, memory_symptom
from mldebug_mcp.symptoms.memory.sizes import percent, size
from mldebug_mcp.symptoms.registry import CannotTell

LEAST_SITES = 3
"""Lines of the forward pass whose results stay. Chosen: a graph keeps those of nearly every layer, a list keeps one,
and a cache of keys and values two."""
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
def graph_kept_alive(snapshot: MemorySnapshot) -> MemoryEvidence | None:
    """Tensors that autograd keeps for backward stay although no backward follows.

    Two signs: tensors of several lines of the forward pass survive each step (losses accumulated as tensors), or an
    evaluation holds the activations of many layers at once (no `no_grad`).

    Not this when: only one line leaves something (`leak`); keys and values are cached in generation (two lines). The
    counts were chosen on simulated histories. Without stacks an evaluation cannot be told: tensors that go together
    without a backward may as well be gradients, cached keys and values, or a model that is deleted.
    """
    for device in snapshot.recorded:
        evidence = _left_by_steps(device) or _held_by_evaluation(device)
        if evidence is not None:
            return evidence
    if not any(device.history.frames_recorded for device in snapshot.recorded if device.history):
        raise CannotTell("no stacks recorded, by which an evaluation is known")
    return None


def _left_by_steps(device: DeviceMemory) -> MemoryEvidence | None:
    found = worth_telling(device)
    graph = [one for one in found if of_forward(one) or not one.stack.recorded]
    if len(graph) < LEAST_SITES or sum(one.total for one in graph) < 0.5 * sum(one.total for one in found):
        return None
    total, rate = sum(one.total for one in graph), sum(one.per_step for one in graph)
    return MemoryEvidence(
        f"device {device.device}: results of {len(graph)} lines of the forward pass survive each step, {size(rate)} "
        f"per step, {size(total)} so far; the largest is {graph[0].stack.site}",
        bytes=total,
        device=device.device,
        stack=graph[0].stack.frames,
        values={"sites": len(graph), "bytes_per_step": rate, "bytes_so_far": total},
    )


def _held_by_evaluation(device: DeviceMemory) -> MemoryEvidence | None:
    history = device.history
    assert history is not None  # noqa: S101 - `recorded` devices have one
    moment, held = _fullest_evaluation(history)
    if moment < 0:
        return None
    allocations = history.allocations
    total = int(allocations.size[held].sum())
    sites = np.bincount(allocations.stack[held], allocations.size[held])
    large = int((sites >= 0.02 * total).sum())
    counted = int((allocations.size[held] >= 0.02 * allocations.size[held].max()).sum())
    if large < LEAST_SITES or counted < PER_SITE * large or total < LEAST_HELD * device.peak_allocated:
        return None
    top = history.stacks[int(sites.argmax())]
    now = int(history.replay.allocated[moment + 1])
    return MemoryEvidence(
        f"device {device.device}: an evaluation holds {size(total)} of forward results at once ({counted} "
        f"tensors of {large} lines, "
        f"{percent(total, now)} of what is allocated then), as training does for backward, but no backward follows",
        bytes=total,
        device=device.device,
        stack=top.frames,
        values={"held": total, "tensors": counted, "sites": large},
    )


def _fullest_evaluation(history: History) -> tuple[int, np.ndarray]:
    """Return the moment at which forward results of an evaluation hold most, and which; -1 if none."""
    allocations = history.allocations
    evaluated = np.array([one.evaluation and one.phase in (Phase.FORWARD, Phase.LOSS) for one in history.stacks.all])
    mine = np.flatnonzero(evaluated[allocations.stack] & (allocations.start >= 0))
    if len(mine) < LEAST_SITES * PER_SITE:
        return -1, mine
    delta = np.zeros(history.events + 1, np.int64)
    np.add.at(delta, allocations.start[mine], allocations.size[mine])
    np.subtract.at(delta, allocations.end[mine], allocations.size[mine])
    moment = int(np.argmax(np.cumsum(delta[:-1])))
    return moment, mine[(allocations.start[mine] <= moment) & (allocations.end[mine] > moment)]
