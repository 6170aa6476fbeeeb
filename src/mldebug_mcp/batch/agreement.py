"""Whether columns agree with the tokens: labels with the ids, masks with the padding."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mldebug_mcp.batch.ragged import Bools, Ints, count_rows
from mldebug_mcp.batch.sequences import Sequences

NEARLY_ALL = 0.95
"""Share of labels that must be the neighbouring token to call them shifted. Chosen by hand: chance gives a few in a
hundred, a real shift all but the ends of rows."""
LEAST_LABELS = 4
PERMUTATION = "perm_mask"
"""The column by which a batch for XLNet is recognised."""
MOSTLY = 0.5
LEAST_HIDDEN = 8
"""Labels that differ from their inputs, to tell without a tokenizer that one token hides them."""


def shift_of(side: Sequences) -> int:
    """Return 1 if labels are the next tokens, -1 if they are the previous ones, else 0."""
    if side.labels is None or side.trained is None:
        return 0
    trained = int(side.trained_per_row.sum())
    if trained < LEAST_LABELS or len(side.disagreeing) < 0.5 * trained:
        return 0
    places = np.flatnonzero(side.trained)
    return next((shift for shift in (1, -1) if _share(side, places, shift) >= NEARLY_ALL), 0)


def _share(side: Sequences, places: Ints, shift: int) -> float:
    assert side.labels is not None  # noqa: S101 - the caller saw them
    row = side.ids.row_of(places)
    inside = (places + shift >= side.ids.offsets[row]) & (places + shift < side.ids.offsets[row + 1])
    places = places[inside]
    return float(np.mean(side.labels.flat[places] == side.ids.flat[places + shift])) if len(places) else 0.0


def hides_words(side: Sequences, mask: int | None, columns: Iterable[str]) -> bool:
    """Return whether words are hidden at random and trained on there, as for a masked or permuted language model.

    Args:
        side: The token rows.
        mask: The token that hides a word, where a tokenizer tells.
        columns: The names of the batch's columns.
    """
    if PERMUTATION in columns:
        return True
    ids = side.ids.flat[side.disagreeing]
    if not len(ids):
        return False
    if mask is not None:
        return float(np.mean(ids == mask)) > MOSTLY
    common = int(np.bincount(np.clip(ids, 0, 2**20)).max())
    return len(ids) >= LEAST_HIDDEN and common > 0.6 * len(ids)


def inverted_rows(side: Sequences) -> Ints:
    """Return the rows whose mask is 1 on the padding and 0 on the text; none unless all such rows agree."""
    if side.attended is None or not len(side.ids.flat):
        return np.empty(0, np.int64)
    if not len(side.misattended):
        return np.empty(0, np.int64)
    agreeing = side.ids.lengths - count_rows(side.misattended, side.ids)
    inverted: Bools = (side.lengths > 0) & (agreeing <= 0.1 * side.ids.lengths)
    padded = side.lengths < side.ids.lengths
    judged = side.lengths > 0
    if bool(inverted[judged].all()) or (bool((inverted & padded).any()) and bool(inverted[padded & judged].all())):
        return np.flatnonzero(inverted)
    return np.empty(0, np.int64)
