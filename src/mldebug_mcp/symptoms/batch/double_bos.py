"""Rows start with two first tokens."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    NO_SPOTS,
    BatchEvidence,
    batch_check,
    rows_that,
    spots_at,
)


@batch_check(
    severity="warning",
    why="The model never saw two; it shifts what it computes for the whole row, and training and use differ.",
    fix="The chat template writes the first token already: tokenize its output with add_special_tokens=False.",
    fixes={
        "TRL": "give the conversations as messages, not as text that apply_chat_template rendered.",
        "Unsloth": "strip tokenizer.bos_token from the formatted text, or pass add_special_tokens=False.",
        "Axolotl": "let one of chat template and tokenizer write the first token.",
        "LLaMA-Factory": "do not write the first token into the data; the template does.",
    },
    quotes=("transformers_template_special_tokens", "unsloth_bos_hypotheses"),
)
def double_bos(batch: Batch) -> BatchEvidence | None:
    """Rows, or documents inside them, begin with the first token twice.

    So do the decoder's inputs where labels begin with the token that the model puts before them.

    Not this when: the first token pads the row on the left; first and end token are the same and one document's end
    meets the next one's beginning.
    """
    if batch.targets is not None and (started := _started(batch, batch.targets)) is not None:
        return started
    bos = batch.bos
    if bos is None:
        return _two_alike(batch)
    rows, spots = NO_ROWS, NO_SPOTS
    for side in batch.sides:
        positions = _doubled(batch, side, bos)
        rows = np.union1d(rows, side.numbers[np.unique(side.ids.row_of(positions))])
        spots = spots or spots_at(side, positions, 2)
    if not len(rows):
        return None
    begins = rows_that(rows, batch.rows, "begins", "begin")
    return BatchEvidence(f"{begins} with the first token (id {bos}) twice", rows, spots)


def _started(batch: Batch, targets: Sequences) -> BatchEvidence | None:
    start, stop = targets.bounds
    first = start[stop > start]
    token = batch.model.decoder_start
    if token is None or token == batch.model.pad or not len(first) or bool(np.any(targets.ids.flat[first] != token)):
        return None
    return BatchEvidence(
        f"labels of all {targets.rows} rows begin with the decoder's start token (id {token}), which the model itself "
        "puts before them",
        targets.numbers,
        spots_at(targets, first, 2),
    )


def _doubled(batch: Batch, side: Sequences, bos: int) -> Ints:
    start, stop = side.bounds
    if bos in batch.ends or bos == side.pad:
        if batch.purpose == "pretraining" or (bos == side.pad and side.attended is None):
            return NO_ROWS
        first = start[stop - start > 1]
        twice: Ints = first[(side.ids.flat[first] == bos) & (side.ids.flat[first + 1] == bos)]
        return twice
    at = np.flatnonzero(side.ids.flat == bos)
    at = at[at + 1 < len(side.ids.flat)]
    again = at[side.ids.flat[at + 1] == bos]
    row = side.ids.row_of(again)
    inside: Ints = again[(again >= start[row]) & (again + 1 < stop[row])]
    return inside


def _two_alike(batch: Batch) -> BatchEvidence | None:
    """Without a tokenizer: every row begins with one and the same token twice."""
    if batch.tokenizer is not None or batch.words is not None:
        return None
    for side in batch.full_sides:
        start, stop = side.bounds
        if side.rows < 2 or bool(np.any(stop - start < 3)):
            continue
        one, two = side.ids.flat[start], side.ids.flat[start + 1]
        if bool(np.all(one == one[0])) and bool(np.all(two == one[0])) and int(one[0]) != side.pad:
            return BatchEvidence(
                f"all {side.rows} rows begin with token {int(one[0])} twice", side.numbers, spots_at(side, start, 2)
            )
    return None
