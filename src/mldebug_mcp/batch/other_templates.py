"""Rows whose role markers are those of another template than the tokenizer's."""

from __future__ import annotations

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.roles import RowRoles
from mldebug_mcp.batch.tokenizer import Tokenizer

PLAIN_WITHOUT_TEMPLATE = frozenset({"Mistral", "Zephyr"})
"""Families whose first models spelt their markers in ordinary tokens."""


def rows_of_another_template(batch: Batch) -> list[RowRoles]:
    """Return the rows that hold role markers of another template than the tokenizer's, as plain text."""
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return []
    own = tokenizer.template.family if tokenizer.template is not None else None
    return [
        row
        for row in batch.roles
        if row.turns
        and row.family is not None
        and row.family is not own
        and not row.family.plain
        and (own is not None or row.family.name not in PLAIN_WITHOUT_TEMPLATE)
        and not _is_token(tokenizer, row)
    ]


def _is_token(tokenizer: Tokenizer, row: RowRoles) -> bool:
    """Whether the first role marker of a row begins with a token that is special or was added."""
    place = int(row.side.ids.offsets[row.index]) + row.turns[0].header
    number = int(row.side.ids.flat[place])
    return number in tokenizer.special_ids or number in tokenizer.hf.added_tokens_decoder
