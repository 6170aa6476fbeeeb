"""Truncation left only the prompt."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Bools
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    rows_that,
    rows_where,
)


@batch_check(
    severity="error",
    why="Such rows train on nothing; the longest prompts, often the hardest tasks, are lost silently.",
    fix="Raise max_length, truncate the prompt from its left, or drop rows whose prompt alone reaches the limit.",
    fixes={
        "Axolotl": "raise sequence_len, or excess_length_strategy: drop.",
        "Unsloth": "raise max_seq_length.",
        "LLaMA-Factory": "raise cutoff_len.",
    },
    quotes=("trl_maxlen_discard",),
    purposes=("sft", "dpo", "vlm"),
)
def no_completion_left(batch: Batch) -> BatchEvidence | None:
    """Rows that fill the greatest length of the batch have no trained token.

    Not this when: a shorter row has no trained token (`row_labels_masked`), as nothing was cut there.
    """
    sides = [side for side in batch.trained_sides if side.name != "prompt"]
    if not any(int(side.trained_per_row.sum()) for side in sides):
        return None
    rows = rows_where(sides, lambda side: _only_prompt(batch, side))
    if not len(rows):
        return None
    reaches = rows_that(rows, batch.rows, "reaches", "reach")
    return BatchEvidence(f"{reaches} the greatest length of the batch, without a completion", rows)


def _only_prompt(batch: Batch, side: Sequences) -> Bools:
    longest = int(side.lengths.max(initial=0))
    _, stop = side.bounds
    last = side.ids.flat[np.maximum(stop - 1, 0)] if len(side.ids.flat) else side.ids.flat
    ended = (
        np.isin(last, np.fromiter(batch.ends, np.int64)) if len(last) == side.rows else np.zeros(side.rows, np.bool_)
    )
    found: Bools = (side.trained_per_row == 0) & (side.lengths == longest) & (longest > 1) & ~ended
    return found
