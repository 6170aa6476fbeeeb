"""Rows without content."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.pairs import content
from mldebug_mcp.batch.ragged import Bools, Ints
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
    rows_where,
)

SHORT = 8
"""Tokens up to which a row is looked at whole: longer ones hold more than special tokens."""


@batch_check(
    severity="warning",
    why="They teach nothing; a micro-batch of such rows alone gives a NaN loss.",
    fix="Filter them out before training: dataset.filter(lambda row: len(row['input_ids']) > 1).",
    quotes=("karpathy_recipe_inspect_data", "axolotl_spike_one_sample"),
)
def empty_row(batch: Batch) -> BatchEvidence | None:
    """A row has no token besides padding and special tokens.

    Not this when: it is the prompt of a preference pair (`prompt_missing`).
    """
    sides = [side for side in batch.sides if not (side.name == "prompt" and batch.purpose == "dpo")]
    special = (
        batch.tokenizer.special_ids
        if batch.tokenizer is not None
        else batch.ends | ({batch.bos} if batch.bos is not None else set())
    )
    rows = rows_where(sides, lambda side: _nothing_but(side, np.array(sorted(special), np.int64)))
    if not len(rows):
        return None
    return BatchEvidence(f"{of_rows(rows, batch.rows)} {'is' if len(rows) == 1 else 'are'} empty", rows)


def _nothing_but(side: Sequences, special: Ints) -> Bools:
    empty: Bools = side.lengths == 0
    for row in np.flatnonzero((side.lengths > 0) & (side.lengths <= SHORT)).tolist():
        empty[row] = bool(np.isin(content(side, row), special).all()) if len(special) else False
    return empty
