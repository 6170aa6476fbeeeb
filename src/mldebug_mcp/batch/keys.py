"""A key for each row: rows with the same key are the same in everything that the model sees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.sequences import Sequences


def row_keys(batch: Batch) -> Iterator[tuple[int, int]]:
    """Yield the number and the key of each row that has content. Keys are 64-bit hashes, good for this process."""
    names = [name for name, array in batch.floats.items() if len(array) == batch.rows and not _is_score(name)]
    inputs = [np.ascontiguousarray(batch.floats[name]) for name in names]
    if not batch.sides:
        first = 0 if batch.class_rows is None else int(batch.class_rows.min(initial=0))
        for row in range(batch.rows if inputs else 0):
            yield first + row, hash(tuple(array[row].tobytes() for array in inputs))
        return
    if len(batch.sides) == 1 and not inputs:
        yield from _plain(batch.sides[0])
        return
    keys = [dict(_plain(side)) for side in batch.sides]
    for row in keys[0]:
        if all(row in side for side in keys):
            floats = tuple(array[row].tobytes() for array in inputs if row < len(array))
            yield row, hash((*(side[row] for side in keys), *floats))


def _plain(side: Sequences) -> Iterator[tuple[int, int]]:
    start, stop = (bound.tolist() for bound in side.bounds)
    flat = side.ids.flat
    for row, number in enumerate(side.numbers.tolist()):
        if stop[row] > start[row]:
            yield number, hash(flat[start[row] : stop[row]].tobytes())


def _is_score(name: str) -> bool:
    return any(word in name for word in ("logp", "reward", "advantage", "score"))
