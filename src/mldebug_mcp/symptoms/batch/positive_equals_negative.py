"""Pairs and triplets for embeddings in which two of a row's texts are the same."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.pairs import pairs
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check, of_rows

_POSITIVE, _NEGATIVE = ("positive", "pos"), ("negative", "neg")


@batch_check(
    severity="error",
    why="The same text is to be near the anchor and far from it: the two terms of the loss cancel, and it cannot fall.",
    fix="See that the columns have different sources; drop mined negatives that are the positive or the anchor itself.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("embedding",),
)
def positive_equals_negative(batch: Batch) -> BatchEvidence | None:
    """A row's negative is its positive, or its anchor, token for token.

    Not this when: anchor and positive are the same, as in SimCSE, where dropout tells them apart; the columns do not
    say which of them is the negative.
    """
    rows, other = _same(batch, _POSITIVE), "positive"
    if not len(rows):
        rows, other = _same(batch, ("anchor", "query")), "anchor"
    if not len(rows):
        return None
    severity: Severity | None = "warning" if len(rows) < 0.05 * batch.rows else None
    said = f"the negative is the {other} in {of_rows(rows, batch.rows)}"
    return BatchEvidence(said, rows, values={"rows": len(rows)}, severity=severity)


def _same(batch: Batch, names: tuple[str, ...]) -> Ints:
    """Return the rows in which a negative is the same as the side of one of these names."""
    others = [side for side in batch.sides if side.name in names]
    negatives = [side for side in batch.sides if side.name.startswith(_NEGATIVE)]
    found = [pair.number for one in others for two in negatives for pair in pairs(one, two) if pair.same]
    return np.unique(np.array(found, np.int64))
