"""The end token is never trained on."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.agreement import hides_words
from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import all_endings
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
    why="The model never learns to stop: it answers and then runs on until the length limit.",
    fix=(
        "Keep the label of the real end token: mask padding by the attention mask, not by comparing with pad_token_id, "
        "or give the tokenizer a padding token of its own. With {% generation %} marks, put the end token inside them."
    ),
    fixes={
        "Transformers": (
            "DataCollatorForLanguageModeling masks every pad_token_id: set pad_token to another token than eos."
        ),
        "Axolotl": "train_on_eos: turn (and train_on_eot), special_tokens: pad_token: another token.",
        "Unsloth": "set tokenizer.pad_token to a token that is not the end token.",
        "LLaMA-Factory": (
            "see that the template's stop words are trained on (efficient_eos: false), pad token other than eos."
        ),
    },
    quotes=("trl_eos_align", "axolotl_faq_eos_mismatch"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def eos_masked(batch: Batch) -> BatchEvidence | None:
    """Completions end with an end token whose label is the ignore index, and no end token of the row is trained on.

    Not this when: padding and end are the same token and the first, real one keeps its label; some turn's end in the
    row is trained on; the completion was cut off; words are hidden at random.
    """
    rows, spots = NO_ROWS, NO_SPOTS
    for side, found in all_endings(batch):
        if hides_words(side, batch.mask, batch.columns):
            continue
        rows = np.union1d(rows, side.numbers[found.masked])
        spots = spots or spots_at(side, found.last[found.masked] + 1)
    if not len(rows):
        return None
    said = f"the end token in {of_rows(rows, batch.rows)} is masked, and no other end of the row is trained on"
    return BatchEvidence(said, rows, spots)
