"""The template or tokenizer asks for a first token and rows lack it."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.documents import holds_documents
from mldebug_mcp.batch.ragged import Bools
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    rows_that,
    rows_where,
)


@batch_check(
    severity="warning",
    why="A model that always saw a first token in pretraining is far off without it (Gemma most of all).",
    fix=(
        "Tokenize through tokenizer.apply_chat_template(..., tokenize=True), or with add_special_tokens=True where the "
        "text does not hold the first token yet."
    ),
    fixes={
        "Axolotl": "see that the chat template writes {{ bos_token }}.",
        "Unsloth": "use get_chat_template for the model; do not strip the first token from the formatted text.",
        "LLaMA-Factory": "use the model's own template.",
    },
    quotes=("unsloth_bos_hypotheses", "transformers_template_special_tokens"),
)
def missing_bos(batch: Batch) -> BatchEvidence | None:
    """The tokenizer or its chat template puts a first token before a text, and rows begin without it.

    Not this when: the model has no such token, or neither tokenizer nor template writes it; rows are pieces of a
    stream and the token stands inside them; a row is a single token (`empty_row`).
    """
    tokenizer = batch.tokenizer
    if tokenizer is None or tokenizer.bos is None or not (tokenizer.adds_bos or tokenizer.template_adds_bos):
        return None
    if tokenizer.template is not None and not tokenizer.template_adds_bos and any(row.turns for row in batch.roles):
        return None
    bos = tokenizer.bos
    sides = [side for side in batch.full_sides if not _is_piece_of_stream(batch, side, bos)]
    rows = rows_where(sides, lambda side: _begins_otherwise(side, bos))
    if not len(rows):
        return None
    does = rows_that(rows, batch.rows, "does", "do")
    return BatchEvidence(f"{does} not begin with {tokenizer.hf.bos_token} (id {bos})", rows)


def _begins_otherwise(side: Sequences, bos: int) -> Bools:
    start, stop = side.bounds
    some: Bools = stop > start + 1
    some[some] = side.ids.flat[start[some]] != bos
    return some


def _is_piece_of_stream(batch: Batch, side: Sequences, bos: int) -> bool:
    if batch.purpose != "pretraining" and not holds_documents(batch, side):
        return False
    return bool(np.any(side.ids.flat == bos)) or (
        bool(len(side.lengths)) and bool(np.all(side.lengths == side.lengths[0])) and side.rows > 1
    )
