"""A model of PyTorch's CUDA caching allocator, small enough to read, that writes the snapshots torch writes.

It follows the rules of `c10/cuda/CUDACachingAllocator.cpp`: sizes round up to 512 bytes; requests of at most 1 MiB come
from 2 MiB segments, those below 10 MiB from 20 MiB segments, larger ones from a segment of their own size rounded up to
2 MiB; the best fit wins; a block is split where the rest is worth keeping; free neighbours merge; before it gives up,
the allocator returns its wholly free segments to the device."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

MIB = 1024 * 1024
ROUND = 512
SMALL_LIMIT = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
LARGE_LIMIT = 10 * MIB
LARGE_ROUND = 2 * MIB

Frame = dict[str, Any]


class OutOfMemory(Exception):  # noqa: N818 - the name that torch gives it
    """The device has no room left."""


@dataclass
class Block:
    address: int
    size: int
    requested: int = 0
    state: str = "inactive"
    frames: list[Frame] = field(default_factory=list)


@dataclass
class Segment:
    address: int
    stream: int
    small: bool
    expandable: bool
    pool: tuple[int, int]
    blocks: list[Block]
    frames: list[Frame]

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)


class Allocator:
    """One device's allocator with its history."""

    def __init__(
        self,
        device: int = 0,
        capacity: int = 1 << 40,
        *,
        expandable: bool = False,
        max_entries: int = 0,
        beyond: int = 0,
    ) -> None:
        self.device = device
        self.capacity = capacity
        self.beyond = beyond
        """Bytes that the device has and the process may not take: set_per_process_memory_fraction."""
        self.expandable = expandable
        self.max_entries = max_entries
        self.segments: list[Segment] = []
        self.events: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.recording = True
        self.pool = (0, 0)
        self._where: dict[int, Segment] = {}
        self._clock = itertools.count(1_700_000_000_000_000, 40)
        self._next = 0x7F00_0000_0000 + device * (1 << 44)

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def requested(self) -> int:
        return sum(block.requested for segment in self.segments for block in segment.blocks)

    def size_of(self, address: int) -> int:
        """Return the bytes of the block that an allocation got."""
        return next(block.size for block in self._where[address].blocks if block.address == address)

    def _record(self, action: str, address: int, size: int, stream: int, frames: list[Frame]) -> None:
        if not self.recording:
            return
        where = "device_free" if action == "oom" else "addr"
        self.events.append(
            {
                "action": action,
                where: address,
                "size": size,
                "stream": stream,
                "compile_context": "N/A",
                "user_metadata": "",
                "time_us": next(self._clock),
                "frames": list(frames),
            }
        )

    def annotate(self, name: str, stage: str = "START") -> None:
        self.annotations.append({"name": name, "stage": stage, "device": self.device, "time_us": next(self._clock)})

    def malloc(self, size: int, frames: list[Frame], stream: int = 0) -> int:
        """Return the address of a new block; raises OutOfMemory as torch does, after an oom event."""
        rounded = max(ROUND, -(-size // ROUND) * ROUND)
        small = rounded <= SMALL_LIMIT
        found = self._best_fit(rounded, small, stream) or self._grow(rounded, small, stream, frames)
        if found is None:
            self._release_cached()
            found = self._grow(rounded, small, stream, frames)
        if found is None:
            self._record("oom", self.capacity - self.reserved + self.beyond, size, stream, frames)
            raise OutOfMemory
        segment, block = found
        self._split(segment, block, rounded)
        block.requested, block.state, block.frames = size, "active_allocated", list(frames)
        self._where[block.address] = segment
        self._record("alloc", block.address, size, stream, frames)
        return block.address

    def _best_fit(self, size: int, small: bool, stream: int) -> tuple[Segment, Block] | None:
        fits = [
            (block.size, block.address, segment, block)
            for segment in self.segments
            if segment.small == small and segment.stream == stream and segment.pool == self.pool
            for block in segment.blocks
            if block.state == "inactive" and block.size >= size
        ]
        return min(fits, key=lambda fit: fit[:2])[2:] if fits else None

    def _grow(self, size: int, small: bool, stream: int, frames: list[Frame]) -> tuple[Segment, Block] | None:
        if small:
            wanted = SMALL_SEGMENT
        elif size < LARGE_LIMIT and not self.expandable:
            wanted = LARGE_SEGMENT
        else:
            step = LARGE_SEGMENT if self.expandable else LARGE_ROUND
            wanted = -(-size // step) * step
        if self.expandable:
            return self._extend(wanted, size, small, stream, frames)
        if self.reserved + wanted > self.capacity:
            return None
        segment = Segment(self._next, stream, small, False, self.pool, [Block(self._next, wanted)], list(frames))
        self._next += wanted + LARGE_SEGMENT
        self.segments.append(segment)
        self._record("segment_alloc", segment.address, wanted, stream, frames)
        return segment, segment.blocks[0]

    def _extend(
        self,
        wanted: int,
        size: int,
        small: bool,
        stream: int,
        frames: list[Frame],
    ) -> tuple[Segment, Block] | None:
        mine = [one for one in self.segments if (one.small, one.stream, one.pool) == (small, stream, self.pool)]
        tail = mine[0].blocks[-1] if mine else None
        if tail is not None and tail.state == "inactive":
            page = SMALL_SEGMENT if small else LARGE_SEGMENT
            wanted = -(-(size - tail.size) // page) * page
        if self.reserved + wanted > self.capacity:
            return None
        if not mine:
            self._next += 1 << 40
            mine = [Segment(self._next, stream, small, True, self.pool, [], list(frames))]
            self.segments += mine
        segment = mine[0]
        end = segment.address + segment.size
        self._record("segment_map", end, wanted, stream, frames)
        if tail is not None and tail.state == "inactive":
            tail.size += wanted
        else:
            segment.blocks.append(Block(end, wanted))
        return segment, segment.blocks[-1]

    def _split(self, segment: Segment, block: Block, size: int) -> None:
        rest = block.size - size
        if rest >= ROUND if segment.small or segment.expandable else rest > SMALL_LIMIT:
            position = segment.blocks.index(block)
            segment.blocks.insert(position + 1, Block(block.address + size, rest))
            block.size = size

    def free(self, address: int, frames: list[Frame] | None = None) -> None:
        segment = self._where.pop(address)
        position = next(i for i, block in enumerate(segment.blocks) if block.address == address)
        block = segment.blocks[position]
        self._record("free_requested", address, block.requested, segment.stream, frames or [])
        self._record("free_completed", address, block.requested, segment.stream, frames or [])
        block.state, block.requested, block.frames = "inactive", 0, []
        for other in (position + 1, position):
            left, right = other - 1, other
            if left >= 0 and right < len(segment.blocks):
                one, two = segment.blocks[left], segment.blocks[right]
                if one.state == two.state == "inactive":
                    one.size += two.size
                    del segment.blocks[right]

    def empty_cache(self) -> None:
        self._release_cached()

    def _release_cached(self) -> None:
        for segment in list(self.segments):
            if segment.expandable:
                tail = segment.blocks[-1] if segment.blocks else None
                if tail is not None and tail.state == "inactive":
                    segment.blocks.pop()
                    self._record("segment_unmap", tail.address, tail.size, segment.stream, [])
            elif len(segment.blocks) == 1 and segment.blocks[0].state == "inactive":
                self.segments.remove(segment)
                self._record("segment_free", segment.address, segment.size, segment.stream, [])
        self.segments = [segment for segment in self.segments if segment.blocks]


def snapshot(*allocators: Allocator, layout: str = "2.13", frames: bool = True) -> dict[str, Any]:
    """Return what `torch.cuda.memory._snapshot()` of that torch version returns.

    Args:
        allocators: One per device.
        layout: "2.0" (block histories), "2.1", "2.3", "2.6" or "2.13".
        frames: Whether stacks were recorded.
    """
    result: dict[str, Any] = {
        "segments": [
            _segment(one, allocator.device, layout, frames) for allocator in allocators for one in allocator.segments
        ],
        "device_traces": [[_event(event, layout, frames) for event in _kept(allocator)] for allocator in allocators],
    }
    if layout != "2.0":
        result["allocator_settings"] = {
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True" if allocators[0].expandable else "",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": allocators[0].expandable,
        }
    if layout in ("2.6", "2.13"):
        result["external_annotations"] = [one for allocator in allocators for one in allocator.annotations]
    return result


def _kept(allocator: Allocator) -> list[dict[str, Any]]:
    return allocator.events[-allocator.max_entries :] if allocator.max_entries else allocator.events


_EVENT_KEYS = {
    "2.0": ("action", "addr", "device_free", "size", "stream", "frames"),
    "2.1": ("action", "addr", "device_free", "size", "stream", "frames"),
    "2.3": ("action", "addr", "device_free", "size", "stream", "time_us", "frames"),
    "2.6": ("action", "addr", "device_free", "size", "stream", "compile_context", "time_us", "frames"),
}


def _event(event: dict[str, Any], layout: str, frames: bool) -> dict[str, Any]:
    keys = _EVENT_KEYS.get(layout, tuple(event))
    kept = {key: event[key] for key in keys if key in event}
    if not frames:
        kept.pop("frames", None)
    if layout == "2.13":
        kept["pool_id"] = (0, 0)
    return kept


def _segment(segment: Segment, device: int, layout: str, frames: bool) -> dict[str, Any]:
    live = [block for block in segment.blocks if block.state == "active_allocated"]
    result = {
        "device": device,
        "address": segment.address,
        "total_size": segment.size,
        "allocated_size": sum(block.size for block in live),
        "active_size": sum(block.size for block in live),
        "requested_size": sum(block.requested for block in live),
        "stream": segment.stream,
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": segment.pool,
        "is_expandable": segment.expandable,
        "frames": list(segment.frames) if frames else [],
        "blocks": [_block(block, layout, frames) for block in segment.blocks],
    }
    if layout == "2.0":
        for name in ("is_expandable", "segment_pool_id", "frames", "requested_size"):
            del result[name]
    return result


def _block(block: Block, layout: str, frames: bool) -> dict[str, Any]:
    if layout == "2.0":
        result: dict[str, Any] = {"size": block.size, "state": block.state}
        if block.state == "active_allocated":
            history = {"addr": block.address, "real_size": block.requested}
            result["history"] = [history | ({"frames": block.frames} if frames else {})]
        return result
    return {
        "address": block.address,
        "size": block.size,
        "requested_size": block.requested,
        "state": block.state,
        "frames": block.frames if frames else [],
    }
