"""Do token ids fit the vocabulary, and do rows begin and end with the right tokens?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import LOOK_BACK, all_endings, holds_documents
from mldebug_mcp.batch.roles import RowRoles
from mldebug_mcp.batch.sequences import Bools, Ints, Runs, Sequences, count_rows, hides_words, shift_of
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.checks.batch import (
    NO_ROWS,
    batch_evidence,
    gather,
    in_rows,
    of_rows,
    problem_evidence,
    problems_of,
    rows_of,
    rows_where,
    spots_at,
)
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.models.base import Severity

# Token ids outside the model's vocabulary.


UNKNOWN_LIMIT = 2**31
"""Ids that are out of range where the size of the vocabulary is not known. Chosen: no vocabulary reaches it."""
LLAVA_IMAGE = -200
"""The id by which an image is marked in input_ids. Source: LLaVA, `IMAGE_TOKEN_INDEX`."""


@batch_check(
    severity="error",
    why="The embedding or the loss is indexed out of bounds: a device-side assert on a GPU, or memory read at random.",
    fix=(
        "model.resize_token_embeddings(len(tokenizer)) after adding tokens; use the tokenizer of this model; mask "
        "labels with -100."
    ),
    fixes={
        "Axolotl": "tokens: and special_tokens: add tokens and resize; set resize_token_embeddings_to_32x if wanted.",
        "Unsloth": "add tokens with unsloth.add_new_tokens before get_peft_model.",
        "LLaMA-Factory": "resize_vocab: true.",
    },
    quotes=("hfcourse_decode_inputs",),
)
def token_id_out_of_range(batch: Batch) -> Evidence | None:
    """An id or label is negative (but not the ignore index) or at least the size of the vocabulary.

    So is a token type that the model has no embedding for.

    Not this when: the size is not known and the ids could be some model's; a LLaVA batch marks images by -200.
    """
    limit = batch.vocabulary or UNKNOWN_LIMIT
    places, worst = [], 0
    for side in (*batch.sides, *(() if batch.targets is None else (batch.targets,))):
        allowed = LLAVA_IMAGE if batch.purpose == "vlm" else None
        labels = None if batch.purpose == "classification" or side.labelled_by_itself else side.labels
        for column, exempt in ((side.ids, allowed), (labels, IGNORED_LABEL)):
            if column is None:
                continue
            wrong = _outside(column.flat, limit, exempt)
            if labels is not None and column is labels and len(column.flat) == len(side.ids.flat):
                wrong = wrong[column.flat[wrong] != side.ids.flat[wrong]]  # a label that copies its token counts once
            if len(wrong):
                worst = max(worst, int(column.flat[wrong[0]]), int(column.flat[wrong].max()), key=abs)
                places.append((side, wrong))
    if not places:
        return problem_evidence(batch, "token_id_out_of_range")
    count, rows, spots = gather(places)
    known = f"a vocabulary of {limit}" if batch.vocabulary else "any vocabulary"
    what = "1 id or label" if count == 1 else f"{count} ids or labels"
    verb = "is" if count == 1 else "are"
    summary = f"{what} in {{rows}} {verb} outside {known} (such as {worst})"
    return in_rows(batch, rows, summary, spots, {"count": count, "example": worst})


def _outside(flat: Ints, limit: int, exempt: int | None) -> Ints:
    if not len(flat) or (int(flat.min()) >= 0 and int(flat.max()) < limit):
        return NO_ROWS  # of most batches, and cheaper than to compare each id
    return np.flatnonzero(((flat < 0) | (flat >= limit)) & (flat != exempt))


# Rows whose words the vocabulary lacks.


MIN_SHARE_UNKNOWN = 0.5
"""Share of a row's tokens that are unknown. Chosen: names and signs leave a few, another script nearly all."""
MIN_TOKENS_FOR_UNKNOWN = 4
"""Tokens that such a row has, special ones left out. Chosen: of fewer, one rare word is half."""
MAX_SHARE_OF_ROWS_FOR_REMARK = 0.01
"""Share of the rows up to which it is a remark. Chosen: data from the web has as many in other languages."""


@batch_check(
    severity="warning",
    why="Different words become the same token: the model cannot tell such rows apart, and learns nothing of them.",
    fix=(
        "Use a model whose tokenizer knows the language and its script; see that an uncased vocabulary gets lower "
        "case, and that the text is decoded rightly."
    ),
    quotes=("hfcourse_decode_inputs",),
)
def unknown_tokens(batch: Batch) -> Evidence | None:
    """At least half of a row's tokens stand for what the vocabulary lacks.

    Not this when: a row has fewer than four tokens; the tokenizer has no such token, or it ends or pads texts too.
    """
    unknown = None if batch.tokenizer is None else batch.tokenizer.unknown_alone
    if batch.tokenizer is None or unknown is None:
        return None
    special = np.fromiter(batch.tokenizer.special_ids, np.int64)
    rows = rows_where(batch.sides, lambda side: _mostly(side, unknown, special))
    severity: Severity | None = "info" if len(rows) <= MAX_SHARE_OF_ROWS_FOR_REMARK * batch.rows else None
    token = batch.tokenizer.pieces([unknown])[0].strip()
    summary = f"most tokens of {{rows}} are {token}: the vocabulary lacks their words"
    return in_rows(batch, rows, summary, values={"rows": len(rows)}, severity=severity)


def _mostly(side: Sequences, token: int, special: Ints) -> Bools:
    """Return the rows at least half of whose ordinary tokens are this one."""
    if not bool(np.any(side.ids.flat == token)):
        return np.zeros(side.rows, np.bool_)
    ordinary = side.content & ~np.isin(side.ids.flat, special)
    words = count_rows(np.flatnonzero(ordinary), side.ids)
    found = count_rows(np.flatnonzero(ordinary & (side.ids.flat == token)), side.ids)
    mostly: Bools = (words >= MIN_TOKENS_FOR_UNKNOWN) & (found >= MIN_SHARE_UNKNOWN * words)
    return mostly


# Tokenizer and model vocabulary sizes do not fit.


MOST_SPARE = 512
"""Tokens that a model may have beyond its tokenizer's. Chosen: a small padded vocabulary has a large share to spare."""
SHARE_SPARE = 0.05
"""Share of tokens that its tokenizer may lack. Chosen: twice the widest usual padding, 2.3 % in DeepSeek V2."""


@batch_check(
    severity="error",
    why="Tokens beyond the embeddings crash the run; a tokenizer of another model makes every row nonsense.",
    fix=(
        "Load tokenizer and model from the same place; after adding tokens call "
        "model.resize_token_embeddings(len(tokenizer))."
    ),
    fixes={
        "Axolotl": "leave tokenizer_config unset unless it is the base model's.",
        "Unsloth": "use the tokenizer that from_pretrained returned.",
        "LLaMA-Factory": "resize_vocab: true after new_special_tokens.",
    },
    quotes=("unsloth_uninitialised_weights", "hfcourse_decode_inputs"),
)
def vocab_size_mismatch(batch: Batch) -> Evidence | None:
    """The tokenizer knows more tokens than the model has, or far fewer, or the batch holds ids that it does not know.

    Not this when: the model's vocabulary is padded to a round number beyond the tokenizer's. The widest such padding
    among common models is 2.3 % (DeepSeek V2); above 5 % and 512 tokens it is called a mismatch.
    """
    tokenizer, model = batch.tokenizer, batch.model.vocab_size
    if tokenizer is None:
        return None
    if model is not None and tokenizer.size > model:
        return batch_evidence(
            f"the tokenizer has {tokenizer.size} tokens, the model {model}",
            values={"tokenizer": tokenizer.size, "model": model},
        )
    if model is not None:
        rows = rows_where(batch.sides, lambda side: _unknown(side, tokenizer.size, model))
        if len(rows):
            does_not = f"that the tokenizer does not know (it has {tokenizer.size} tokens, the model {model})"
            return in_rows(batch, rows, f"{{rows holds|hold}} ids {does_not}")
        if model - tokenizer.size > max(MOST_SPARE, SHARE_SPARE * model):
            summary = f"the model has {model} tokens, the tokenizer only {tokenizer.size}"
            return batch_evidence(summary, values={"tokenizer": tokenizer.size, "model": model}, severity="warning")
    return None


def _unknown(side: Sequences, size: int, limit: int) -> Bools:
    return count_rows(np.flatnonzero((side.ids.flat >= size) & (side.ids.flat < limit)), side.ids) > 0


NAMES = ("<|image_pad|>", "<image>", "<image_soft_token>", "<|image|>", "[IMG]", "<IMG_CONTEXT>")
"""Placeholders of Qwen-VL, LLaVA, Gemma 3, Llama 3.2, Pixtral and InternVL."""


@batch_check(
    severity="error",
    why="The model raises an error over the number of image features, or answers about an image that it sees in part.",
    fix="max_length=None in SFTConfig or DPOConfig for vision-language models, or large enough for the image tokens.",
    fixes={
        "Axolotl": "raise sequence_len; skip_prepare_dataset and remove_unused_columns: false for multimodal data.",
        "Unsloth": "raise max_seq_length; use UnslothVisionDataCollator.",
        "LLaMA-Factory": "raise cutoff_len or lower image_max_pixels.",
    },
    quotes=("trl_vlm_truncation",),
)
def image_tokens_truncated(batch: Batch) -> Evidence | None:
    """The placeholders of images are fewer or more than the image features, or a row ends in the middle of them.

    Not this when: the batch has no images and no placeholders; images differ in size and the grid sizes account for it.
    """
    token = _placeholder(batch)
    problems = problems_of(batch, "image_tokens_truncated")
    if problems:
        summary = "{rows has|have} another number of images than of <image> in the text"
        return in_rows(batch, rows_of(problems[:1]), summary)
    if token is None:
        return None
    for side in batch.sides:
        found = side.ids.runs(side.ids.flat == token)
        count = int((found.stop - found.start).sum())
        expected = _expected(batch, count)
        cut = _cut_runs(side, found)
        if len(cut):
            rows = np.unique(side.numbers[found.row[cut]])
            summary = "{rows ends|end} in the middle of an image's placeholders"
            return in_rows(batch, rows, summary, spots_at(side, found.start[cut]), {"placeholders": count})
        if expected is not None and expected != count:
            wrong = _wrong_runs(batch, found)
            rows = np.unique(side.numbers[found.row if wrong is None else found.row[wrong]])
            where = "" if wrong is None else f"; they differ in {of_rows(rows, batch.rows)}"
            summary = f"{count} image placeholders in the batch, {expected} are wanted by its images{where}"
            return batch_evidence(summary, rows, values={"placeholders": count, "expected": expected})
    return None


def _placeholder(batch: Batch) -> int | None:
    if batch.model.image_token is not None:
        return batch.model.image_token
    if batch.tokenizer is None:
        return None
    return next((batch.tokenizer.special[name] for name in NAMES if name in batch.tokenizer.special), None)


def _expected(batch: Batch, count: int) -> int | None:
    """Return how many placeholders the images of the batch take, or None if that is not known."""
    grid = batch.integers.get("image_grid_thw")
    if grid is not None:
        merge = batch.model.image_merge or 2
        return int(np.prod(grid.reshape(-1, 3), axis=1).sum()) // merge**2
    pixels = batch.floats.get("pixel_values")
    if pixels is None or pixels.ndim not in (4, 5):
        return None
    images = int(np.prod(pixels.shape[: pixels.ndim - 3]))
    if batch.model.image_tokens is not None:
        return images * batch.model.image_tokens
    # One size for all images: the placeholders divide evenly among them, or stand for one image each.
    return None if images and count and count % images == 0 else images


def _wrong_runs(batch: Batch, found: Runs) -> Ints | None:
    """Return the images whose placeholders do not fit their grid, where each stretch of placeholders is one image."""
    grid = batch.integers.get("image_grid_thw")
    if grid is None or len(grid.reshape(-1, 3)) != len(found):
        return None
    wanted = np.prod(grid.reshape(-1, 3), axis=1) // (batch.model.image_merge or 2) ** 2
    return np.flatnonzero(found.stop - found.start != wanted)


def _cut_runs(side: Sequences, found: Runs) -> Ints:
    """Return the runs that end with their row and are shorter than the others."""
    if len(found) < 2:
        return NO_ROWS
    length = found.stop - found.start
    _, stop = side.bounds
    return np.flatnonzero((found.stop == stop[found.row]) & (length < length.max()))


# Token ids are those of another tokenizer.


ROWS_COMPARED = 32
"""Rows that are compared. Chosen: all rows of a data set have the same tokenizer."""
TOKENS_COMPARED = 512
"""Tokens of a row that are compared. Chosen: a text of some paragraphs."""
MIN_TOKENS_COMPARED = 64
"""Tokens from which a share of them tells. Chosen: of fewer, edges explain it."""
EDGE_TOKENS = 2
"""Tokens at each end of a stretch that are not compared: it may begin inside a word, or lose a space."""
MIN_STRETCH = 3 * EDGE_TOKENS
"""Tokens of a stretch that is compared. Chosen: a third of it is away from its ends."""
MAX_SHARE_LOST = 0.08
"""Share of further tokens that do not come back. Chosen: of a tokenizer's own ids none is lost, but where texts that
were tokenized apart meet."""
MAX_SHARE_LOST_OF_LONG = 0.02
"""The same where the tokens are as long as those of the vocabulary are on average. Chosen: either alone may have
another reason; the own texts of nine tokenizers show neither."""
MAX_LENGTH_SHARE = 0.75
"""Length of the tokens, as a part of the mean length of the vocabulary's. Chosen: in text short tokens are the common
ones, so English, German, Chinese, source code and numbers show 0.14 to 0.70; ids that mean something else, up to 1."""
VOCABULARY_COMPARED = 2_000
"""Tokens of the vocabulary whose lengths are averaged, spread evenly. Chosen: more move the mean by a hundredth."""
MIN_VOCABULARY = 1_000
"""Tokens of a vocabulary in which lengths differ enough. Chosen: by hand."""
MAX_SHARE_UNREADABLE = 0.02
"""Characters that no bytes make, for each token. Chosen: text has none but where it is cut inside a character."""
UNREADABLE = "\ufffd"
MIN_SHARE_REPEATED = 0.95
"""Share of tokens that come back where the first text is tokenized again. Chosen: where all is kept it is 1."""


@batch_check(
    severity="warning",
    why="The model reads other words than were written: all it knows of its tokens is wrong for them.",
    fix="Tokenize with the tokenizer of the model that is trained; prepare cached data sets again.",
    fixes={
        "Axolotl": "delete last_run_prepared and prepare the data again.",
        "LLaMA-Factory": "set overwrite_cache: true once.",
    },
    quotes=("hfcourse_decode_inputs",),
)
def tokenizer_mismatch(batch: Batch) -> Evidence | None:
    """The ids decode to a text from which this tokenizer makes other ids, or some rows have other ids than their text.

    Not this when: the tokenizer does not give the same ids for a text that it wrote; words are hidden at random; words
    are split at random on purpose (subword regularisation); a model sampled the ids, as completions with advantages.
    A vocabulary of whole words with their spaces (Unigram) makes most ids again whatever they meant: there it is seldom
    seen.
    """
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return None
    if problems := problems_of(batch, "tokenizer_mismatch"):
        return batch_evidence(problems[0].summary, rows_of(problems))
    written = any(name.startswith("advantage") or "logp" in name for name in batch.columns)
    hidden = [
        side
        for side in batch.sides
        if hides_words(side, batch.mask, batch.columns) or (written and side.name == "completion")
    ]
    found: list[_Comparison] = []
    rows: list[int] = []
    for row in batch.roles[:ROWS_COMPARED]:
        if any(row.side is side for side in hidden):
            continue
        compared = [_compared(tokenizer, stretch) for stretch in _stretches(row, tokenizer.special_ids)]
        if _are_of_another(compared, tokenizer):
            rows.append(row.number)
        found += compared
    tokens = sum(comparison.tokens for comparison in found)
    if tokens < MIN_TOKENS_COMPARED or not _are_of_another(found, tokenizer):
        return None
    numbers = np.unique(np.array(rows, np.int64))
    kept = sum(comparison.kept for comparison in found)
    return batch_evidence(
        f"of {tokens} tokens this tokenizer makes {kept} again from their own text: they may be those of another one",
        numbers,
        values={"tokens": tokens, "kept": kept},
    )


class _Comparison(NamedTuple):
    """What becomes of tokens whose text is tokenized again.

    Args:
        tokens: How many there are.
        kept: How many come back.
        repeated: Of as many, how many come back from the text of the first attempt.
        unreadable: Characters of their text that no bytes make.
        length: Characters of their text, without spaces.
    """

    tokens: int
    kept: int
    repeated: float
    unreadable: int
    length: int


def _are_of_another(found: list[_Comparison], tokenizer: Tokenizer) -> bool:
    tokens = sum(comparison.tokens for comparison in found)
    lost = tokens - sum(comparison.kept for comparison in found)
    unreadable = sum(comparison.unreadable for comparison in found) - EDGE_TOKENS * len(found)
    if unreadable > MAX_SHARE_UNREADABLE * tokens:
        return True
    if sum(comparison.repeated for comparison in found) < MIN_SHARE_REPEATED * tokens:
        return False
    if lost > MAX_SHARE_LOST * tokens:
        return True
    length = sum(comparison.length for comparison in found) / max(1, tokens)
    return lost > MAX_SHARE_LOST_OF_LONG * tokens and length > MAX_LENGTH_SHARE * _mean_length(tokenizer)


def _mean_length(tokenizer: Tokenizer) -> float:
    """Return the mean characters of the vocabulary's tokens, without spaces; endless where there are too few."""
    if tokenizer.size < MIN_VOCABULARY:
        return math.inf
    places = range(0, tokenizer.size, max(1, tokenizer.size // VOCABULARY_COMPARED))
    pieces = tokenizer.pieces([place for place in places if place not in tokenizer.special_ids])
    lengths = [len(piece.strip()) for piece in pieces if piece.strip() and UNREADABLE not in piece]
    return sum(lengths) / len(lengths) if lengths else math.inf


def _stretches(row: RowRoles, special: frozenset[int]) -> Iterator[list[int]]:
    stretch: list[int] = []
    start = int(row.side.ids.offsets[row.index]) + row.first
    for token in row.side.ids.flat[start : start + min(TOKENS_COMPARED, len(row.edges) - 1)].tolist():
        if token not in special:
            stretch.append(token)
            continue
        if len(stretch) >= MIN_STRETCH:
            yield stretch
        stretch = []
    if len(stretch) >= MIN_STRETCH:
        yield stretch


def _compared(tokenizer: Tokenizer, ids: list[int]) -> _Comparison:
    if max(ids) >= tokenizer.size or min(ids) < 0:
        return _Comparison(0, 0, 0.0, 0, 0)
    text = tokenizer.text(ids)
    once = tokenizer.encode(text, special=False)
    twice = tokenizer.encode(tokenizer.text(once), special=False)
    inside = ids[EDGE_TOKENS:-EDGE_TOKENS]
    kept = (Counter(inside) & Counter(once)).total()
    repeated = (Counter(once) & Counter(twice)).total() / max(1, len(once))
    length = len("".join(text.split())) * len(inside) // len(ids)
    return _Comparison(len(inside), kept, repeated * len(inside), text.count(UNREADABLE), length)


# Do rows begin and end with the right tokens, and is the end token trained on?


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
    return in_rows(batch, rows, f"{{rows begins|begin}} with the first token (id {bos}) twice", spots)


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
    stream and the token stands inside them; a row is a single token (`empty_row`); the chat template alone writes the
    token, and rows to pretrain on or to go on from are no conversations.
    """
    tokenizer = batch.tokenizer
    if tokenizer is None or tokenizer.bos is None or not (tokenizer.adds_bos or tokenizer.template_adds_bos):
        return None
    if tokenizer.template is not None and not tokenizer.template_adds_bos and any(row.turns for row in batch.roles):
        return None
    plain = batch.purpose in ("pretraining", "generation")
    if plain and not tokenizer.adds_bos and not any(row.turns for row in batch.roles):
        return None
    bos = tokenizer.bos
    sides = [side for side in batch.full_sides if not _is_piece_of_stream(batch, side, bos)]
    rows = rows_where(sides, lambda side: _begins_otherwise(side, bos))
    return in_rows(batch, rows, f"{{rows does|do}} not begin with {tokenizer.bos_text} (id {bos})")


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
    severity: Severity | None = "warning" if batch.purpose == "pretraining" or 2 * len(rows) < batch.rows else None
    return in_rows(batch, rows, "the completions of {rows} do not end with an end token", spots, severity=severity)


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
            summary = "no token ends the completions of {rows}: their last ones differ"
            return in_rows(batch, side.numbers[rows], summary, spots_at(side, stop - 1), severity="warning")
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
    return in_rows(batch, rows, "the end token in {rows} is masked, and no other end of the row is trained on", spots)


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
    return in_rows(batch, rows, "the padding token is the end token, and the real end of {rows} is masked with it")


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
    problems = problems_of(batch, "truncated_completion")
    if problems and not len(rows):
        return in_rows(batch, rows_of(problems[:1]), f"{{rows}} {problems[0].summary}")
    # Chosen by hand: below one row in a hundred the lost ends do not matter.
    severity: Severity | None = "info" if len(rows) < 0.01 * judged else None
    summary = "the completions of {rows} are cut off at the greatest length of the batch"
    return in_rows(batch, rows, summary, spots, severity=severity)
