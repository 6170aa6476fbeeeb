"""Do masks, padding and positions fit the tokens?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import document_starts, repeated_prompts
from mldebug_mcp.batch.sequences import Bools, Ints, Sequences, inverted_rows
from mldebug_mcp.checks.batch.affected_rows import (
    NO_ROWS,
    batch_evidence,
    gather,
    of_rows,
    rows_that,
    rows_where,
)
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.models.base import Severity

# The attention mask marks the padding, not the text.


@batch_check(
    severity="error",
    why="The model sees only padding: it cannot learn anything of the text.",
    fix="In Transformers 1 means text and 0 padding; torch's key_padding_mask is the other way round. Invert the mask.",
    quotes=("transformers_left_pad",),
)
def attention_mask_inverted(batch: Batch) -> Evidence | None:
    """The mask is 0 on the text and 1 on the padding.

    Not this when: only some positions are wrong (`attention_mask_mismatch`).
    """
    rows = rows_where([side for side in batch.sides if side.attended is not None], inverted_rows)
    if not len(rows):
        return None
    return batch_evidence(
        f"the attention mask of {of_rows(rows, batch.rows)} is 0 on the text and 1 on the padding", rows
    )


@batch_check(
    severity="warning",
    why="The model reads padding as text, or does not see part of the text.",
    fix=(
        "Let the tokenizer or the collator make the mask (tokenizer.pad); do not compare ids with pad_token_id where "
        "padding and end are the same token."
    ),
    fixes={"Axolotl": "clear the prepared data set (dataset_prepared_path) after changing special tokens."},
    quotes=("transformers_left_pad",),
)
def attention_mask_mismatch(batch: Batch) -> Evidence | None:
    """The mask lets the model attend to padding, or hides text.

    Not this when: the mask is the wrong way round altogether (`attention_mask_inverted`); padding and end are the
    same token and the mask is one longer than the text; rows without a mask are not padded on the left.
    """
    sides = [side for side in batch.sides if side.attended is not None and not len(inverted_rows(side))]
    total, rows, spots = gather((side, side.misattended) for side in sides)
    if not total:
        return _mask_missing(batch)
    attended = sum(int(side.attended[side.misattended].sum()) for side in sides if side.attended is not None)
    hidden = total - attended
    what = [f"{attended} padding positions are attended to"] * bool(attended) + [
        f"{hidden} tokens of text are hidden"
    ] * bool(hidden)
    return batch_evidence(
        f"{' and '.join(what)} in {of_rows(rows, batch.rows)}",
        rows,
        spots,
        {"padding_attended": attended, "text_hidden": hidden},
        "error" if hidden else None,
    )


def _mask_missing(batch: Batch) -> Evidence | None:
    if batch.purpose != "generation":
        return None
    sides = [side for side in batch.sides if side.attention is None and side.padded]
    rows = rows_where(sides, lambda side: side.bounds[0] > side.ids.offsets[:-1])
    if not len(rows):
        return None
    padded = rows_that(rows, batch.rows, "is", "are")
    return batch_evidence(f"{padded} padded on the left, without an attention mask", rows)


@batch_check(
    severity="error",
    why="The model is trained to write padding; the mean loss is diluted, so it looks better than it is.",
    fix="Set labels to -100 where the attention mask is 0: use a collator that pads labels with -100, such as "
    "DataCollatorForSeq2Seq or TRL's DataCollatorForLanguageModeling.",
    fixes={
        "Axolotl": "leave padding to its own collator; do not pad while tokenizing.",
        "Unsloth": "do not pad while tokenizing; the trainer's collator does it.",
        "LLaMA-Factory": "ignore_pad_token_for_loss: true.",
    },
    quotes=("hf_gradacc_token_denominator", "hfcourse_decode_inputs"),
    purposes=("sft", "pretraining", "dpo", "vlm", "classification"),
)
def padding_not_masked(batch: Batch) -> Evidence | None:
    """The loss is computed on padding.

    Not this when: padding and end are the same token and only the real end carries a label.
    """
    padded = (
        (side, np.flatnonzero(side.trained & ~side.content))
        for side in batch.labelled
        if side.padded and side.trained is not None
    )
    total, rows, spots = gather(padded, width=3)
    if not total:
        return None
    return batch_evidence(
        f"{total} padding positions in {of_rows(rows, batch.rows)} carry labels", rows, spots, {"positions": total}
    )


@batch_check(
    severity="warning",
    why=(
        "Generation continues from the last position: from padding, if that is on the right. In training, padding on "
        "the left shifts positions unless position ids make up for it."
    ),
    fix="tokenizer.padding_side = 'left' for generation and 'right' for training; set it for each phase.",
    fixes={
        "Unsloth": (
            "FastLanguageModel sets the side for training and for_inference; do not set it by hand between them."
        ),
        "LLaMA-Factory": "it sets the side by stage; leave padding_side alone.",
    },
    quotes=("transformers_left_pad", "transformers_right_pad_warning"),
    purposes=("sft", "pretraining", "generation"),
)
def padding_side_wrong(batch: Batch) -> Evidence | None:
    """Prompts for generation are padded on the right, or training rows on the left.

    Not this when: training rows are padded on the left and have position ids that begin at the text; the rows are
    completions, or preference pairs, which TRL pads on either side. Where the configuration says that only
    distances between tokens count (rotary positions) and a mask hides the padding, the left side is only a remark.
    """
    sides = [side for side in batch.sides if side.name in ("", "prompt") and side.padded]
    prompt, completion = batch.side("prompt"), batch.side("completion")
    # Completions that stand apart were generated from the prompts.
    rollout = prompt is not None and prompt.attention is not None and completion is not None
    generation = batch.purpose == "generation" or rollout
    if generation and not batch.purpose_given and not rollout:
        # Rows without labels may be anything: only their user knows.
        return None
    rows = rows_where(sides, _padded_right if generation else _padded_left)
    if not len(rows):
        return None
    side = "right" if generation else "left"
    harmless = batch.model.relative_positions and all(sequences.attention is not None for sequences in sides)
    severity: Severity | None = "error" if generation else "info" if harmless else None
    return batch_evidence(f"{rows_that(rows, batch.rows, 'is', 'are')} padded on the {side}", rows, severity=severity)


def _padded_right(side: Sequences) -> Bools:
    start, stop = side.bounds
    return (stop < side.ids.offsets[1:]) & (stop > start)


def _padded_left(side: Sequences) -> Bools:
    start, stop = side.bounds
    left = (start > side.ids.offsets[:-1]) & (stop > start)
    if side.positions is not None:
        left &= side.positions.flat[np.minimum(start, len(side.ids.flat) - 1)] != 0
    return left


# Rows are padded far beyond the longest of them.


MIN_ROWS_FOR_WIDTH = 4
"""Rows from which their longest says what rows need. Chosen: a batch has as many."""
MAX_SHARE_FILLED = 0.5
"""Share of the width that the longest row fills. Chosen: half of the time goes into padding from there on."""


@batch_check(
    severity="info",
    why="The model computes every position: most of the time and memory goes into padding.",
    fix="Pad each batch to its longest row: padding=True, not padding='max_length'; or pack the rows.",
    fixes={"TPU, torch.compile": "rows of one length are meant there; then lower max_length."},
    quotes=("karpathy_recipe_inspect_data",),
)
def padding_excessive(batch: Batch) -> Evidence | None:
    """All rows have one length, and the longest fills less than half of it; the rest is padding.

    Not this when: there are fewer than four rows; another side of the batch needs the length.
    """
    judged = [side for side in batch.sides if side.rows >= MIN_ROWS_FOR_WIDTH]
    if not judged or not all(map(_is_wide, judged)):
        return None
    side = judged[0]
    width, longest = int(side.ids.lengths[0]), int(side.lengths.max())
    return batch_evidence(
        f"all rows are padded to {width} tokens, and the longest holds {longest}",
        values={"width": width, "longest": longest},
    )


def _is_wide(side: Sequences) -> bool:
    lengths = side.ids.lengths
    same = bool(np.all(lengths == lengths[0])) and side.padded
    return same and 0 < int(side.lengths.max()) <= MAX_SHARE_FILLED * int(lengths[0])


@batch_check(
    severity="warning",
    why="Batches cannot be padded, or are padded with an id that stands for something else.",
    fix=(
        "Set tokenizer.pad_token to a token of its own (many models reserve one) and model.config.pad_token_id with "
        "it; the end token will do if padding is masked by the attention mask."
    ),
    fixes={
        "Axolotl": "special_tokens: pad_token: ...",
        "TRL": "pad_token in SFTConfig.",
        "LLaMA-Factory": "the template sets it; check new_special_tokens.",
    },
    quotes=("transformers_left_pad",),
)
def pad_token_unset(batch: Batch) -> Evidence | None:
    """The tokenizer names no padding token although rows are padded or differ in length.

    Not this when: all rows have one length and none is padded, as in packed data. Where rows are padded already and the
    attention mask hides that, it is a remark.
    """
    tokenizer = batch.tokenizer
    if tokenizer is None or tokenizer.pad is not None or not batch.sides:
        return None
    padded = any(side.padded for side in batch.sides)
    uneven = any(bool(np.any(side.lengths != side.lengths[0])) for side in batch.sides if side.rows)
    if padded or uneven:
        hidden = padded and all(side.attended is not None and not len(side.misattended) for side in batch.sides)
        return batch_evidence(
            f"the tokenizer has no padding token, and rows {'are padded' if padded else 'differ in length'}"
            + (", with a mask over the padding" if hidden else ""),
            severity="info" if hidden else None,
        )
    if batch.purpose == "pretraining" or all(side.packed or side.rows == 1 for side in batch.sides):
        return None
    return batch_evidence(
        "the tokenizer has no padding token; these rows need none, as all have one length", severity="info"
    )


@batch_check(
    severity="error",
    why=(
        "Tokens get positions that they never have in use; beyond the model's greatest position it fails, or reads "
        "nonsense."
    ),
    fix="position_ids = attention_mask.cumsum(-1) - 1, with 0 on padding; restart at 0 for each packed document.",
    quotes=("hf_packing_boundaries",),
)
def position_ids_wrong(batch: Batch) -> Evidence | None:
    """Positions do not begin at 0 with the text, or do not rise by one from token to token.

    Not this when: they restart at 0 for a packed document; they all begin after the padding id, as RoBERTa's do, which
    may not begin at 0; a piece of a longer text continues where the last one ended.
    """
    _, rows, spots = gather((side, _wrong_positions(batch, side)) for side in batch.sides)
    if not len(rows):
        return None
    return batch_evidence(f"the position ids of {of_rows(rows, batch.rows)} do not count the tokens", rows, spots)


def _wrong_positions(batch: Batch, side: Sequences) -> Ints:
    if side.positions is None:
        return NO_ROWS
    wrong = np.union1d(_leaps(side), _late_starts(batch, side))
    if batch.model.max_positions is not None:
        wrong = np.union1d(wrong, np.flatnonzero(side.content & (side.positions.flat >= batch.model.max_positions)))
    return wrong.astype(np.int64)


def _leaps(side: Sequences) -> Ints:
    """Return the places, inside the text, where positions neither rise by one nor restart."""
    assert side.positions is not None  # noqa: S101 - the caller saw them
    position = side.positions.flat.astype(np.int64, copy=False)
    restart = (position[1:] == 0) & (position[:-1] != 0)
    leap = np.flatnonzero((np.diff(position) != 1) & ~restart) + 1
    start, stop = side.bounds
    row = side.ids.row_of(leap)
    inside: Ints = leap[(leap > start[row]) & (leap < stop[row])]
    # Two zeros in a row are a document of one token, unless they are all there is.
    zero = position[inside] == 0
    rises = np.maximum.reduceat(np.append(position, 0), side.ids.offsets[:-1])[side.ids.row_of(inside)] > 0
    found: Ints = inside[~(zero & rises)]
    return found


def _late_starts(batch: Batch, side: Sequences) -> Ints:
    assert side.positions is not None  # noqa: S101 - the caller saw them
    start, stop = side.bounds
    some = start[stop > start]
    first = side.positions.flat[some]
    if batch.model.positions_after_pad and not bool(np.any(first != 0)):
        return some
    late = first != 0
    left = side.column(some) > 0
    if (
        len(first)
        and bool(np.all(first == first[0]))
        and not bool(left.any())
        and (int(first[0]) == (side.pad if side.pad is not None else -2) + 1)
    ):
        return NO_ROWS
    if batch.purpose == "pretraining":
        late &= left
    found: Ints = some[late]
    return found


@batch_check(
    severity="warning",
    why="Each document attends to the ones before it, and its positions begin in the middle.",
    fix=(
        "packing=True with FlashAttention (padding_free): the collator then restarts position_ids for each document; "
        "or pass a block-diagonal attention mask."
    ),
    fixes={
        "Axolotl": "sample_packing: true with flash_attention: true.",
        "Unsloth": "packing=True in a version with padding-free packing.",
        "LLaMA-Factory": "neat_packing: true.",
    },
    quotes=("hf_packing_boundaries", "trl_wrapped_packing"),
    purposes=("sft", "pretraining", "dpo"),
)
def packing_without_position_reset(batch: Batch) -> Evidence | None:
    """Documents follow each other in a row, and neither position ids nor a mask keep them apart.

    Not this when: position ids restart at each document; the mask numbers the documents; an end token only ends a
    turn; what begins is the prompt once more (`prompt_repeated`). In pretraining it is a remark: many models were
    trained this way.
    """
    starts, rows, spots = gather(
        (side, _starts_without_reset(batch, side))
        for side in batch.sides
        if not side.documents_masked and side.name != "prompt"
    )
    if not starts or len(repeated_prompts(batch)):
        return None
    return batch_evidence(
        f"{starts} documents begin inside {of_rows(rows, batch.rows)} without restarting positions or a document mask",
        rows,
        spots,
        {"documents": starts},
        "info" if batch.purpose == "pretraining" else None,
    )


def _starts_without_reset(batch: Batch, side: Sequences) -> Ints:
    found = document_starts(batch, side)
    if side.positions is None:
        return found
    # Where positions begin at another number than 0 (`position_ids_wrong`), they restart there all the same.
    return found[side.positions.flat[found] > side.positions.flat[side.bounds[0][side.ids.row_of(found)]]]
