"""Some rows train on nothing."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.agreement import hides_words
from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Bools
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    rows_that,
    rows_where,
)


@batch_check(
    severity="warning",
    why="Such rows cost compute and teach nothing; where a micro-batch holds only such rows, its loss is NaN.",
    fix=(
        "Drop them before training, or find out why: the answer was truncated away, the response marker is missing, or "
        "the conversation has no assistant turn."
    ),
    fixes={
        "Unsloth": "train_on_responses_only drops such rows itself if they are few; many mean wrong markers.",
        "Axolotl": "drop rows without assistant turns; raise sequence_len.",
        "LLaMA-Factory": "raise cutoff_len; see that each sample has a response.",
    },
    quotes=("axolotl_plateau_mask",),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def row_labels_masked(batch: Batch) -> BatchEvidence | None:
    """Some rows have content but no trained token, while others have.

    Not this when: no row of the batch is trained on (`all_labels_masked`); the row is empty (`empty_row`); the side is
    the prompt of a preference pair; words are hidden at random, which sometimes leaves short rows without one.
    """
    sides = [
        side for side in batch.labelled if side.name != "prompt" and not hides_words(side, batch.mask, batch.columns)
    ]
    if not any(int(side.trained_per_row.sum()) for side in sides):
        return None
    rows = rows_where(sides, lambda side: (side.trained_per_row == 0) & _has_content(batch, side))
    if not len(rows):
        return None
    trains = rows_that(rows, batch.rows, "trains", "train")
    return BatchEvidence(f"{trains} on no token", rows, values={"rows": len(rows)})


def _has_content(batch: Batch, side: Sequences) -> Bools:
    """Return which rows have content; targets without a label belong to inputs that have."""
    content: Bools = side.lengths > 0
    return np.ones_like(content) if side is batch.targets else content
