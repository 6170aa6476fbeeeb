"""Rows without content."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.pairs import content
from mldebug_mcp.batch.ragged import Bools, Ints
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.batch.words import END
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
    rows_that,
    rows_where,
)

SHORT = 8
"""Tokens up to which a row is looked at whole. Chosen: longer ones hold more than special tokens."""


@batch_check(
    severity="warning",
    why="They teach nothing; a micro-batch of such rows alone gives a NaN loss.",
    fix="Filter them out before training: dataset.filter(lambda row: len(row['input_ids']) > 1).",
    quotes=("karpathy_recipe_inspect_data", "axolotl_spike_one_sample"),
)
def empty_row(batch: Batch) -> BatchEvidence | None:
    """A row has no token besides padding and special tokens, or its completion none besides its end.

    Not this when: it is the prompt of a preference pair (`prompt_missing`); nothing of the row is trained on
    (`row_labels_masked`).
    """
    sides = [side for side in batch.sides if not (side.name == "prompt" and batch.purpose == "dpo")]
    special = (
        batch.tokenizer.special_ids
        if batch.tokenizer is not None
        else batch.ends | ({batch.bos} if batch.bos is not None else set())
    )
    rows = rows_where(sides, lambda side: _nothing_but(side, np.array(sorted(special), np.int64)))
    if len(rows):
        return BatchEvidence(f"{rows_that(rows, batch.rows, 'is', 'are')} empty", rows)
    if batch.purpose not in ("sft", "dpo", "vlm"):
        return None
    rows = rows_where(batch.trained_sides, lambda side: _ends_at_once(batch, side))
    if not len(rows):
        return None
    return BatchEvidence(f"in {of_rows(rows, batch.rows)} the completion is empty: only its end is trained on", rows)


def _ends_at_once(batch: Batch, side: Sequences) -> Bools:
    """Return the rows in which an end token, and no word, is trained on."""
    trained = side.trained
    empty = np.zeros(side.rows, np.bool_)
    if batch.words is not None and side.trained_runs is not None:
        # Each stretch is a turn of the assistant, or a text, with its end.
        runs = side.trained_runs
        empty[runs.row[(runs.stop - runs.start == 1) & (side.ids.flat[runs.start] == END)]] = True
        return empty
    for row in np.flatnonzero((side.trained_per_row > 0) & (side.trained_per_row <= SHORT)).tolist():
        inside = slice(int(side.ids.offsets[row]), int(side.ids.offsets[row + 1]))
        tokens = [] if trained is None else side.ids.flat[inside][(trained & side.content)[inside]].tolist()
        words = [token for token in tokens if token not in batch.ends]
        blank = batch.tokenizer is not None and not "".join(batch.tokenizer.pieces(words)).strip()
        empty[row] = len(words) < len(tokens) and (not words or blank)
    return empty


def _nothing_but(side: Sequences, special: Ints) -> Bools:
    empty: Bools = side.lengths == 0
    for row in np.flatnonzero((side.lengths > 0) & (side.lengths <= SHORT)).tolist():
        empty[row] = bool(np.isin(content(side, row), special).all()) if len(special) else False
    return empty
