"""Token ids outside the model's vocabulary."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.sequences import IGNORE
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    NO_SPOTS,
    BatchEvidence,
    batch_check,
    of_rows,
    spots_at,
)

UNKNOWN_LIMIT = 2**31
"""Ids that are out of range where the size of the vocabulary is not known. Chosen: no vocabulary reaches it."""
LLAVA_IMAGE = -200
"""The id by which an image is marked in input_ids. Source: LLaVA, `IMAGE_TOKEN_INDEX`."""


@batch_check(
    severity="error",
    why="The embedding or the loss is indexed out of bounds: a device-side assert on a GPU, or memory read at random.",
    fix=(
        "model.resize_token_embeddings(len(tokenizer)) after adding tokens; use the tokenizer of this model; mask "
        "labels with -100."
    ),
    fixes={
        "Axolotl": "tokens: and special_tokens: add tokens and resize; set resize_token_embeddings_to_32x if wanted.",
        "Unsloth": "add tokens with unsloth.add_new_tokens before get_peft_model.",
        "LLaMA-Factory": "resize_vocab: true.",
    },
    quotes=("hfcourse_decode_inputs",),
)
def token_id_out_of_range(batch: Batch) -> BatchEvidence | None:
    """An id or label is negative (but not the ignore index) or at least the size of the vocabulary.

    Not this when: the size is not known and the ids could be some model's; a LLaVA batch marks images by -200.
    """
    limit = batch.vocabulary or UNKNOWN_LIMIT
    rows, spots, seen, worst = NO_ROWS, NO_SPOTS, 0, 0
    for side in (*batch.sides, *(() if batch.targets is None else (batch.targets,))):
        allowed = LLAVA_IMAGE if batch.purpose == "vlm" else None
        labels = None if batch.purpose == "classification" else side.labels
        for column, exempt in ((side.ids, allowed), (labels, IGNORE)):
            if (
                column is None
                or not len(column.flat)
                or (int(column.flat.min()) >= 0 and int(column.flat.max()) < limit)
            ):
                continue
            wrong = np.flatnonzero(((column.flat < 0) | (column.flat >= limit)) & (column.flat != exempt))
            if len(wrong):
                worst = max(worst, int(column.flat[wrong[0]]), int(column.flat[wrong].max()), key=abs)
                seen += len(wrong)
                rows = np.union1d(rows, side.numbers[np.unique(side.ids.row_of(wrong))])
                spots = spots or spots_at(side, wrong)
    if not seen:
        return None
    known = f"a vocabulary of {limit}" if batch.vocabulary else "any vocabulary"
    said = f"{seen} ids or labels in {of_rows(rows, batch.rows)} are outside {known} (such as {worst})"
    return BatchEvidence(said, rows, spots, {"count": seen, "example": worst})
