"""Free memory inside what is reserved: how much, in which pieces, and whether a request would have fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.memory.replay import Allocations, held_segments
from mldebug_mcp.memory.tables import DeviceTables, Ints

SMALL_REQUEST = 1024 * 1024
"""Requests of at most this many bytes come from 2 MiB segments: kSmallSize in c10/cuda/CUDACachingAllocator.cpp."""
EXPANDABLE_PAGE = 20 * 1024 * 1024
"""Bytes by which expandable segments of large requests grow: kLargeBuffer."""


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Free bytes inside reserved memory.

    Args:
        total: All of them.
        split: Those in segments that tensors hold another part of: they cannot go back to the device.
        largest: The largest piece.
        pieces: How many pieces.
        partly_used: Segments that are partly used.
        private: Free bytes in private pools (CUDA graphs), which other allocations cannot use.
    """

    total: int = 0
    split: int = 0
    largest: int = 0
    pieces: int = 0
    partly_used: int = 0
    private: int = 0

    @property
    def releasable(self) -> int:
        """Bytes in segments that are wholly free: `empty_cache()` returns them."""
        return self.total - self.split


def free_at_end(device: DeviceTables) -> FreeMemory:
    """Return the free memory when the snapshot was taken."""
    blocks, segments = device.blocks, device.segments
    if not len(segments.size):
        return FreeMemory()
    free = ~blocks.live & ~blocks.pending
    in_use = np.zeros(len(segments.size), np.int64)
    np.add.at(in_use, blocks.segment[~free], blocks.size[~free])
    free_of = np.zeros(len(segments.size), np.int64)
    np.add.at(free_of, blocks.segment[free], blocks.size[free])
    partly = (in_use > 0) & (free_of > 0)
    # Of an expandable segment, whole free pages go back to the device.
    stuck = free & partly[blocks.segment] & ~(segments.expandable[blocks.segment] & (blocks.size >= EXPANDABLE_PAGE))
    return FreeMemory(
        total=int(free_of.sum()),
        split=int(blocks.size[stuck].sum()),
        largest=int(blocks.size[free].max(initial=0)),
        pieces=int(free.sum()),
        partly_used=int(partly.sum()),
        private=int(free_of[segments.pool > 0].sum()),
    )


def free_at(device: DeviceTables, allocations: Allocations, moment: int, request: int = 0) -> FreeMemory:
    """Return the free memory after the event `moment`, in the pool that serves such a request (0: in all).

    Computed from the allocations that were alive then, within the memory that was held then.
    """
    address, size = held_segments(device, moment)
    if request:
        fits = size > 2 * SMALL_REQUEST if request > SMALL_REQUEST else size <= 2 * SMALL_REQUEST
        address, size = address[fits], size[fits]
    alive = allocations.alive(moment)
    order = np.argsort(allocations.address[alive], kind="stable")
    where, bytes_ = allocations.address[alive][order], allocations.size[alive][order]
    gap, segment = _gaps(address, size, where, bytes_)
    if not len(gap):
        return FreeMemory()
    used = size - np.bincount(segment, gap, len(size)).astype(np.int64)
    in_partly_used = used[segment] > 0
    return FreeMemory(
        total=int(gap.sum()),
        split=int(gap[in_partly_used].sum()),
        largest=int(gap.max(initial=0)),
        pieces=len(gap),
        partly_used=len(np.unique(segment[in_partly_used])),
    )


def _gaps(address: Ints, size: Ints, where: Ints, bytes_: Ints) -> tuple[Ints, Ints]:
    """Return the lengths of the gaps between allocations inside segments, and the segment of each."""
    if not len(address):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    owner = np.searchsorted(address, where, side="right") - 1
    inside = (owner >= 0) & (where < address[owner] + size[owner])
    owner, where, bytes_ = owner[inside], where[inside], bytes_[inside]
    number = np.arange(len(address))
    # Each segment contributes its beginning and its end as borders; a gap runs from a border or an end to the next
    # start.
    begins = np.concatenate([where, address + size])
    ends = np.concatenate([where + bytes_, address])
    owner = np.concatenate([owner, number])
    order = np.lexsort((begins, owner))
    segment = owner[order]
    gap = begins[order] - ends[np.lexsort((ends, owner))]
    keep = gap > 0
    return gap[keep], segment[keep]
