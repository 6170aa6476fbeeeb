"""What the memory symptoms judge: the numbers of each device and, where it was recorded, its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.memory.categories import Categories, Category, Sure, categorise
from mldebug_mcp.memory.replay import Allocations, FreeMemory, Replay, free_at, free_at_end, replay
from mldebug_mcp.memory.steps import Steps, find_evaluation, find_steps
from mldebug_mcp.memory.tables import Action, Bools, DeviceTables, Ints, SnapshotTables, Stack, Stacks


@dataclass(frozen=True, slots=True)
class OutOfMemoryEvent:
    """An allocation that failed. Bytes throughout.

    Args:
        requested: What was asked for.
        device_free: What the device still had.
        allocated: What tensors held.
        reserved: What the allocator held.
        free: Free memory inside what was reserved, in the pool that the request comes from; pieces unknown from text.
        moment: Index of the event; -1 without a history.
        stack: Who asked.
        count: How many allocations failed in the history.
        pieces_known: Whether `free` knows the largest piece.
        others: What other processes held, if it is given.
        own: What this process held beyond the allocator, as CUDA's context and libraries, if it is given.
        limit: What the process may take of the device, if it is given.
    """

    requested: int
    device_free: int
    allocated: int
    reserved: int
    free: FreeMemory
    moment: int = -1
    stack: Stack | None = None
    count: int = 1
    pieces_known: bool = True
    others: int = 0
    own: int = 0
    limit: int | None = None

    @property
    def limited(self) -> bool:
        """Whether the process may take less than the device has: a limit is given, or the device had enough left.

        Only a history is sure of the latter; with a text another process may have held it for a moment.
        """
        return self.limit is not None or (self.pieces_known and self.device_free >= self.requested > 0)

    @property
    def room(self) -> int:
        """Bytes that the process could still get from the device.

        None where the device had enough for the request: the process may take only a share of it
        (`set_per_process_memory_fraction`), which the allocator does not record.
        """
        return self.device_free if self.device_free < self.requested else 0

    @property
    def short(self) -> int:
        """Bytes that were missing, at most."""
        return max(0, self.requested - self.room)


class History:
    """A device's history, replayed, with what can be inferred from it."""

    def __init__(self, tables: DeviceTables, snapshot: SnapshotTables) -> None:
        self.tables = tables
        self.without_phases = snapshot.layout.startswith("JAX")
        self.stacks: Stacks = snapshot.stacks
        self.replay: Replay = replay(tables)
        here = [annotation for annotation in snapshot.annotations if annotation.device == tables.device]
        self.steps: Steps = find_steps(tables.events, self._freed, snapshot.stacks, here or snapshot.annotations)

    @property
    def allocations(self) -> Allocations:
        """Every allocation known."""
        return self.replay.allocations

    @property
    def _freed(self) -> Ints:
        """The events that allocated what was freed later."""
        return self.allocations.start[self.allocations.end < len(self.tables.events)]

    @cached_property
    def evaluation(self) -> Steps | None:
        """The batches of an evaluation that the history ends with."""
        return find_evaluation(self.tables.events, self._freed, self.stacks)

    @property
    def events(self) -> int:
        """How many events were recorded."""
        return len(self.tables.events)

    @cached_property
    def _categories(self) -> Categories:
        if self.without_phases:
            count = len(self.allocations)
            return Categories(np.zeros(count, np.int8), np.zeros(count, np.int8), np.zeros(count, np.bool_))
        return categorise(self.allocations, self.tables.events, self.stacks)

    @property
    def category(self) -> np.ndarray:
        """Each allocation's `Category`, shape (allocations,)."""
        return self._categories.category

    @property
    def sure(self) -> np.ndarray:
        """Each allocation's `Sure`, shape (allocations,)."""
        return self._categories.sure

    @property
    def transient(self) -> Bools:
        """Which allocations a forward pass makes that go before backward could use them, shape (allocations,)."""
        return self._categories.transient

    @cached_property
    def failures(self) -> Ints:
        """The events at which an allocation failed."""
        return np.flatnonzero(self.tables.events.action == Action.OOM)

    @cached_property
    def moment(self) -> int:
        """The moment to look at: when the last allocation failed, else when most was allocated."""
        return int(self.failures[-1]) if len(self.failures) else self.replay.peak_moment

    @cached_property
    def held(self) -> Bools:
        """Which allocations were held at that moment."""
        return self.allocations.alive(self.moment)

    def bytes_by_category(self, which: Bools) -> dict[Category, int]:
        """Return the bytes of these allocations by category, without the empty ones."""
        totals = np.bincount(self.category[which], self.allocations.size[which], len(Category)).astype(np.int64)
        return {Category(number): int(total) for number, total in enumerate(totals) if total}

    def surest(self, which: Bools, category: Category) -> Sure:
        """Return how sure the category is for most of the bytes of these allocations."""
        mine = which & (self.category == category)
        totals = np.bincount(self.sure[mine], self.allocations.size[mine], len(Sure))
        return Sure(int(totals.argmax()))

    @property
    def frames_recorded(self) -> bool:
        """Whether stacks were recorded."""
        return len(self.stacks) > 1


@dataclass(slots=True)
class DeviceMemory:
    """One device in numbers, from a snapshot or a text. Bytes throughout.

    Args:
        device: Its number.
        allocated: What tensors hold.
        reserved: What the allocator holds.
        requested: What was asked for, without rounding; 0 if unknown.
        peak_allocated: The most that tensors held, as far as the history or the statistics go.
        peak_reserved: The most that the allocator held.
        free: Free memory inside what is reserved.
        capacity: The device's memory, if it is given.
        oom: The last allocation that failed.
        history: The recorded history; None if there is none.
        blocks: The blocks of the snapshot, without a history.
        segments: Segments held.
        expandable: Whether the segments are expandable.
        retries: Times that the allocator emptied its cache to satisfy a request; 0 if unknown.
        others: What other processes hold.
        stated: Bytes by category at the peak, where a file tells them and no allocations.
    """

    device: int
    allocated: int = 0
    reserved: int = 0
    requested: int = 0
    peak_allocated: int = 0
    peak_reserved: int = 0
    free: FreeMemory = field(default_factory=FreeMemory)
    capacity: int | None = None
    oom: OutOfMemoryEvent | None = None
    history: History | None = None
    blocks: History | None = None
    segments: int = 0
    expandable: bool = False
    retries: int = 0
    others: int = 0
    stated: Mapping[Category, int] = field(default_factory=dict)

    @property
    def known_peaks(self) -> tuple[int | None, int | None]:
        """What tensors and the allocator held at most; None where there is neither a history nor a text with them."""
        if self.blocks is not None or not (self.peak_allocated or self.peak_reserved):
            return None, None
        return self.peak_allocated, self.peak_reserved

    @property
    def view(self) -> History | None:
        """What is known about single allocations: the history, or the blocks at the end."""
        return self.history or self.blocks


@dataclass(slots=True)
class MemorySnapshot:
    """A snapshot, or what a text says, ready to be judged."""

    path: str
    layout: str
    devices: list[DeviceMemory]
    settings: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def recorded(self) -> list[DeviceMemory]:
        """The devices with a history."""
        return [device for device in self.devices if device.history is not None]

    @property
    def from_text(self) -> bool:
        """Whether it was read from text or a timeline, which know totals only."""
        return self.layout.startswith(("text", "memory timeline"))

    @property
    def of_one_moment(self) -> bool:
        """Whether it holds by its kind what was alive at one moment, without a history."""
        return self.layout.startswith("JAX")


def snapshot_of(tables: SnapshotTables) -> MemorySnapshot:
    """Return the snapshot that these tables describe."""
    result = MemorySnapshot(tables.path, tables.layout, [], tables.settings, tables.notes)
    for device in tables.devices:
        checkpoint(f"device {device.device}: following {len(device.events):,} events")
        result.devices.append(_device(device, tables))
        view = result.devices[-1].view
        if view is not None and view.replay.unmatched:
            result.notes.append(
                f"device {device.device}: {view.replay.unmatched:,} allocation(s) of the history are neither "
                "freed in it nor among the blocks at the end; they count as held"
            )
    return result


def _device(device: DeviceTables, tables: SnapshotTables) -> DeviceMemory:
    history = History(device, tables)
    live = device.blocks.live
    allocated = int(device.blocks.size[live].sum())
    recorded = _is_history(device)
    oom = _last_failure(history) if recorded else None
    return DeviceMemory(
        device=device.device,
        allocated=allocated,
        reserved=int(device.segments.size.sum()),
        requested=int(device.blocks.requested[live].sum()),
        peak_allocated=max(history.replay.peak, allocated),
        peak_reserved=int(history.replay.reserved.max()),
        free=free_at_end(device),
        capacity=oom.reserved + oom.room if oom else None,
        oom=oom,
        history=history if recorded else None,
        blocks=None if recorded else history,
        segments=len(device.segments.size),
        expandable=bool(device.segments.expandable.any()),
    )


def _is_history(device: DeviceTables) -> bool:
    """Say whether events were recorded: `_record_memory_history("state")` keeps one alone, the last."""
    return int((device.events.action != Action.SNAPSHOT).sum()) > 1


def _last_failure(history: History) -> OutOfMemoryEvent | None:
    if not len(history.failures):
        return None
    events, moment = history.tables.events, int(history.failures[-1])
    request = int(events.size[moment])
    return OutOfMemoryEvent(
        requested=request,
        device_free=max(0, int(events.address[moment])),
        allocated=int(history.replay.allocated[moment + 1]),
        reserved=int(history.replay.reserved[moment + 1]),
        free=free_at(history.tables, history.allocations, moment, request),
        moment=moment,
        stack=history.stacks[int(events.stack[moment])],
        count=len(history.failures),
    )
