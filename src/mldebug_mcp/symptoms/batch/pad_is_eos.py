"""The padding token is the end token, and real ends are masked with it."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import all_endings
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    BatchEvidence,
    batch_check,
    of_rows,
)


@batch_check(
    severity="error",
    why=(
        "Masking by comparing with the padding token takes the label from every real end: the model never learns to"
        " stop."
    ),
    fix="Give the tokenizer a padding token of its own, or mask padding by the attention mask.",
    fixes={
        "Transformers": "not DataCollatorForLanguageModeling with pad_token = eos_token.",
        "Axolotl": "special_tokens: pad_token: another token than the end.",
        "Unsloth": "tokenizer.pad_token = a reserved token of the model.",
        "LLaMA-Factory": "set another pad token in the tokenizer.",
    },
    quotes=("trl_eos_align", "axolotl_faq_eos_mismatch"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def pad_is_eos(batch: Batch) -> BatchEvidence | None:
    """Padding and end are the same token, and the real ends are masked as if they were padding.

    Not this when: real ends keep their label: then the two may be the same.
    """
    rows = NO_ROWS
    for side, found in all_endings(batch):
        if side.pad is None or side.pad not in batch.ends:
            continue
        masked = np.flatnonzero(found.masked)
        ended_by_pad = side.ids.flat[found.last[masked] + 1] == side.pad
        rows = np.union1d(rows, side.numbers[masked[ended_by_pad]])
    if not len(rows):
        return None
    return BatchEvidence(
        f"the padding token is the end token, and the real end of {of_rows(rows, batch.rows)} is masked with it", rows
    )
