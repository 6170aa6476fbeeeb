"""Two snapshots, compared: which totals, categories and call sites changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from mldebug_mcp.memory.categories import Category
from mldebug_mcp.memory.snapshot import DeviceMemory, MemorySnapshot
from mldebug_mcp.models.memory import MemoryChange, MemoryComparison

SHOWN = 10


def compare(snapshot: MemorySnapshot, other: MemorySnapshot) -> MemoryComparison:
    """Return what changed from `other` to `snapshot`, at the peak or the failure of each."""
    before, after = _by_site(other), _by_site(snapshot)
    changes = [
        MemoryChange(
            site=site,
            category=category,
            before_bytes=before[site, category],
            after_bytes=after[site, category],
            change_bytes=after[site, category] - before[site, category],
        )
        for site, category in {**before, **after}
    ]
    categories: Counter[str] = Counter()
    for change in changes:
        categories[change.category] += change.change_bytes
    return MemoryComparison(
        other=other.path,
        allocated_change_bytes=_change(snapshot, other, lambda one: one.allocated),
        reserved_change_bytes=_change(snapshot, other, lambda one: one.reserved),
        peak_change_bytes=_change(snapshot, other, lambda one: one.peak_allocated),
        categories={name: change for name, change in categories.most_common() if change},
        sites=sorted((one for one in changes if one.change_bytes), key=lambda one: -abs(one.change_bytes))[:SHOWN],
    )


def _change(snapshot: MemorySnapshot, other: MemorySnapshot, what: Callable[[DeviceMemory], int]) -> int:
    return sum(map(what, snapshot.devices)) - sum(map(what, other.devices))


def _by_site(snapshot: MemorySnapshot) -> Counter[tuple[str, str]]:
    """Return the bytes held by site and category. A site without line numbers joins versions of a file."""
    totals: Counter[tuple[str, str]] = Counter()
    for device in snapshot.devices:
        view = device.view
        if view is None:
            continue
        held = view.held
        for stack, category, size in zip(
            view.allocations.stack[held].tolist(),
            view.category[held].tolist(),
            view.allocations.size[held].tolist(),
            strict=True,
        ):
            totals[view.stacks[stack].site, Category(category).label] += size
    return totals
