"""Tokenizer and model vocabulary sizes do not fit."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Bools, count_rows
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    rows_that,
    rows_where,
)

MOST_SPARE = 512
"""Tokens that a model may have beyond its tokenizer's. Chosen: a small vocabulary that is padded has a large share to
spare."""
SHARE_SPARE = 0.05
"""Share of the model's tokens that its tokenizer may lack. Chosen: twice the widest padding of common models, 2.3 % in
DeepSeek V2."""


@batch_check(
    severity="error",
    why="Tokens beyond the embeddings crash the run; a tokenizer of another model makes every row nonsense.",
    fix=(
        "Load tokenizer and model from the same place; after adding tokens call "
        "model.resize_token_embeddings(len(tokenizer))."
    ),
    fixes={
        "Axolotl": "leave tokenizer_config unset unless it is the base model's.",
        "Unsloth": "use the tokenizer that from_pretrained returned.",
        "LLaMA-Factory": "resize_vocab: true after new_special_tokens.",
    },
    quotes=("unsloth_uninitialised_weights", "hfcourse_decode_inputs"),
)
def vocab_size_mismatch(batch: Batch) -> BatchEvidence | None:
    """The tokenizer knows more tokens than the model has, or far fewer, or the batch holds ids that it does not know.

    Not this when: the model's vocabulary is padded to a round number beyond the tokenizer's. The widest such padding
    among common models is 2.3 % (DeepSeek V2); above 5 % and 512 tokens it is called a mismatch.
    """
    tokenizer, model = batch.tokenizer, batch.model.vocab_size
    if tokenizer is None:
        return None
    if model is not None and tokenizer.size > model:
        return BatchEvidence(
            f"the tokenizer has {tokenizer.size} tokens, the model {model}",
            values={"tokenizer": tokenizer.size, "model": model},
        )
    if model is not None:
        rows = rows_where(batch.sides, lambda side: _unknown(side, tokenizer.size, model))
        if len(rows):
            return BatchEvidence(
                f"{rows_that(rows, batch.rows, 'holds', 'hold')} ids that the tokenizer does not know (it has "
                f"{tokenizer.size} tokens, the model {model})",
                rows,
            )
        if model - tokenizer.size > max(MOST_SPARE, SHARE_SPARE * model):
            said = f"the model has {model} tokens, the tokenizer only {tokenizer.size}"
            return BatchEvidence(said, values={"tokenizer": tokenizer.size, "model": model}, severity="warning")
    return None


def _unknown(side: Sequences, size: int, limit: int) -> Bools:
    return count_rows(np.flatnonzero((side.ids.flat >= size) & (side.ids.flat < limit)), side.ids) > 0
