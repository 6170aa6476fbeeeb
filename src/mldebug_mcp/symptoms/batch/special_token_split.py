"""Special tokens were tokenized as plain text."""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.roles import RowRoles
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    Spot,
    batch_check,
    of_rows,
)


@batch_check(
    severity="error",
    why="The model gets a few ordinary tokens where a special one is due: no first token, no end, no turns.",
    fix=(
        "Tokenize with the fast tokenizer of the model and split_special_tokens=False; append "
        "tokenizer.eos_token_id as an id, not as text."
    ),
    fixes={
        "Axolotl": "list added markers under special_tokens: or tokens:.",
        "Unsloth": "append tokenizer.eos_token, not a literal of another model.",
        "LLaMA-Factory": "split_special_tokens: false; add_special_tokens for your own.",
    },
    quotes=("sanh_tokenizer_outputs", "transformers_template_special_tokens"),
)
def special_token_split(batch: Batch) -> BatchEvidence | None:
    """The text of a special token is spelt by ordinary tokens, at a place where it matters.

    Not this when: a text mentions such a token in passing, and the row's real ones are whole. What counts: the end
    token at the end of a row, the first token at its beginning, or two different special tokens, none of which is
    whole anywhere in the row.
    """
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return None
    found = [(row, split) for row in batch.roles if (split := _split(tokenizer, row))]
    if not found:
        return None
    rows = np.unique([row.number for row, _ in found])
    texts = sorted({text for _, split in found for text in split})
    said = f"in {of_rows(rows, batch.rows)} special tokens are spelt by ordinary ones: {', '.join(texts[:4])}"
    return BatchEvidence(said, rows, tuple(_spot(row, split) for row, split in found[:3]))


def _split(tokenizer: Tokenizer, row: RowRoles) -> dict[str, int]:
    """Return the special tokens that a row spells where they matter, with the character where each begins."""
    offset = int(row.side.ids.offsets[row.index])
    spelt: dict[str, int] = {}
    for text, number in tokenizer.special.items():
        if len(text) < 3 or text not in row.text:
            continue
        places = [found.start() for found in re.finditer(re.escape(text), row.text)]
        if not any(int(row.side.ids.flat[offset + row.token_at(place)]) == number for place in places):
            spelt[text] = places[-1]
    if len(spelt) >= 2:
        return spelt
    hf = tokenizer.hf
    stripped = row.text.rstrip()
    return {
        text: place
        for text, place in spelt.items()
        if (tokenizer.special[text] in tokenizer.ends and stripped.endswith(text))
        or (text == hf.bos_token and row.text.lstrip().startswith(text))
    }


def _spot(row: RowRoles, split: dict[str, int]) -> Spot:
    text, place = next(iter(split.items()))
    return Spot(row.side, row.index, row.token_at(place), row.token_at(place + len(text) - 1) + 1)
