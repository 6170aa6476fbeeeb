"""Each device's part of the answer: totals, categories, steps, and the call sites that hold most."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.errors import UnknownIdError
from mldebug_mcp.memory.categories import Category, Sure
from mldebug_mcp.memory.snapshot import DeviceMemory, History, MemorySnapshot
from mldebug_mcp.memory.tables import Ints
from mldebug_mcp.models.memory import CallSite, CategoryBytes, DeviceSummary, StepMemory
from mldebug_mcp.text import shorten

MAX_STEPS = 200
FOCUSED = 20

_HOW = {
    Category.PARAMETERS: {
        Sure.HIGH: "allocated while the model was built, moved or loaded, and kept",
        Sure.LOW: "older than the history and never freed; optimizer state may be among it",
    },
    Category.GRADIENTS: {Sure.MEDIUM: "allocated in backward and kept beyond its end"},
    Category.OPTIMIZER_STATE: {Sure.HIGH: "allocated by the optimizer and kept beyond the step"},
    Category.ACTIVATIONS: {
        Sure.HIGH: "allocated in the forward pass and alive when backward runs",
        Sure.MEDIUM: "allocated in the forward pass and kept through what follows",
    },
    Category.LOGITS: {Sure.HIGH: "allocated by the loss", Sure.MEDIUM: "as large as what the loss allocates"},
    Category.TEMPORARY: {Sure.MEDIUM: "freed before anything could depend on it"},
    Category.COLLECTIVE: {Sure.HIGH: "allocated inside torch.distributed or NCCL"},
}


def device_summary(device: DeviceMemory) -> DeviceSummary:
    """Return a device's numbers, categories and steps."""
    history, view = device.history, device.view
    moment = history.replay.peak_moment if history else None
    return DeviceSummary(
        device=device.device,
        allocated_bytes=device.allocated,
        reserved_bytes=device.reserved,
        peak_allocated_bytes=device.peak_allocated,
        peak_reserved_bytes=device.peak_reserved,
        peak_event=moment,
        peak_step=_step_of(history, moment) if history and moment is not None else None,
        capacity_bytes=device.capacity,
        free_split_bytes=device.free.split,
        largest_free_bytes=device.free.largest,
        moment=_moment(device),
        categories=_categories(view) if view else [],
        steps=_steps(history) if history else [],
        steps_found=len(history.steps) if history else 0,
        steps_from=history.steps.how if history else "",
    )


def _moment(device: DeviceMemory) -> str:
    if device.history is None:
        return "when the snapshot was taken" if device.blocks else ""
    if len(device.history.failures):
        return f"when the allocation failed (event {device.history.moment:,} of {device.history.events:,})"
    return f"at the peak (event {device.history.moment:,} of {device.history.events:,})"


def _step_of(history: History, moment: int) -> int | None:
    step = int(history.steps.of(np.array([moment]))[0]) if len(history.steps) else -1
    return step if step >= 0 else None


def _categories(view: History) -> list[CategoryBytes]:
    totals = view.bytes_by_category(view.held)
    everything = sum(totals.values())
    found = []
    for category, held in sorted(totals.items(), key=lambda one: -one[1]):
        sure = view.surest(view.held, category)
        how = "torch's profiler wrote it" if sure is Sure.CERTAIN else _HOW.get(category, {}).get(sure, "not known")
        found.append(
            CategoryBytes(category=category.label, bytes=held, share=held / everything, sure=sure.name.lower(), how=how)
        )
    return found


def _steps(history: History) -> list[StepMemory]:
    starts = history.steps.starts
    if not len(starts):
        return []
    allocated, reserved = history.replay.allocated[1:], history.replay.reserved[1:]
    peaks, held = np.maximum.reduceat(allocated, starts), np.maximum.reduceat(reserved, starts)
    ends = allocated[np.append(starts[1:], len(allocated)) - 1]
    return [
        StepMemory(
            step=number, peak_bytes=int(peaks[number]), end_bytes=int(ends[number]), reserved_bytes=int(held[number])
        )
        for number in np.unique(np.linspace(0, len(starts) - 1, min(len(starts), MAX_STEPS)).astype(int)).tolist()
    ]


def call_sites(snapshot: MemorySnapshot, limit: int, category: Category | None = None) -> list[CallSite]:
    """Return the call sites that hold most at the peak or the failure, over all devices."""
    found = [site for device in snapshot.devices for site in _sites(device, category)]
    return sorted(found, key=lambda one: -one.bytes)[:limit]


def _sites(device: DeviceMemory, only: Category | None) -> list[CallSite]:
    view = device.view
    if view is None:
        return []
    held = np.flatnonzero(view.held if only is None else view.held & (view.category == only))
    stack = view.allocations.stack[held]
    key = stack * len(Category) + view.category[held]
    order = np.argsort(key, kind="stable")
    groups = np.split(held[order], np.flatnonzero(np.diff(key[order])) + 1) if len(held) else []
    return [_site(device.device, view, group) for group in groups]


def _site(device: int, view: History, group: Ints) -> CallSite:
    number = int(view.allocations.stack[group[0]])
    stack, category = view.stacks[number], Category(int(view.category[group[0]]))
    return CallSite(
        id=f"d{device}s{number}.{category.label}",
        site=stack.site,
        caller=stack.caller,
        category=category.label,
        bytes=int(view.allocations.size[group].sum()),
        count=len(group),
        device=device,
        stack=list(stack.frames[:4]),
    )


def focused(snapshot: MemorySnapshot, focus: str) -> list[CallSite]:
    """Return the call sites that a focus names, with whole stacks, sizes and lifetimes.

    Raises:
        UnknownIdError: it names nothing here.
    """
    name = focus.strip().lower()
    if name.upper() in Category.__members__:
        return call_sites(snapshot, FOCUSED, Category[name.upper()])
    for device in snapshot.devices:
        view = device.view
        for site in _sites(device, None):
            if view is not None and site.id == name:
                return [_detailed(view, site)]
    categories = ", ".join(one.label for one in Category)
    raise UnknownIdError(
        f"no call site {shorten(focus, 60)!r} in this snapshot; give an id of top_allocations, or a category: "
        f"{categories}"
    )


def _detailed(view: History, site: CallSite) -> CallSite:
    number = int(site.id.partition("s")[2].partition(".")[0])
    allocations = view.allocations
    everything = np.flatnonzero((allocations.stack == number) & (view.category == Category[site.category.upper()]))
    sizes, ended = allocations.size[everything], allocations.end[everything] < view.events
    life = (allocations.end - allocations.start)[everything][ended]
    return site.model_copy(
        update={
            "stack": list(view.stacks[number].frames),
            "details": {
                "allocations_in_all": len(everything),
                "never_freed": int((~ended).sum()),
                "bytes_median": float(np.median(sizes)),
                "bytes_largest": int(sizes.max()),
                "life_in_events_median": float(np.median(life)) if len(life) else float("nan"),
            },
        }
    )
