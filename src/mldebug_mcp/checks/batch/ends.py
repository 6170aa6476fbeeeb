"""Do rows begin and end with the right tokens, and is the end token trained on?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import LOOK_BACK, all_endings, holds_documents
from mldebug_mcp.batch.sequences import Bools, Ints, Sequences, hides_words, shift_of
from mldebug_mcp.checks.batch.affected_rows import (
    NO_ROWS,
    batch_evidence,
    gather,
    of_rows,
    rows_that,
    rows_where,
    spots_at,
)
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.models.base import Severity

# Rows start with two first tokens.


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
def double_bos(batch: Batch) -> Evidence | None:
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
    _, rows, spots = gather(((side, _doubled(batch, side, bos)) for side in batch.sides), width=2)
    if not len(rows):
        return None
    begins = rows_that(rows, batch.rows, "begins", "begin")
    return batch_evidence(f"{begins} with the first token (id {bos}) twice", rows, spots)


def _started(batch: Batch, targets: Sequences) -> Evidence | None:
    start, stop = targets.bounds
    first = start[stop > start]
    token = batch.model.decoder_start
    if token is None or token == batch.model.pad or not len(first) or bool(np.any(targets.ids.flat[first] != token)):
        return None
    return batch_evidence(
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


def _two_alike(batch: Batch) -> Evidence | None:
    """Without a tokenizer: every row begins with the same token twice."""
    if batch.tokenizer is not None or batch.words is not None:
        return None
    for side in batch.full_sides:
        start, stop = side.bounds
        if side.rows < 2 or bool(np.any(stop - start < 3)):
            continue
        array, two = side.ids.flat[start], side.ids.flat[start + 1]
        if bool(np.all(array == array[0])) and bool(np.all(two == array[0])) and int(array[0]) != side.pad:
            return batch_evidence(
                f"all {side.rows} rows begin with token {int(array[0])} twice", side.numbers, spots_at(side, start, 2)
            )
    return None


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
def missing_bos(batch: Batch) -> Evidence | None:
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
    return batch_evidence(f"{does} not begin with {tokenizer.bos_text} (id {bos})", rows)


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


@batch_check(
    severity="error",
    why="The model never sees an end after an answer, so it does not learn to stop.",
    fix=(
        "Append tokenizer.eos_token to each text or completion, or use a chat template that ends the assistant's turn; "
        "in TRL set eos_token in SFTConfig to the template's end of turn."
    ),
    fixes={
        "Unsloth": "append EOS_TOKEN = tokenizer.eos_token in the formatting function.",
        "Axolotl": "special_tokens: eos_token must be the one that the chat template writes.",
        "LLaMA-Factory": "use the template of the model; its stop words end each answer.",
    },
    quotes=("trl_eos_align", "axolotl_faq_eos_mismatch"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def missing_eos(batch: Batch) -> Evidence | None:
    """Completions stop without an end token although the row had room for one.

    Where no tokenizer says which tokens end, rows that had room and share none of their last tokens lack one.

    Not this when: the row is as long as rows can be (`truncated_completion`); the end token is there but masked
    (`eos_masked`); the rows are pieces of a longer stream, as in pretraining, and end tokens stand inside them.
    """
    if not batch.ends:
        return _no_common_end(batch)
    _, rows, spots = gather(
        (side, found.last[found.open])
        for side, found in all_endings(batch)
        # `document_end_missing` looks at all documents of a corpus
        if not (batch.purpose == "pretraining" and (batch.is_corpus or _is_stream(batch, side)))
    )
    if not len(rows):
        return None
    severity: Severity | None = "warning" if batch.purpose == "pretraining" or 2 * len(rows) < batch.rows else None
    return batch_evidence(
        f"the completions of {of_rows(rows, batch.rows)} do not end with an end token", rows, spots, severity=severity
    )


MIN_ROWS_WITH_ROOM = 8
"""Completions that have to break off before the greatest length. Chosen: fewer may end alike, or not, by chance."""
MAX_SHARE_OF_AN_END = 0.25
"""Share of rows that one token ends at most, where no token is the end. Chosen: a full stop ends more of most texts."""


def _no_common_end(batch: Batch) -> Evidence | None:
    """Find completions, trained on to the row's end, whose last tokens are another in nearly each row."""
    if batch.rows_are_for not in ("sft", "vlm"):
        return None
    for side in batch.sides:
        runs = side.trained_runs
        if runs is None or side.name == "prompt" or side.packed or shift_of(side) != 0:
            continue
        at_end = (runs.stop == side.bounds[1][runs.row]) & (side.lengths[runs.row] < side.lengths.max())
        stop, rows = runs.stop[at_end], runs.row[at_end]
        if len(rows) < MIN_ROWS_WITH_ROOM or 2 * len(rows) < side.rows:
            continue
        last = [side.ids.flat[np.maximum(stop - back, 0)] for back in range(1, LOOK_BACK + 1)]
        if max(np.unique(tokens, return_counts=True)[1].max() for tokens in last) <= MAX_SHARE_OF_AN_END * len(rows):
            summary = (
                f"no token ends the completions of {of_rows(side.numbers[rows], batch.rows)}: their last ones differ"
            )
            return batch_evidence(summary, side.numbers[rows], spots_at(side, stop - 1), severity="warning")
    return None


def _is_stream(batch: Batch, side: Sequences) -> bool:
    """Whether rows are pieces of one long text: all of one length, or with ends of documents inside."""
    if side.rows == 1 or bool(np.all(side.lengths == side.lengths[0])):
        return True
    return bool(np.isin(side.ids.flat[side.content], np.fromiter(batch.ends, np.int64)).any())


@batch_check(
    severity="error",
    why="The model never learns to stop: it answers and then runs on until the length limit.",
    fix=(
        "Keep the label of the real end token: mask padding by the attention mask, not by comparing with pad_token_id, "
        "or give the tokenizer a padding token of its own. With {% generation %} marks, put the end token inside them."
    ),
    fixes={
        "Transformers": (
            "DataCollatorForLanguageModeling masks every pad_token_id: set pad_token to another token than eos."
        ),
        "Axolotl": "train_on_eos: turn (and train_on_eot), special_tokens: pad_token: another token.",
        "Unsloth": "set tokenizer.pad_token to a token that is not the end token.",
        "LLaMA-Factory": (
            "see that the template's stop words are trained on (efficient_eos: false), pad token other than eos."
        ),
    },
    quotes=("trl_eos_align", "axolotl_faq_eos_mismatch"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def eos_masked(batch: Batch) -> Evidence | None:
    """Completions end with an end token whose label is the ignore index, and no end token of the row is trained on.

    Not this when: padding and end are the same token and the first, real one keeps its label; some turn's end in the
    row is trained on; the completion was cut off; words are hidden at random.
    """
    _, rows, spots = gather(
        (side, found.last[found.masked] + 1)
        for side, found in all_endings(batch)
        if not hides_words(side, batch.mask, batch.columns) and shift_of(side) in {0, 1}
    )
    if not len(rows):
        return None
    summary = f"the end token in {of_rows(rows, batch.rows)} is masked, and no other end of the row is trained on"
    return batch_evidence(summary, rows, spots)


@batch_check(
    severity="error",
    why=(
        "Masking by comparing with the padding token takes the label from every real end: the model never learns to"
        " stop."
    ),
    fix="Give the tokenizer a padding token of its own, or mask padding by the attention mask.",
    fixes={
        "Transformers": "not DataCollatorForLanguageModeling with pad_token = eos_token.",
        "Axolotl": "special_tokens: pad_token: another token than the end.",
        "Unsloth": "tokenizer.pad_token = a reserved token of the model.",
        "LLaMA-Factory": "set another pad token in the tokenizer.",
    },
    quotes=("trl_eos_align", "axolotl_faq_eos_mismatch"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def pad_is_eos(batch: Batch) -> Evidence | None:
    """Padding and end are the same token, and the real ends are masked as if they were padding.

    Not this when: real ends keep their label: then the two may be the same; words are hidden at random (a masked
    language model), where special tokens are never targets.
    """
    rows = NO_ROWS
    for side, found in all_endings(batch):
        if hides_words(side, batch.tokenizer.mask if batch.tokenizer is not None else None, batch.columns):
            continue
        if side.pad is None or side.pad not in batch.ends:
            continue
        masked = np.flatnonzero(found.masked)
        ended_by_pad = side.ids.flat[found.last[masked] + 1] == side.pad
        rows = np.union1d(rows, side.numbers[masked[ended_by_pad]])
    if not len(rows):
        return None
    return batch_evidence(
        f"the padding token is the end token, and the real end of {of_rows(rows, batch.rows)} is masked with it", rows
    )


@batch_check(
    severity="warning",
    why="The model learns from answers that break off, and sees fewer ends than answers.",
    fix="Raise max_length (SFTConfig, DPOConfig) or leave out rows that do not fit; a few in a thousand do no harm.",
    fixes={
        "Axolotl": "raise sequence_len, or excess_length_strategy: drop.",
        "Unsloth": "raise max_seq_length.",
        "LLaMA-Factory": "raise cutoff_len.",
    },
    quotes=("trl_maxlen_discard",),
    purposes=("sft", "dpo", "vlm"),
)
def truncated_completion(batch: Batch) -> Evidence | None:
    """Rows fill the greatest length of the batch and their completion does not end with an end token.

    Or, in text, the answer opens its reasoning (<think>) and ends without closing it; or many answers end in the middle
    of a sentence at exactly the same number of characters.

    Not this when: the row ends with an end token just at the limit; the prompt was cut at its left; rows are packed.
    One full row without an end counts if other rows do end, or if the length is a known or a round limit.
    """
    endings = list(all_endings(batch))
    judged = sum(int((found.last >= 0).sum()) for _, found in endings)
    _, rows, spots = gather((side, found.last[found.cut]) for side, found in endings)
    problem = next((problem for problem in batch.problems if problem.check == "truncated_completion"), None)
    if problem is not None and not len(rows):
        cut = np.array(problem.rows, np.int64)
        return batch_evidence(f"{of_rows(cut, batch.rows)} {problem.summary}", cut)
    if not len(rows):
        return None
    # Chosen by hand: below one row in a hundred the lost ends do not matter.
    severity: Severity | None = "info" if len(rows) < 0.01 * judged else None
    summary = f"the completions of {of_rows(rows, batch.rows)} are cut off at the greatest length of the batch"
    return batch_evidence(summary, rows, spots, severity=severity)
