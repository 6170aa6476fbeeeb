"""The layout that shards of MDS and chunks of LitData share: a count, one more offset than that, then the items.

All are little-endian 32-bit whole numbers. LitData took it over from MDS; see the sources that those modules name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of

MAX_SHARD_BYTES = 4 * 1024**3
"""Bytes of a shard: its offsets count no more."""


def offsets_of_items(file: BinaryIO, count: int) -> Ints:
    """Return where each of so many items of a shard begins, and the end of the last one.

    Raises:
        ValueError: the shard holds another count, or its offsets do not ascend to its end.
    """
    size = file.seek(0, 2)
    file.seek(0)
    stated = int.from_bytes(file.read(4), "little")
    if stated != count or first_item(count) > size:
        raise ValueError("offsets")
    offsets = np.frombuffer(file.read(4 * (count + 1)), "<u4").astype(np.int64)
    if len(offsets) != count + 1 or int(offsets[-1]) != size or np.any(np.diff(offsets) < 0):
        raise ValueError("offsets")
    return offsets


def first_item(count: int) -> int:
    """Return where the first of so many items begins."""
    return 4 * (count + 2)


def values_of(data: npt.NDArray[np.uint8], offsets: Ints, sizes: Sequence[int | None]) -> list[tuple[Ints, Ints]]:
    """Return where the values of each item begin and end, one pair of arrays for each value.

    Args:
        data: The shard.
        offsets: Where its items begin, and the end of the last one.
        sizes: Bytes of each value, None where each item states them: in its first bytes, before all values.

    Raises:
        ValueError: the values do not fill their items.
        IndexError: an item is outside of the shard.
    """
    start, found = offsets[:-1], []
    for size in sizes:
        stated = size is not None
        found.append(np.full(len(start), size) if stated else _whole_numbers(data, start))
        start = start if stated else start + 4
    if np.any(start + sum(found) != offsets[1:]):
        raise ValueError("sizes")
    ends = [start + length for length in accumulate(found)]
    return list(zip([start, *ends[:-1]], ends, strict=True))


def _whole_numbers(data: npt.NDArray[np.uint8], start: Ints) -> Ints:
    """Return the four bytes at each of these places as whole numbers."""
    numbers: Ints = data[start[:, None] + np.arange(4)].view("<u4").astype(np.int64)[:, 0]
    return numbers


def joined(data: npt.NDArray[np.uint8], start: Ints, stop: Ints, dtype: str | np.dtype[np.integer]) -> Ragged:
    """Return the numbers that lie at these places as rows; raises ValueError if they are no whole ones."""
    itemsize, places = np.dtype(dtype).itemsize, zip(start.tolist(), stop.tolist(), strict=True)
    lengths = (stop - start) // itemsize
    if np.any(lengths * itemsize != stop - start) or np.any(lengths < 0):
        raise ValueError("lengths")
    rows = [data[first:last] for first, last in places]
    flat = np.concatenate(rows).view(dtype) if rows else np.empty(0, dtype)
    return Ragged(flat, offsets_of(lengths))


PIECE_BYTES = 16 * 1024**2
"""Bytes of items that one piece holds at least, unless the shard ends before."""


def pieces_of_items(file: BinaryIO, offsets: Ints) -> Iterator[tuple[npt.NDArray[np.uint8], Ints]]:
    """Yield the items of a shard some megabytes at a time: their bytes, and where each begins and the last one ends.

    The memory of the bytes is used again for the next piece.

    Args:
        file: The shard.
        offsets: Where its items begin, and the end of the last one.
    """
    memory, first = np.empty(0, np.uint8), 0
    while first < len(offsets) - 1:
        start = int(offsets[first])
        last = max(first + 1, int(np.searchsorted(offsets, start + PIECE_BYTES)))
        last = min(last, len(offsets) - 1)
        size = int(offsets[last]) - start
        memory = memory if size <= len(memory) else np.empty(size, np.uint8)
        file.seek(start)
        if file.readinto(memory[:size].data) != size:  # type: ignore[attr-defined]
            raise ValueError("offsets")
        yield memory[:size], offsets[first : last + 1] - start
        first = last
