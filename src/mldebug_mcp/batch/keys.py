"""A key for each row: rows with the same key are the same in everything that the model sees."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.sequences import Sequences


def row_keys(batch: Batch) -> tuple[Ints, Ints]:
    """Return the numbers and the keys of the rows that have content. Keys are 64-bit hashes, good for this process."""
    inputs = [
        np.ascontiguousarray(array)
        for name, array in batch.floats.items()
        if len(array) == batch.rows and not any(word in name for word in ("logp", "reward", "advantage", "score"))
    ]
    sides = [_side_keys(side) for side in batch.sides]
    if len(sides) == 1 and not inputs:
        return _as_arrays(sides[0])
    known = set(batch.numbers.tolist()).intersection(*sides) if sides or inputs else set()
    keys = {
        number: hash((*(side[number] for side in sides), *(array[place].tobytes() for array in inputs)))
        for place, number in enumerate(batch.numbers.tolist())
        if number in known
    }
    return _as_arrays(keys)


def _side_keys(side: Sequences) -> dict[int, int]:
    start, stop = (bound.tolist() for bound in side.bounds)
    # Files differ in the width of their integers; the same tokens must give the same key.
    flat = side.ids.flat.astype(np.int32, copy=False)
    return {
        number: hash(flat[start[place] : stop[place]].tobytes())
        for place, number in enumerate(side.numbers.tolist())
        if stop[place] > start[place]
    }


def _as_arrays(keys: dict[int, int]) -> tuple[Ints, Ints]:
    return np.fromiter(keys.keys(), np.int64, len(keys)), np.fromiter(keys.values(), np.int64, len(keys))
