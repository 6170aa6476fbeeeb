"""Position ids count padding or do not match the tokens."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    NO_SPOTS,
    BatchEvidence,
    batch_check,
    of_rows,
    spots_at,
)


@batch_check(
    severity="error",
    why=(
        "Tokens get positions that they never have in use; beyond the model's greatest position it fails, or reads "
        "nonsense."
    ),
    fix="position_ids = attention_mask.cumsum(-1) - 1, with 0 on padding; restart at 0 for each packed document.",
    quotes=("hf_packing_boundaries",),
)
def position_ids_wrong(batch: Batch) -> BatchEvidence | None:
    """Positions do not begin at 0 with the text, or do not rise by one from token to token.

    Not this when: they restart at 0 for a packed document; they all begin after the padding id, as RoBERTa's do; a
    piece of a longer text continues where the last one ended.
    """
    rows, spots = NO_ROWS, NO_SPOTS
    for side in batch.sides:
        if side.positions is None:
            continue
        wrong = np.union1d(_leaps(side), _late_starts(batch, side))
        if batch.model.max_positions is not None:
            wrong = np.union1d(wrong, np.flatnonzero(side.content & (side.positions.flat >= batch.model.max_positions)))
        if len(wrong):
            wrong = wrong.astype(np.int64)
            rows = np.union1d(rows, side.numbers[np.unique(side.ids.row_of(wrong))])
            spots = spots or spots_at(side, wrong)
    if not len(rows):
        return None
    return BatchEvidence(f"the position ids of {of_rows(rows, batch.rows)} do not count the tokens", rows, spots)


def _leaps(side: Sequences) -> Ints:
    """Return the places, inside the text, where positions neither rise by one nor restart."""
    assert side.positions is not None  # noqa: S101 - the caller saw them
    position = side.positions.flat.astype(np.int64, copy=False)
    restart = (position[1:] == 0) & (position[:-1] != 0)
    leap = np.flatnonzero((np.diff(position) != 1) & ~restart) + 1
    start, stop = side.bounds
    row = side.ids.row_of(leap)
    inside: Ints = leap[(leap > start[row]) & (leap < stop[row])]
    # Two zeros in a row are a document of one token, unless they are all there is.
    zero = position[inside] == 0
    rises = np.maximum.reduceat(np.append(position, 0), side.ids.offsets[:-1])[side.ids.row_of(inside)] > 0
    found: Ints = inside[~(zero & rises)]
    return found


def _late_starts(batch: Batch, side: Sequences) -> Ints:
    assert side.positions is not None  # noqa: S101 - the caller saw them
    start, stop = side.bounds
    some = start[stop > start]
    first = side.positions.flat[some]
    late = first != 0
    left = side.column(some) > 0
    if (
        len(first)
        and bool(np.all(first == first[0]))
        and not bool(left.any())
        and (int(first[0]) == (side.pad if side.pad is not None else -2) + 1)
    ):
        return NO_ROWS
    if batch.purpose == "pretraining":
        late &= left
    found: Ints = some[late]
    return found
