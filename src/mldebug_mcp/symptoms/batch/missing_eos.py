"""Completions do not end with the end token."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import all_endings
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.models.base import Severity
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
    why="The model never sees an end after an answer, so it does not learn to stop.",
    fix=(
        "Append tokenizer.eos_token to each text or completion, or use a chat template that ends the assistant's turn; "
        "in TRL set eos_token in SFTConfig to the template's end of turn."
    ),
    fixes={
        "Unsloth": "append EOS_TOKEN = tokenizer.eos_token in the formatting function.",
        "Axolotl": "special_tokens: eos_token must be the one that the chat template writes.",
        "LLaMA-Factory": "use the template of the model; its stop words end each answer.",
    },
    quotes=("trl_eos_align", "axolotl_faq_eos_mismatch"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def missing_eos(batch: Batch) -> BatchEvidence | None:
    """Completions stop without an end token although the row had room for one.

    Not this when: the row is as long as rows can be (`truncated_completion`); the end token is there but masked
    (`eos_masked`); the rows are pieces of a longer stream, as in pretraining, and end tokens stand inside them.
    """
    rows, spots = NO_ROWS, NO_SPOTS
    for side, found in all_endings(batch):
        if batch.purpose == "pretraining" and _is_stream(batch, side):
            continue
        rows = np.union1d(rows, side.numbers[found.open])
        spots = spots or spots_at(side, found.last[found.open])
    if not len(rows):
        return None
    severity: Severity | None = "warning" if batch.purpose == "pretraining" or 2 * len(rows) < batch.rows else None
    return BatchEvidence(
        f"the completions of {of_rows(rows, batch.rows)} do not end with an end token", rows, spots, severity=severity
    )


def _is_stream(batch: Batch, side: Sequences) -> bool:
    """Whether rows are pieces of one long text: all of one length, or with ends of documents inside."""
    if side.rows == 1 or bool(np.all(side.lengths == side.lengths[0])):
        return True
    return bool(np.isin(side.ids.flat[side.content], np.fromiter(batch.ends, np.int64)).any())
