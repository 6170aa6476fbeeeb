"""A device's history as stacked curves of few points, in which no peak is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import DeviceMemory
from mldebug_mcp.memory.tables import Ints

ORDER = (
    Category.PARAMETERS,
    Category.OPTIMIZER_STATE,
    Category.GRADIENTS,
    Category.COLLECTIVE,
    Category.ACTIVATIONS,
    Category.LOGITS,
    Category.TEMPORARY,
    Category.UNKNOWN,
)
"""From the bottom: what stays first, so that the floor of the picture is what does not change."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Memory over time. All curves have shape (points,); bytes.

    Args:
        device: Which device.
        moments: The events that the points stand for, ascending.
        held: Bytes of each category, in the order in which they are stacked.
        reserved: Bytes reserved.
        peak: The event at which most was allocated.
        peak_bytes: What was allocated then.
        failures: The events at which an allocation failed.
        steps: The events at which steps begin.
        events: How many events there are.
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


def timeline(device: DeviceMemory, points: int = 800) -> Timeline | None:
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
