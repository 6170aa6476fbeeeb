"""Padding positions carry labels."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
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
    why="The model is trained to write padding; the mean loss is diluted, so it looks better than it is.",
    fix="Set labels to -100 where the attention mask is 0: use a collator that pads labels with -100, such as "
    "DataCollatorForSeq2Seq or TRL's DataCollatorForLanguageModeling.",
    fixes={
        "Axolotl": "leave padding to its own collator; do not pad while tokenizing.",
        "Unsloth": "do not pad while tokenizing; the trainer's collator does it.",
        "LLaMA-Factory": "ignore_pad_token_for_loss: true.",
    },
    quotes=("hf_gradacc_token_denominator", "hfcourse_decode_inputs"),
    purposes=("sft", "pretraining", "dpo", "vlm", "classification"),
)
def padding_not_masked(batch: Batch) -> BatchEvidence | None:
    """The loss is computed on padding.

    Not this when: padding and end are the same token and only the real end carries a label.
    """
    total, rows, spots = 0, NO_ROWS, NO_SPOTS
    for side in batch.labelled:
        if not side.padded or side.trained is None:
            continue
        positions = np.flatnonzero(side.trained & ~side.content)
        if len(positions):
            total += len(positions)
            rows = np.union1d(rows, side.numbers[np.unique(side.ids.row_of(positions))])
            spots = spots or spots_at(side, positions, 3)
    if not total:
        return None
    return BatchEvidence(
        f"{total} padding positions in {of_rows(rows, batch.rows)} carry labels", rows, spots, {"positions": total}
    )
