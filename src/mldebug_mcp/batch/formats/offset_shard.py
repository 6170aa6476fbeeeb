"""The layout that shards of MDS and chunks of LitData share: a count, one more offset than that, then the items.

All are little-endian 32-bit whole numbers. LitData took it over from MDS; see the sources that those modules name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mldebug_mcp.batch.sequences import Ints, Ragged
from mldebug_mcp.batch.table import Column

MAX_BYTES = 4 * 1024**3
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
