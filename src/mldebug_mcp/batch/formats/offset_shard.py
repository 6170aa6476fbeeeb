"""The layout that shards of MDS and chunks of LitData share: a count, one more offset than that, then the items.

All are little-endian 32-bit whole numbers. LitData took it over from MDS; see the sources that those modules name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from mldebug_mcp.batch.formats.files import whole_numbers
from mldebug_mcp.batch.formats.tf_example import Bytes
from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.core.access import matching
from mldebug_mcp.core.text import counted, some_of

MAX_SHARD_BYTES = 4 * 1024**3
"""Bytes of a shard: its offsets count no more."""


def offsets_of_items(data: Bytes, count: int) -> Ints:
    """Return where each of so many items of a shard begins, and the end of the last one.

    Raises:
        ValueError: the shard holds another count, or its offsets do not ascend to its end.
    """
    stated = int.from_bytes(data[:4].tobytes(), "little")
    if stated != count or first_item(count) > len(data):
        raise ValueError("offsets")
    offsets = data[4 : first_item(count)].view("<u4").astype(np.int64)
    if int(offsets[-1]) != len(data) or np.any(np.diff(offsets) < 0):
        raise ValueError("offsets")
    return offsets


def first_item(count: int) -> int:
    """Return where the first of so many items begins."""
    return 4 * (count + 2)


def values_of(data: Bytes, offsets: Ints, sizes: Sequence[int | None]) -> list[tuple[Ints, Ints]]:
    """Return where the values of each item begin and end, one pair of arrays for each value.

    A size of None stands for a value whose items state it: in their first bytes, before all values.

    Raises:
        ValueError: the values do not fill their items.
        IndexError: an item is outside of the shard.
    """
    start, found = offsets[:-1], []
    for size in sizes:
        stated = size is not None
        found.append(np.full(len(start), size) if stated else whole_numbers(data, start).astype(np.int64))
        start = start if stated else start + 4
    if np.any(start + sum(found) != offsets[1:]):
        raise ValueError("sizes")
    ends = [start + length for length in accumulate(found)]
    return list(zip([start, *ends[:-1]], ends, strict=True))


def joined(data: Bytes, start: Ints, stop: Ints, dtype: str | np.dtype[np.integer]) -> Ragged:
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


def pieces_of_items(data: Bytes, offsets: Ints) -> Iterator[tuple[Bytes, Ints]]:
    """Yield the items of a shard some megabytes at a time: their bytes, and where each begins and the last one ends."""
    first = 0
    while first < len(offsets) - 1:
        start = int(offsets[first])
        last = max(first + 1, int(np.searchsorted(offsets, start + PIECE_BYTES)))
        last = min(last, len(offsets) - 1)
        yield data[start : int(offsets[last])], offsets[first : last + 1] - start
        first = last


def unlisted_note(folder: Path, listed: Iterable[Path], ending: str) -> list[str]:
    """Return the note that shards lie in a folder whose index does not list them; none if all are listed."""
    known = {_unpacked(path, ending) for path in listed}
    shards = [file for file in matching(folder, "") if ending in file.name]
    left = [file.name for file in shards if _unpacked(file, ending) not in known]
    if not left:
        return []
    return [f"left out {counted(len(left), 'shard')} that the index does not list ({some_of(left)})"]


def _unpacked(shard: Path, ending: str) -> Path:
    """Return the name of a shard without its ending, and without that of its packing."""
    return shard.with_name(shard.name.partition(ending)[0])
