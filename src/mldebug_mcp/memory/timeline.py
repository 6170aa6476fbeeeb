"""A device's history as stacked curves of few points, and allocations that survive step after step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import DeviceMemory, History
from mldebug_mcp.memory.steps import Steps
from mldebug_mcp.memory.tables import Ints, Phase, Stack

ORDER = (
    Category.PARAMETERS,
    Category.OPTIMIZER_STATE,
    Category.GRADIENTS,
    Category.COLLECTIVE,
    Category.WORKSPACE,
    Category.INPUTS,
    Category.ACTIVATIONS,
    Category.ATTENTION_SCORES,
    Category.LOGITS,
    Category.OPTIMIZER_TEMPORARY,
    Category.TEMPORARY,
    Category.UNKNOWN,
)
"""From the bottom: what stays first, so that the floor of the picture is what does not change."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Memory over time. All curves have shape (points,); bytes.

    `held` are the bytes of each category, in the order in which they are stacked. Moments, peak, failures and steps are
    indices of events.
    """

    device: int
    moments: Ints
    held: Mapping[Category, Ints]
    reserved: Ints
    peak: int
    peak_bytes: int
    failures: Ints
    steps: Ints
    events: int


def timeline_of(device: DeviceMemory, points: int = 800) -> Timeline | None:
    """Return a device's timeline, or None without a history.

    Of the events that fall on one point, the one with most allocated stands for all, so that a peak of one event is
    seen.
    """
    history = device.history
    if history is None:
        return None
    allocated, count = history.replay.allocated, history.events
    edges = np.unique(np.linspace(0, count + 1, min(points, count + 1) + 1).astype(np.int64))
    at = np.array([a + int(np.argmax(allocated[a:b])) for a, b in pairwise(edges)], np.int64)
    held = {}
    for category in ORDER:
        mine = history.category == category
        if mine.any():
            delta = np.zeros(count + 2, np.int64)
            np.add.at(delta, history.allocations.start[mine] + 1, history.allocations.size[mine])
            np.subtract.at(
                delta, np.minimum(history.allocations.end[mine] + 1, count + 1), history.allocations.size[mine]
            )
            held[category] = np.cumsum(delta)[at]
    return Timeline(
        device=device.device,
        moments=at,
        held=held,
        reserved=history.replay.reserved[at],
        peak=history.replay.peak_moment,
        peak_bytes=history.replay.peak,
        failures=history.failures,
        steps=history.steps.starts,
        events=count,
    )


MIN_TIMELINE_STEPS = 4
LEAST_SHARE = 0.7
"""Of the steps between the first and the last, in which a site must have left something. Chosen: a prefetch or a
buffer that is swapped leaves something in the last steps only, optimizer state in the first only."""


EVEN = 0.1
"""Relative difference of the distances between copies that are made every so many steps. Chosen: steps are counted."""


@dataclass(frozen=True, slots=True)
class Grower:
    """A call site whose memory grows.

    `per_step` is the median of what is left per step, or the mean where not each step leaves something. `steps` left
    something, `of` so many.
    """

    stack: Stack
    size: int
    per_step: int
    total: int
    steps: int
    of: int


def growers(history: History, steps: Steps) -> list[Grower]:
    """Return the call sites that leave something from most steps, largest growth first.

    Sites without a stack are distinguished by size.
    """
    if len(steps) < MIN_TIMELINE_STEPS:
        return []
    moment = history.events - 1 if not len(history.failures) else int(history.failures[-1])
    allocations = history.allocations
    left = np.flatnonzero(allocations.alive(moment) & (allocations.start >= int(steps.starts[0])))
    key = np.where(allocations.stack[left] > 0, allocations.stack[left], -allocations.size[left])
    found: list[Grower] = []
    order = np.argsort(key, kind="stable")
    for group in np.split(left[order], np.flatnonzero(np.diff(key[order])) + 1):
        if len(group) >= MIN_TIMELINE_STEPS - 1:
            grower = _grower(history, steps, group)
            if grower is not None:
                found.append(grower)
    return sorted(found, key=lambda site: -site.total)


def _grower(history: History, steps: Steps, group: Ints) -> Grower | None:
    allocations = history.allocations
    count = len(steps)
    per_step = np.bincount(steps.of(allocations.start[group]), allocations.size[group], count)
    # Neither the first step (state is created there) nor the last two (still in use) say anything.
    inner = per_step[1 : count - 2] if count >= 6 else per_step[1 : count - 1]
    some = inner > 0
    each_step = (
        len(inner) >= 2 and some.mean() >= LEAST_SHARE and some[: max(1, len(some) // 2)].mean() >= LEAST_SHARE / 2
    )
    if not each_step and not _at_even_distances(per_step):
        return None
    total = int(allocations.size[group].sum())
    # Most of it must have come after the first step: state that is created once and topped up does not count.
    if per_step[0] > total / 2 and count > 3:
        return None
    return Grower(
        stack=history.stacks[int(allocations.stack[group[0]])],
        size=int(np.median(allocations.size[group])),
        per_step=int(np.median(inner)) if each_step else int(per_step.mean()),
        total=total,
        steps=int((per_step > 0).sum()),
        of=count,
    )


def _at_even_distances(per_step: Ints) -> bool:
    """Tell whether every so many steps leave something, from the beginning to the end: a copy every second step.

    A ring of the last few copies holds nothing of the first ones.
    """
    at = np.flatnonzero(per_step > 0)
    if len(at) < MIN_TIMELINE_STEPS:
        return False
    gaps = np.diff(at)
    period = int(np.median(gaps))
    even = bool((np.abs(gaps - period) <= max(1, EVEN * period)).all())
    return even and at[0] <= period and at[-1] >= len(per_step) - 1 - 2 * period


def of_forward(grower: Grower) -> bool:
    """Tell whether a site allocates in a forward pass or in the loss."""
    return grower.stack.phase in (Phase.FORWARD, Phase.LOSS)
