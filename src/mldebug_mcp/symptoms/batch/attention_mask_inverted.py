"""The attention mask marks the padding, not the text."""

from __future__ import annotations

from mldebug_mcp.batch.agreement import inverted_rows
from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
    rows_where,
)


@batch_check(
    severity="error",
    why="The model sees only padding: it cannot learn anything of the text.",
    fix="In Transformers 1 means text and 0 padding; torch's key_padding_mask is the other way round. Invert the mask.",
    quotes=("transformers_left_pad",),
)
def attention_mask_inverted(batch: Batch) -> BatchEvidence | None:
    """The mask is 0 on the text and 1 on the padding.

    Not this when: only some positions are wrong (`attention_mask_mismatch`).
    """
    rows = rows_where([side for side in batch.sides if side.attended is not None], inverted_rows)
    if not len(rows):
        return None
    return BatchEvidence(
        f"the attention mask of {of_rows(rows, batch.rows)} is 0 on the text and 1 on the padding", rows
    )
