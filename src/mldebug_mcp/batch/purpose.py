"""The purpose of a batch, if the user did not give it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.batch.agreement import hides_words
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.batch.table import Table
from mldebug_mcp.batch.templates import ASSISTANT

if TYPE_CHECKING:
    from mldebug_mcp.batch.batch import Purpose
    from mldebug_mcp.batch.context import Context

FEW_CLASSES = 64
"""Labels of tokens below this number, and equal to hardly any token, are classes of tokens, not tokens."""
SHARED_PROMPTS = 0.9
_THOUGHT = re.compile(r"</?think(?:ing)?>")
"""What templates of reasoning models open, or open and close, for the answer that is to be generated."""


def is_preference(side: Sequences, table: Table, purpose: Purpose | None) -> bool:
    """Whether the rows are chosen completions followed by the rejected ones of the same prompts."""
    if side.loss_mask is None or side.labels is not None or side.rows < 2 or side.rows % 2:
        return False
    if purpose is not None:
        return purpose == "dpo"
    if "completion_mask" not in table.columns or side.attention is None:
        return False
    return _shares_prompts(side)


def _shares_prompts(side: Sequences) -> bool:
    half = side.rows // 2
    same = 0
    for row in range(half):
        prompts = [_prompt(side, row), _prompt(side, row + half)]
        same += bool(len(prompts[0])) and np.array_equal(prompts[0], prompts[1])
    return same >= SHARED_PROMPTS * half


def _prompt(side: Sequences, row: int) -> Ints:
    assert side.loss_mask is not None  # noqa: S101 - the caller saw one
    trained = np.flatnonzero(side.loss_mask.row(row))
    return side.ids.row(row)[: int(trained[0]) if len(trained) else 0].astype(np.int64)


def infer_purpose(
    sides: list[Sequences],
    floats: Mapping[str, object],
    context: Context,
    table: Table,
    *,
    has_classes: bool,
    has_targets: bool,
) -> Purpose:
    """Return the purpose that the columns and labels suggest."""
    seen = {side.name for side in sides}
    if seen & {"chosen", "rejected"}:
        return "dpo"
    if seen - {"", "prompt", "completion"}:
        return "embedding"
    # Beside a completion, or a mask of it, a label of each row says whether the completion is wanted (KTO).
    has_classes = has_classes and not any(side.loss_mask is not None or side.name == "completion" for side in sides)
    if not has_targets and (not sides or has_classes or "labels" in floats or context.model.token_classification):
        return "classification"
    if not has_targets and ("pixel_values" in floats or any(name.startswith("image_grid") for name in table.columns)):
        return "vlm"
    return "sft" if has_targets else _of_tokens(sides[0], context, table)


def _of_tokens(side: Sequences, context: Context, table: Table) -> Purpose:
    if side.name or side.trained is None:
        return "sft" if not side.name and _has_answers(side, context) else "generation"
    if _labels_are_classes(side):
        return "classification"
    if hides_words(side, context.tokenizer.mask if context.tokenizer is not None else None, table.columns):
        return "pretraining"
    masked = side.content & ~side.trained
    # A packed batch masks the first token of each document; an instruction batch masks prompts.
    return (
        "pretraining"
        if int(masked.sum()) <= 0.02 * int(side.content.sum()) and not _has_roles(side, context)
        else "sft"
    )


def _labels_are_classes(side: Sequences) -> bool:
    if side.labels is None or side.trained is None:
        return False
    # Padding may be labelled with class 0, which is the padding token's number too.
    used = side.trained & side.content
    labels, ids = side.labels.flat[used], side.ids.flat[used]
    if not len(labels) or int(labels.max()) >= FEW_CLASSES or int(labels.min()) < 0 or int(ids.max()) < 2 * FEW_CLASSES:
        return False
    return float(np.mean(labels == ids)) < 0.05


def _has_roles(side: Sequences, context: Context) -> bool:
    """Whether the first rows show the turns of a conversation."""
    from mldebug_mcp.batch.roles import read_roles

    if context.tokenizer is None:
        return False
    return any(read_roles(side, index, context.tokenizer).turns for index in range(min(side.rows, 4)))


def _has_answers(side: Sequences, context: Context) -> bool:
    """Whether the first rows end with the words of an assistant, not with the marker before them."""
    from mldebug_mcp.batch.roles import read_roles

    if context.tokenizer is None:
        return False
    rows = [read_roles(side, index, context.tokenizer) for index in range(min(side.rows, 4))]
    return any(
        row.turns and row.turns[-1].role == ASSISTANT and _THOUGHT.sub("", row.words(row.turns[-1])).strip()
        for row in rows
    )
