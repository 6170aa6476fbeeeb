"""The history of a device, replayed.

It says how long each allocation lived, how much was held, and which free pieces there were.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, fields, replace

import numpy as np

from mldebug_mcp.memory.tables import Action, Bools, DeviceTables, Ints

# The history of a device, replayed: how long each allocation lived, and how much was held at every moment.
#
# "Allocated" is what `torch.cuda.memory_allocated()` says: bytes of the blocks that tensors hold, after rounding. It
# falls when a free is requested. A history that starts late is completed from the blocks that the snapshot shows at the
# end and from frees of what was allocated before.


MIN_BLOCK_BYTES = 512
"""Bytes that sizes are rounded up to: kMinBlockSize in c10/cuda/CUDACachingAllocator.cpp."""
_TAKEN = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_GIVEN_BACK = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
"""Actions by which the allocator takes memory from the device, and gives it back."""
MAX_WORK = 20_000_000
"""Steps spent on finding the expandable segments that mapped ranges belong to; real histories need thousands."""


@dataclass(frozen=True, slots=True)
class Allocations:
    """Every allocation known on a device. All columns have shape (allocations,).

    Args:
        address: Where.
        size: Bytes of its block.
        requested: Bytes that were asked for.
        stack: Which stack asked, 0 if unknown.
        start: Index of the event that made it; -1 if it is older than the history.
        end: Index of the event that freed it; the number of events if it is alive at the end.
    """

    address: Ints
    size: Ints
    requested: Ints
    stack: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.size)

    def alive(self, moment: int) -> Bools:
        """Return which of them are held after the event `moment`; -1 is the moment before the first."""
        return np.asarray((self.start <= moment) & (self.end > moment))


@dataclass(frozen=True, slots=True)
class Replay:
    """A device over time: bytes held (allocated) and taken (reserved) before the first event and after each.

    `unmatched` allocations were never freed in the history, and the snapshot does not show them at the end.
    """

    allocations: Allocations
    allocated: Ints
    reserved: Ints
    unmatched: int

    @property
    def peak_moment(self) -> int:
        """The event after which most was allocated; -1 if that was at the start."""
        return int(np.argmax(self.allocated)) - 1

    @property
    def peak(self) -> int:
        """Bytes allocated at most."""
        return int(self.allocated.max())


def replay(device: DeviceTables) -> Replay:
    """Replay the history of a device."""
    events = device.events
    count = len(events)
    traced, orphans = _lifetimes(device)
    traced = _with_rests(device, traced)
    live = np.flatnonzero(device.blocks.live)
    traced, known = _with_blocks(device, traced, live)
    missing = live[~np.isin(device.blocks.address[live], traced.address[traced.end == count])]
    allocations = _join(
        Allocations(
            device.blocks.address[missing],
            device.blocks.size[missing],
            device.blocks.requested[missing],
            device.blocks.stack[missing],
            np.full(len(missing), -1),
            np.full(len(missing), count),
        ),
        Allocations(
            events.address[orphans],
            _rounded(device, events.size[orphans]),
            events.size[orphans],
            np.zeros(len(orphans), np.int64),
            np.full(len(orphans), -1),
            orphans,
        ),
        traced,
    )
    return Replay(
        allocations,
        held_over_time(allocations, count),
        _reserved(device),
        int(((traced.end == count) & ~known).sum()) if len(device.blocks.size) else 0,
    )


def _rounded(device: DeviceTables, size: Ints) -> Ints:
    """Return the bytes of the blocks for these requests; the profiler's timeline knows no rounding."""
    if len(device.blocks.size) and (device.blocks.size % MIN_BLOCK_BYTES).any():
        return size
    return np.maximum(MIN_BLOCK_BYTES, -(-size // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES)


def _with_rests(device: DeviceTables, traced: Allocations) -> Allocations:
    """Add what the allocator left in the blocks of large requests: a rest of at most 1 MiB is not split off.

    The history names the bytes that were asked for. A block's rest is the gap up to the next block in its segment. So
    the layout of each segment is followed from event to event. Small requests and expandable segments always split.
    """
    large = np.flatnonzero(traced.size > SMALL_REQUEST)
    if not len(large) or device.segments.expandable.any() or not len(device.segments.size):
        return traced
    layout = _Layout(device)
    code, address, events_size = (column.tolist() for column in
                                  (device.events.action, device.events.address, device.events.size))  # fmt: skip
    size = traced.size.copy()
    row = dict(zip(traced.start[large].tolist(), large.tolist(), strict=True))
    for moment, action in enumerate(code):
        if action == Action.ALLOC:
            if moment in row:
                size[row[moment]] += layout.place(address[moment], int(size[row[moment]]))
        elif action == Action.FREE_COMPLETED:
            layout.release(address[moment])
        elif action == Action.SEGMENT_ALLOC:
            layout.add_segment(address[moment], events_size[moment])
        elif action == Action.SEGMENT_FREE:
            layout.remove_segment(address[moment])
    return replace(traced, size=size)


class _Layout:
    """Where the large blocks of a device lie, and where its segments end, at one moment of its history.

    It begins with the segments that were held and the blocks that are older than the history.
    """

    def __init__(self, device: DeviceTables) -> None:
        where, size = held_segments(device, -1)
        self._end = dict(zip(where.tolist(), (where + size).tolist(), strict=True))
        self._segments = sorted(self._end)
        self._blocks = sorted(self._older(device))

    @staticmethod
    def _older(device: DeviceTables) -> set[int]:
        """Return the addresses of the blocks older than the history: freed in it first, or never made in it."""
        events = device.events
        of_tensors = np.flatnonzero(events.action <= Action.FREE_COMPLETED)
        address, first = np.unique(events.address[of_tensors], return_index=True)
        freed_first = address[events.action[of_tensors][first] != Action.ALLOC]
        live = device.blocks.address[device.blocks.live | device.blocks.pending]
        return {*freed_first.tolist(), *live[~np.isin(live, address)].tolist()}

    def place(self, address: int, size: int) -> int:
        """Take a block, and return the bytes of its rest."""
        at = bisect_left(self._blocks, address)
        if at == len(self._blocks) or self._blocks[at] != address:
            self._blocks.insert(at, address)
        segment = bisect_right(self._segments, address) - 1
        if segment < 0:
            return 0
        end = self._end[self._segments[segment]]
        if at + 1 < len(self._blocks):
            end = min(end, self._blocks[at + 1])
        rest = end - address - size
        return rest if 0 < rest <= SMALL_REQUEST else 0

    def release(self, address: int) -> None:
        """Give a block back."""
        at = bisect_left(self._blocks, address)
        if at < len(self._blocks) and self._blocks[at] == address:
            del self._blocks[at]

    def add_segment(self, address: int, size: int) -> None:
        """Take a segment from the device."""
        if address not in self._end:
            insort(self._segments, address)
        self._end[address] = address + size

    def remove_segment(self, address: int) -> None:
        """Give a segment back to the device."""
        if self._end.pop(address, None) is not None:
            self._segments.remove(address)


def _lifetimes(device: DeviceTables) -> tuple[Allocations, Ints]:
    """Return the allocations in the history, and the frees of what is older than it.

    Sorted by address and time, an allocation is followed by its free. One that is followed by another allocation at its
    address was freed unseen before that (`skip_actions`, or a lost event).
    """
    events = device.events
    count = len(events)
    code = events.action
    of_tensors = np.flatnonzero(code <= Action.FREE_COMPLETED)
    order = of_tensors[np.argsort(events.address[of_tensors], kind="stable")]
    address, action = events.address[order], code[order]
    same_next = np.append(address[1:] == address[:-1], False) if len(order) else np.zeros(0, np.bool_)
    is_alloc = action == Action.ALLOC
    following = np.append(order[1:], count) if len(order) else order
    end = np.where(same_next, following, count)
    first_here = np.append(True, ~same_next[:-1]) if len(order) else same_next
    orphan = first_here & ~is_alloc
    # A second free of the same older block (requested, then completed) is not first at its address, so it is not
    # counted.
    starts = order[is_alloc]
    return Allocations(
        address[is_alloc],
        _rounded(device, events.size[starts]),
        events.size[starts],
        events.stack[starts],
        starts,
        end[is_alloc],
    ), order[orphan]


def _with_blocks(device: DeviceTables, traced: Allocations, live: Ints) -> tuple[Allocations, Bools]:
    """Take sizes from the blocks for what is alive at the end; also return which allocations have one."""
    count = len(device.events)
    known = np.zeros(len(traced), np.bool_)
    if not len(live) or not len(traced):
        return traced, known
    by_address = live[np.argsort(device.blocks.address[live], kind="stable")]
    addresses = device.blocks.address[by_address]
    at = np.minimum(np.searchsorted(addresses, traced.address), len(addresses) - 1)
    known = (traced.end == count) & (addresses[at] == traced.address)
    size = np.where(known, device.blocks.size[by_address[at]], traced.size)
    stack = np.where((traced.stack == 0) & known, device.blocks.stack[by_address[at]], traced.stack)
    return replace(traced, size=size, stack=stack), known


def _join(*parts: Allocations) -> Allocations:
    columns = [column.name for column in fields(Allocations)]
    return Allocations(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def held_over_time(allocations: Allocations, count: int, which: Bools | slice = slice(None)) -> Ints:
    """Return the bytes that these allocations hold before the first of so many events and after each."""
    delta = np.zeros(count + 2, np.int64)
    np.add.at(delta, allocations.start[which] + 1, allocations.size[which])
    np.subtract.at(delta, np.minimum(allocations.end[which] + 1, count + 1), allocations.size[which])
    return np.cumsum(delta[: count + 1])


def _reserved(device: DeviceTables) -> Ints:
    """Return reserved bytes over time, counted backwards from the segments at the end."""
    size = device.events.size
    taken, given = (np.isin(device.events.action, actions) for actions in (_TAKEN, _GIVEN_BACK))
    delta = np.append(0, np.where(taken, size, np.where(given, -size, 0)))
    total = np.cumsum(delta)
    start = int(device.segments.size.sum()) - int(total[-1])
    return np.asarray(np.maximum(0, total + start), np.int64)


def held_segments(device: DeviceTables, moment: int) -> tuple[Ints, Ints]:
    """Return address and size of the memory taken from the device after the event `moment`.

    The segments at the end, less what came later, plus what went later. Of an expandable segment each mapped
    range counts.
    """
    events = device.events
    action, address, size = (column[moment + 1 :] for column in (events.action, events.address, events.size))
    came, went = np.isin(action, _TAKEN), np.isin(action, _GIVEN_BACK)
    work = 0
    sizes = dict(zip(device.segments.address.tolist(), device.segments.size.tolist(), strict=True))
    for index in np.flatnonzero(came | went)[::-1].tolist():
        where, bytes_ = int(address[index]), int(size[index])
        if went[index]:
            sizes[where] = bytes_
        elif sizes.get(where) == bytes_:
            del sizes[where]
        elif work < MAX_WORK:
            _shrink(sizes, where, bytes_)
            work += len(sizes)
    rows = np.array(sorted(sizes.items()), np.int64).reshape(-1, 2).T
    return rows[0], rows[1]


def _shrink(sizes: dict[int, int], where: int, size: int) -> None:
    """Take a mapped range out of the expandable segment that holds it."""
    for address, total in sizes.items():
        if address <= where < address + total:
            sizes[address] = where - address
            if where + size < address + total:
                sizes[where + size] = address + total - where - size
            return


# Free memory inside what is reserved: how much, in which pieces, and whether a request would have fitted.


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
        split_known: Whether `split` is known: lines that a script prints give the total alone.
    """

    total: int = 0
    split: int = 0
    largest: int = 0
    pieces: int = 0
    split_known: bool = True

    @property
    def releasable(self) -> int:
        """Bytes in segments that are wholly free: `empty_cache()` returns them. 0 where that is not known."""
        return self.total - self.split if self.split_known else 0


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
