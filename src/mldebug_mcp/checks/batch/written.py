"""Do the chat template and the pairs keep what the data set holds: tool calls, reasoning, text, distinct positives?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.columns import CONTRASTED
from mldebug_mcp.batch.endings import content, pairs
from mldebug_mcp.batch.roles import RowRoles
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.batch.text_problems import ASKED, EMPTY_THINKING, MIN_SHARE_EMPTY, THINKING
from mldebug_mcp.checks.batch.affected_rows import NO_ROWS, batch_evidence, of_rows
from mldebug_mcp.checks.check import Evidence, batch_check


def _evidence(batch: Batch, check: str) -> Evidence | None:
    """Return what reading found for a check, with the rows of all its problems."""
    problems = [problem for problem in batch.problems if problem.check == check]
    if not problems:
        return None
    rows = np.unique(np.array([row for problem in problems for row in problem.rows], np.int64))
    return batch_evidence(f"{problems[0].summary}, in {of_rows(rows, batch.rows)}", rows)


@batch_check(
    severity="error",
    why="The turns that call a tool are rendered empty: the model learns to answer nothing, and never to call.",
    fix="Use a chat template that renders tool_calls and tools, such as the one of the model's instruct version.",
    fixes={"TRL": "pass tools as a column of the data set; set chat_template_path to a template with tools."},
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm", "pretraining", "generation"),
)
def tool_calls_dropped(batch: Batch) -> Evidence | None:
    """The name of a function that a message calls does not appear in the rendered conversation.

    Not this when: no tokenizer with a chat template is given; the rows are tokenized already.
    """
    return _evidence(batch, "tool_calls_dropped")


@batch_check(
    severity="error",
    why="The model never sees its instructions: it learns answers that they do not explain, and ignores them in use.",
    fix="Use a chat template that renders system messages, or put their words before the first question.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm", "pretraining", "generation"),
)
def system_prompt_dropped(batch: Batch) -> Evidence | None:
    """The words of a system message do not appear in the rendered conversation.

    Not this when: no tokenizer with a chat template is given; the rows are tokenized already.
    """
    return _evidence(batch, "system_prompt_dropped")


def _lost(batch: Batch, check: str) -> Evidence | None:
    """Return what is lost of what the model is to write; where it is lost of what it reads alone, a fact."""
    found = _evidence(batch, check)
    asked = None if found is not None else _evidence(batch, check + ASKED)
    return found if asked is None else replace(asked, severity="info")


@batch_check(
    severity="warning",
    why="The model learns an answer that is empty, or one that is the list of parts with its braces.",
    fix="Give each message its text as one string, or take a template that reads parts, as those of processors do.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm", "pretraining", "generation"),
)
def message_parts_lost(batch: Batch) -> Evidence | None:
    """The text of messages that is given in parts is not rendered, or the list of parts is, braces and all.

    A fact where it is so of the messages alone that the model does not write.

    Not this when: no tokenizer with a chat template is given; the text of each part stands in the rendered one.
    """
    return _lost(batch, "message_parts_lost")


@batch_check(
    severity="warning",
    why="The first line loses its depth, and the lines below keep theirs: the model learns code that does not run.",
    fix="Begin answers with a line that has no indent, such as a fence; or take the strip out of the template.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm", "pretraining", "generation"),
)
def first_indent_lost(batch: Batch) -> Evidence | None:
    """The chat template trims a message whose first line is indented, as are lines below it.

    A fact where it is so of the messages alone that the model does not write.

    Not this when: the message is one line, or the lines below it have no indent.
    """
    return _lost(batch, "first_indent_lost")


@batch_check(
    severity="warning",
    why="The model never sees these characters: numbers and words without them are other numbers and words.",
    fix="Train the tokenizer with the whole alphabet of bytes, or add the characters and new embeddings.",
    fixes={"tokenizers": "BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), ...)."},
    quotes=("sanh_tokenizer_outputs",),
)
def characters_without_token(batch: Batch) -> Evidence | None:
    """Letters, digits or signs of the text become no token, and no unknown one stands in their place.

    A fact where it is so of the text alone that the model does not write.

    Not this when: the rows are tokenized already; an unknown token counts them; only marks and spaces are dropped.
    """
    return _lost(batch, "characters_without_token")


@batch_check(
    severity="warning",
    why="The model learns to skip its reasoning: it writes an empty block before every answer.",
    fix="Train with the reasoning, or mask the empty block; where it is meant (a model without thinking), leave it.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm"),
)
def empty_thinking(batch: Batch) -> Evidence | None:
    """Most conversations hold a block of reasoning for the answer, and the blocks of nine in ten of them are empty.

    Not this when: more of the blocks hold reasoning; no template and no text writes one; the blocks are masked.
    """
    return _evidence(batch, "empty_thinking") or _empty_in_tokens(batch)


def _empty_in_tokens(batch: Batch) -> Evidence | None:
    """Look for blocks in tokenized rows, where they are trained on."""
    opened = [row for row in batch.roles if "<think" in row.text and row.side.trained is not None]
    found = [row for row in opened if EMPTY_THINKING.search(row.text) and not _has_reasoning(row)]
    trained = [row for row in found if _is_trained(row)]
    if not trained or 2 * len(trained) <= len(batch.roles) or len(found) < MIN_SHARE_EMPTY * len(opened):
        return None
    rows = np.unique([row.number for row in trained]).astype(np.int64)
    return batch_evidence(f"every block of reasoning is empty, in {of_rows(rows, batch.rows)}", rows)


def _has_reasoning(row: RowRoles) -> bool:
    return len(EMPTY_THINKING.findall(row.text)) < len(THINKING.findall(row.text))


def _is_trained(row: RowRoles) -> bool:
    """Return whether the end of an empty block is trained on."""
    place = next(found.end() - 1 for found in EMPTY_THINKING.finditer(row.text))
    trained = row.side.trained
    return trained is not None and bool(trained[int(row.side.ids.offsets[row.index]) + row.token_at(place)])


# Pairs for embeddings that share their positive.


MIN_PAIRS = 4
"""Pairs of a tokenized batch with one positive. Chosen: two or three happen."""
MIN_SHARE = 0.25
"""Their share of the batch. Chosen: then most anchors meet their positive as a negative."""


def _anchor_and_positive(batch: Batch) -> tuple[Sequences, Sequences] | None:
    """Return the tokenized sides of pairs for embeddings."""
    sides = {side.name: side for side in batch.sides}
    names = next((group[:2] for group in CONTRASTED if set(group[:2]) <= sides.keys()), None)
    return None if names is None or batch.words is not None else (sides[names[0]], sides[names[1]])


def _texts(side: Sequences) -> list[bytes]:
    return [content(side, row).astype(np.int64).tobytes() for row in range(side.rows)]


@batch_check(
    severity="warning",
    why="Losses with in-batch negatives push the anchor from the same text when another pair of the batch holds it.",
    fix="Keep equal positives out of a batch, or use a loss that takes classes or groups.",
    fixes={"sentence-transformers": "batch_sampler=BatchSamplers.NO_DUPLICATES."},
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("embedding",),
)
def positives_shared(batch: Batch) -> Evidence | None:
    """One text is the positive of at least 8 pairs and of a tenth of all, with different anchors.

    In a tokenized batch it is that of at least 4 pairs and of a quarter of all.

    Not this when: the positives recur seldom, so that a usual batch does not hold one twice.
    """
    found = _evidence(batch, "positives_shared")
    sides = _anchor_and_positive(batch)
    if found is not None or sides is None or len(set(_texts(sides[0]))) < sides[0].rows:
        return found
    texts = _texts(sides[1])
    shared = {text for text, n in Counter(texts).items() if n >= max(MIN_PAIRS, MIN_SHARE * len(texts))}
    if not shared:
        return None
    rows = sides[1].numbers[[place for place, text in enumerate(texts) if text in shared]]
    summary = f"{len(rows)} pairs share {len(shared)} positive text(s), in {of_rows(rows, batch.rows)}"
    return batch_evidence(summary, rows)


@batch_check(
    severity="warning",
    why="Such a pair is solved without learning anything: the model gives both the same vector.",
    fix="Drop the pairs whose two texts are equal; see that the columns have different sources.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("embedding",),
)
def anchor_equals_positive(batch: Batch) -> Evidence | None:
    """The anchor and the positive of a pair are the same text.

    Not this when: all pairs are so, as in SimCSE, where dropout tells the two apart.
    """
    found, sides = _evidence(batch, "anchor_equals_positive"), _anchor_and_positive(batch)
    rows = NO_ROWS if found is None else found.rows.numbers
    if sides is not None:
        rows = np.array([pair.number for pair in pairs(*sides) if pair.same], np.int64)
    if not len(rows) or len(rows) >= batch.rows:
        return None
    return batch_evidence(f"anchor and positive are the same in {of_rows(rows, batch.rows)}", rows)
