"""The tokenizer has no padding token."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
)


@batch_check(
    severity="warning",
    why="Batches cannot be padded, or are padded with an id that stands for something else.",
    fix=(
        "Set tokenizer.pad_token to a token of its own (many models reserve one) and model.config.pad_token_id with "
        "it; the end token will do if padding is masked by the attention mask."
    ),
    fixes={
        "Axolotl": "special_tokens: pad_token: ...",
        "TRL": "pad_token in SFTConfig.",
        "LLaMA-Factory": "the template sets it; check new_special_tokens.",
    },
    quotes=("transformers_left_pad",),
)
def pad_token_unset(batch: Batch) -> BatchEvidence | None:
    """The tokenizer names no padding token although rows are padded or differ in length.

    Not this when: all rows have one length and none is padded, as in packed data. Where rows are padded already and the
    attention mask hides that, it is a remark.
    """
    tokenizer = batch.tokenizer
    if tokenizer is None or tokenizer.pad is not None or not batch.sides:
        return None
    padded = any(side.padded for side in batch.sides)
    uneven = any(bool(np.any(side.lengths != side.lengths[0])) for side in batch.sides if side.rows)
    if padded or uneven:
        hidden = padded and all(side.attended is not None and not len(side.misattended) for side in batch.sides)
        return BatchEvidence(
            f"the tokenizer has no padding token, and rows {'are padded' if padded else 'differ in length'}"
            + (", with a mask over the padding" if hidden else ""),
            severity="info" if hidden else None,
        )
    if batch.purpose == "pretraining" or all(side.packed or side.rows == 1 for side in batch.sides):
        return None
    return BatchEvidence(
        "the tokenizer has no padding token; these rows need none, as all have one length", severity="info"
    )
