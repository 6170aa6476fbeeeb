"""A key for each row: rows with the same key are the same in everything that the model sees."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.columns import FLOAT_INPUTS
from mldebug_mcp.batch.other_columns import bits_to_tell_apart
from mldebug_mcp.batch.ragged import Floats, Ints
from mldebug_mcp.batch.sequences import Sequences

SPARE_BITS = 4
"""Bits beyond those of the rows squared that values must have for a repeat to be no chance. Chosen by hand."""

LOOKED_AT = 256
"""Columns of an input, spread evenly, that are looked at for how many values they have."""


def row_keys(batch: Batch) -> tuple[Ints, Ints]:
    """Return the numbers and the keys of the rows that have content. Keys are 64-bit hashes, good for this process."""
    inputs = [
        np.ascontiguousarray(array)
        for name, array in batch.floats.items()
        if len(array) == batch.rows and not any(word in name for word in ("logp", "reward", "advantage", "score"))
    ]
    sides = [_side_keys(side) for side in batch.sides]
    if sides and any(name in FLOAT_INPUTS and len(array) != batch.rows for name, array in batch.floats.items()):
        # Images cut into patches: whose they are is not known, and the same question about another image is no repeat.
        return _as_arrays({})
    if len(sides) == 1 and not inputs and batch.rest is None:
        return _as_arrays(sides[0])
    if not sides and _repeat_by_chance(inputs, batch):
        return _as_arrays({})
    rest = () if batch.rest is None else (batch.rest.keys,)
    known = set(batch.numbers.tolist()).intersection(*sides) if sides or inputs or rest else set()
    keys = {
        number: hash((*(side[number] for side in sides), *(array[place].tobytes() for array in (*inputs, *rest))))
        for place, number in enumerate(batch.numbers.tolist())
        if number in known
    }
    return _as_arrays(keys)


def _repeat_by_chance(inputs: Sequence[Floats], batch: Batch) -> bool:
    """Tell whether so few values are possible that some rows are the same by chance: one-hot inputs, cells of a grid.

    Of n rows two are the same by chance if fewer than about n squared are possible; a column in which one value is
    common tells fewer apart than it has values.
    """
    wanted = 2 * math.log2(max(2, batch.rows)) + SPARE_BITS
    bits = 0.0 if batch.rest is None else batch.rest.bits
    for array in inputs:
        columns = array.reshape(len(array), -1).T
        for column in columns[:: max(1, len(columns) // LOOKED_AT)]:
            if bits >= wanted:
                return False
            bits += bits_to_tell_apart(np.unique(column, return_counts=True)[1])
    return bits < wanted


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
