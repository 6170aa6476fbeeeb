"""Do token ids fit the vocabulary of the tokenizer and of the model?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.roles import RowRoles
from mldebug_mcp.batch.sequences import IGNORE, Bools, Ints, Runs, Sequences, count_rows, hides_words
from mldebug_mcp.batch.tokenizer import Tokenizer
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
        labels = None if batch.purpose == "classification" else side.labels
        for column, exempt in ((side.ids, allowed), (labels, IGNORE)):
            if column is not None and len(wrong := _outside(column.flat, limit, exempt)):
                worst = max(worst, int(column.flat[wrong[0]]), int(column.flat[wrong].max()), key=abs)
                places.append((side, wrong))
    problems = [problem for problem in batch.problems if problem.check == "token_id_out_of_range"]
    if not places and not problems:
        return None
    if not places:
        at_rows = np.unique([row for problem in problems for row in problem.rows]).astype(np.int64)
        return batch_evidence(f"{problems[0].summary}, in {of_rows(at_rows, batch.rows)}", at_rows)
    count, rows, spots = gather(places)
    known = f"a vocabulary of {limit}" if batch.vocabulary else "any vocabulary"
    what = "1 id or label" if count == 1 else f"{count} ids or labels"
    verb = "is" if count == 1 else "are"
    summary = f"{what} in {of_rows(rows, batch.rows)} {verb} outside {known} (such as {worst})"
    return batch_evidence(summary, rows, spots, {"count": count, "example": worst})


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
    if not len(rows):
        return None
    severity: Severity | None = "info" if len(rows) <= MAX_SHARE_OF_ROWS_FOR_REMARK * batch.rows else None
    token = batch.tokenizer.pieces([unknown])[0].strip()
    summary = f"most tokens of {of_rows(rows, batch.rows)} are {token}: the vocabulary lacks their words"
    return batch_evidence(summary, rows, values={"rows": len(rows)}, severity=severity)


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
"""Tokens that a model may have beyond its tokenizer's. Chosen: a small vocabulary that is padded has a large share to
spare."""
SHARE_SPARE = 0.05
"""Share of the model's tokens that its tokenizer may lack. Chosen: twice the widest padding of common models, 2.3 % in
DeepSeek V2."""


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
            return batch_evidence(
                f"{rows_that(rows, batch.rows, 'holds', 'hold')} ids that the tokenizer does not know (it has "
                f"{tokenizer.size} tokens, the model {model})",
                rows,
            )
        if model - tokenizer.size > max(MOST_SPARE, SHARE_SPARE * model):
            summary = f"the model has {model} tokens, the tokenizer only {tokenizer.size}"
            return batch_evidence(summary, values={"tokenizer": tokenizer.size, "model": model}, severity="warning")
    return None


def _unknown(side: Sequences, size: int, limit: int) -> Bools:
    return count_rows(np.flatnonzero((side.ids.flat >= size) & (side.ids.flat < limit)), side.ids) > 0


# Image placeholders were cut or do not match the features.


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
    problem = next((problem for problem in batch.problems if problem.check == "image_tokens_truncated"), None)
    if problem is not None:
        rows = np.array(problem.rows, np.int64)
        return batch_evidence(
            f"{rows_that(rows, batch.rows, 'has', 'have')} another number of images than of <image> in the text", rows
        )
    if token is None:
        return None
    for side in batch.sides:
        found = side.ids.runs(side.ids.flat == token)
        count = int((found.stop - found.start).sum())
        expected = _expected(batch, count)
        cut = _cut_runs(side, found)
        if len(cut):
            rows = np.unique(side.numbers[found.row[cut]])
            summary = f"{rows_that(rows, batch.rows, 'ends', 'end')} in the middle of an image's placeholders"
            return batch_evidence(summary, rows, spots_at(side, found.start[cut]), {"placeholders": count})
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
"""Tokens at each end of a stretch between special tokens that are not compared: it may begin or end inside a word, or
lose a space."""
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
"""Share of tokens that come back when the text of the first attempt is tokenized again. Chosen: where all is kept it
is 1."""


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
    """The ids decode to a text from which this tokenizer makes other ids.

    Not this when: the tokenizer does not give the same ids for a text that it wrote; words are hidden at random; words
    are split at random on purpose (subword regularisation); a model sampled the ids, as completions with advantages.
    A vocabulary of whole words with their spaces (Unigram) makes most ids again whatever they meant: there it is seldom
    seen.
    """
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return None
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
    """Yield the ids between special tokens."""
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
