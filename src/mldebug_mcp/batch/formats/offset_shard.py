"""The layout that shards of MDS and chunks of LitData share: a count, one more offset than that, then the items.

All are little-endian 32-bit whole numbers. LitData took it over from MDS; see the sources that those modules name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.batch.table import Column

MAX_SHARD_BYTES = 4 * 1024**3
"""Bytes of a shard: its offsets count no more."""


def offsets_of_items(content: bytes, count: int) -> Ints:
    """Return where each of so many items begins, and the end of the last one.

    Raises:
        ValueError: the content holds another count, or its offsets do not ascend to its end.
    """
    stated = int.from_bytes(content[:4], "little")
    offsets = np.frombuffer(content[4 : first_item(stated)], "<u4").astype(np.int64)
    if stated != count or len(offsets) != count + 1 or int(offsets[-1]) != len(content) or np.any(np.diff(offsets) < 0):
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
    cells = data.data
    flat: npt.NDArray[np.integer] = np.frombuffer(b"".join([cells[first:last] for first, last in places]), dtype)
    return Ragged(flat, offsets_of(lengths))


PIECE_TOKENS = 8 * 1024 * 1024
"""Tokens that one piece holds at least, unless the shard ends before."""


def in_pieces(columns: Mapping[str, Ragged], leading: str) -> Iterator[dict[str, Column]]:
    """Yield the rows of a shard some millions of tokens at a time, by the lengths of one column."""
    ends, first = columns[leading].offsets[1:], 0
    while first < len(ends):
        start = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, start + PIECE_TOKENS)))
        yield {name: column.between(first, last) for name, column in columns.items()}
        first = last
