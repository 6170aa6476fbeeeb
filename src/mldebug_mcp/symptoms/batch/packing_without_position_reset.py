"""Several documents share a row without position reset or document mask."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.documents import document_starts
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    NO_SPOTS,
    BatchEvidence,
    batch_check,
    of_rows,
    spots_at,
)


@batch_check(
    severity="warning",
    why="Each document attends to the ones before it, and its positions begin in the middle.",
    fix=(
        "packing=True with FlashAttention (padding_free): the collator then restarts position_ids for each document; "
        "or pass a block-diagonal attention mask."
    ),
    fixes={
        "Axolotl": "sample_packing: true with flash_attention: true.",
        "Unsloth": "packing=True in a version with padding-free packing.",
        "LLaMA-Factory": "neat_packing: true.",
    },
    quotes=("hf_packing_boundaries", "trl_wrapped_packing"),
    purposes=("sft", "pretraining", "dpo"),
)
def packing_without_position_reset(batch: Batch) -> BatchEvidence | None:
    """Documents follow each other in a row, and neither position ids nor a mask keep them apart.

    Not this when: position ids restart at each document; the mask numbers the documents; an end token only ends a
    turn. In pretraining it is a remark: many models were trained this way.
    """
    rows, spots, starts = NO_ROWS, NO_SPOTS, 0
    for side in batch.sides:
        if side.documents_masked or side.name == "prompt":
            continue
        found = document_starts(batch, side)
        if side.positions is not None and len(found):
            found = found[side.positions.flat[found] != 0]
        if len(found):
            starts += len(found)
            rows = np.union1d(rows, side.numbers[np.unique(side.ids.row_of(found))])
            spots = spots or spots_at(side, found)
    if not len(rows):
        return None
    return BatchEvidence(
        f"{starts} documents begin inside {of_rows(rows, batch.rows)} without restarting positions or a document mask",
        rows,
        spots,
        {"documents": starts},
        "info" if batch.purpose == "pretraining" else None,
    )
