"""Preference pairs without a difference."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.pairs import Pair, content, pairs
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
)

MOST_ALIKE = 64
"""Tokens after the first difference up to which texts are compared. Chosen: longer ones differ in more than spaces."""


@batch_check(
    severity="error",
    why=(
        "Such a pair has no preference: its loss stays at ln 2 and its gradient is zero; many of them keep the "
        "accuracy at one half."
    ),
    fix="Drop pairs whose completions are equal after stripping; check that the two columns have different sources.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("dpo",),
)
def chosen_equals_rejected(batch: Batch) -> BatchEvidence | None:
    """Chosen and rejected completions are the same, or differ only in spaces around them and in special tokens.

    Not this when: they differ in a single word, or in the spaces inside them.
    """
    chosen, rejected = batch.side("chosen"), batch.side("rejected")
    if chosen is None or rejected is None:
        return None
    rows = np.array(
        [pair.number for pair in pairs(chosen, rejected) if pair.same or _reads_same(batch, chosen, rejected, pair)],
        np.int64,
    )
    if not len(rows):
        return None
    severity: Severity | None = "warning" if len(rows) < 0.05 * batch.rows else None
    said = f"chosen and rejected are the same in {of_rows(rows, batch.rows)}"
    return BatchEvidence(said, rows, values={"pairs": len(rows)}, severity=severity)


def _reads_same(batch: Batch, chosen: Sequences, rejected: Sequences, pair: Pair) -> bool:
    one, two = content(chosen, pair.chosen)[pair.shared :], content(rejected, pair.rejected)[pair.shared :]
    tokenizer = batch.tokenizer
    if tokenizer is None or max(len(one), len(two)) > MOST_ALIKE:
        return False
    special = tokenizer.special_ids
    texts = [
        "".join(tokenizer.pieces([number for number in side.tolist() if number not in special])).rstrip()
        for side in (one, two)
    ]
    if _begins_there(chosen, pair):
        texts = [text.lstrip() for text in texts]
    return texts[0] == texts[1]


def _begins_there(chosen: Sequences, pair: Pair) -> bool:
    """Whether the completions part at their beginning: further on spaces count, as those of code do."""
    if pair.shared == 0 or chosen.trained is None:
        return pair.shared == 0
    first = int(chosen.ids.offsets[pair.chosen]) + pair.chosen_start
    return not bool(chosen.trained[first : first + pair.shared].any())
