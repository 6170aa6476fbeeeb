"""Role markers of another template, as plain text."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.other_templates import rows_of_another_template
from mldebug_mcp.batch.templates import marker_before
from mldebug_mcp.batch.text_problems import LEAST, MOST
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    Spot,
    batch_check,
    of_rows,
    rows_that,
)


@batch_check(
    severity="error",
    why=(
        "The model reads another model's markers as ordinary words: it neither knows whose turn it is nor learns "
        "its own markers."
    ),
    fix="Render conversations with this tokenizer's own apply_chat_template.",
    fixes={
        "Unsloth": "get_chat_template(tokenizer, chat_template=...) with the model's own name.",
        "Axolotl": "chat_template: tokenizer_default.",
        "LLaMA-Factory": "template: the name that belongs to the model.",
    },
    quotes=("unsloth_chat_template", "transformers_template_special_tokens"),
)
def chat_template_mismatch(batch: Batch) -> BatchEvidence | None:
    """Rows show user and assistant markers of another template, which are not tokens of this tokenizer.

    Or the words of the turns themselves begin with role markers in most rows: a template was applied before.

    Not this when: the tokenizer's own markers frame the row and another's are only mentioned; the markers are plain
    words by design, as Alpaca's and Vicuna's are; the tokenizer has them as tokens.
    """
    if (twice := _inside_turns(batch)) is not None:
        return twice
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return None
    own = tokenizer.template.family if tokenizer.template is not None else None
    found = rows_of_another_template(batch)
    if not found:
        return None
    rows = np.unique([row.number for row in found])
    name = found[0].family.name if found[0].family is not None else ""
    whose = (
        f"the tokenizer's template is {own.name}"
        if own is not None
        else "the tokenizer has no such tokens and no template"
    )
    return BatchEvidence(
        f"{rows_that(rows, batch.rows, 'holds', 'hold')} {name} role markers as plain text; {whose}",
        rows,
        tuple(Spot(row.side, row.index, row.turns[0].header, row.turns[0].start) for row in found[:3]),
        severity=None if own is not None else "warning",
    )


def _inside_turns(batch: Batch) -> BatchEvidence | None:
    """Return the rows whose turns have markers of their own and begin with others, if most rows do."""
    told = [row for problem in batch.problems if problem.check == "chat_template_mismatch" for row in problem.rows]
    rows = np.unique(told).astype(np.int64)
    if not len(rows):
        seen = [row for row in batch.roles if row.turns]
        marked = np.unique([row.number for row in seen if any(marker_before(row.words(turn)) for turn in row.turns)])
        rows = marked.astype(np.int64) if len(marked) >= max(LEAST, MOST * len(seen)) else rows
    if not len(rows):
        return None
    return BatchEvidence(f"the turns of {of_rows(rows, batch.rows)} have role markers inside their words", rows)
