"""What memory symptoms share that judge the composition of the peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.memory.stacks import Stack


@dataclass(frozen=True, slots=True)
class Share:
    """A category on a device, at the peak or the failure.

    Args:
        device: Where.
        bytes: Its bytes.
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


def largest_share(snapshot: MemorySnapshot, category: Category) -> Share | None:
    """Return the device on which this category holds most; None if none holds any."""
    shares: list[Share] = []
    for device in snapshot.devices:
        view = device.view
        if view is None:
            continue
        totals = view.bytes_by_category(view.held)
        if mine := totals.get(category, 0):
            which = view.held & (view.category == category)
            by_stack = np.bincount(view.allocations.stack[which], view.allocations.size[which])
            top = view.stacks[int(by_stack.argmax())]
            shares.append(Share(device, mine, sum(totals.values()), mine == max(totals.values()), top))
    return max(shares, key=lambda one: one.bytes, default=None)
