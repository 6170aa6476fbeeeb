"""The completion was cut off."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import all_endings
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
    severity="warning",
    why="The model learns from answers that break off, and sees fewer ends than answers.",
    fix="Raise max_length (SFTConfig, DPOConfig) or leave out rows that do not fit; a few in a thousand do no harm.",
    fixes={
        "Axolotl": "raise sequence_len, or excess_length_strategy: drop.",
        "Unsloth": "raise max_seq_length.",
        "LLaMA-Factory": "raise cutoff_len.",
    },
    quotes=("trl_maxlen_discard",),
    purposes=("sft", "dpo", "vlm"),
)
def truncated_completion(batch: Batch) -> BatchEvidence | None:
    """Rows fill the greatest length of the batch and their completion does not end with an end token.

    Or, in text, the answer opens its reasoning (<think>) and ends without closing it, or many answers end in the middle
    of a sentence at exactly the same number of characters.

    Not this when: the row ends with an end token just at the limit; the prompt was cut at its left; rows are packed.
    One full row without an end counts if other rows do end, or if the length is a known or a round limit.
    """
    rows, spots, judged = NO_ROWS, NO_SPOTS, 0
    for side, found in all_endings(batch):
        judged += int((found.last >= 0).sum())
        rows = np.union1d(rows, side.numbers[found.cut])
        spots = spots or spots_at(side, found.last[found.cut])
    told = next((problem for problem in batch.problems if problem.check == "truncated_completion"), None)
    if told is not None and not len(rows):
        cut = np.array(told.rows, np.int64)
        return BatchEvidence(f"{of_rows(cut, batch.rows)} {told.summary}", cut)
    if not len(rows):
        return None
    # Chosen by hand: below one row in a hundred the lost ends do not matter.
    severity: Severity | None = "info" if len(rows) < 0.01 * judged else None
    said = f"the completions of {of_rows(rows, batch.rows)} are cut off at the greatest length of the batch"
    return BatchEvidence(said, rows, spots, severity=severity)
