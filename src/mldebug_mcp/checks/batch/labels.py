"""Are the labels those of the inputs, is enough of them trained on, and do the classes fit the model?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.columns import CHOICE
from mldebug_mcp.batch.endings import content
from mldebug_mcp.batch.sequences import IGNORE, Bools, Ints, Sequences, hides_words, shift_of
from mldebug_mcp.checks.batch.affected_rows import (
    NO_ROWS,
    batch_evidence,
    gather,
    of_rows,
    rows_that,
    rows_where,
)
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.core.text import counted, quoted
from mldebug_mcp.models.base import Severity

VOID = (255, -1)
"""Pixels that belong to no class. Source: the label images of Pascal VOC, Cityscapes and ADE20K, and SegFormer, for
255."""


@batch_check(
    severity="error",
    why=(
        "The model is trained on tokens that are not in its input: labels of another row, another tokenizer, "
        "or stale data."
    ),
    fix="labels = input_ids.clone(), then mask; build both from one encoding and never shuffle or pad them apart.",
    fixes={
        "Axolotl": "delete last_run_prepared and prepare the data again.",
        "LLaMA-Factory": "set overwrite_cache: true once.",
    },
    quotes=("hfcourse_decode_inputs", "axolotl_clear_caches"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def labels_mismatch(batch: Batch) -> Evidence | None:
    """Trained labels differ from the tokens at their places.

    Not this when: they are shifted (`labels_shifted`); the inputs there are mask tokens, as for masked language
    models; the model is an encoder-decoder.
    """
    sides = [
        side
        for side in batch.trained_sides
        if len(side.disagreeing)
        and not (shift_of(side) or side.shifted_by_design or hides_words(side, batch.mask, batch.columns))
    ]
    total, rows, spots = gather((side, side.disagreeing) for side in sides)
    if not total:
        return None
    trained = sum(int(side.trained_per_row.sum()) for side in sides)
    summary = f"{total} of {trained} trained labels, in {of_rows(rows, batch.rows)}, are not the tokens at their places"
    return batch_evidence(summary, rows, spots, {"labels": total}, None if total > 0.01 * trained else "warning")


# Words are to be hidden from a masked language model, and none is.


MIN_SHARE_CHOSEN = 0.02
"""Share of the tokens that a masked language model is trained on. Chosen: BERT takes 0.15, short rows less."""
MAX_SHARE_CHOSEN = 0.5
"""The largest such share. Chosen: models take up to 0.4."""
MIN_WORDS_CHOSEN = 4
"""Stretches that are trained on, from which they look drawn. Chosen: an answer is one."""
MAX_RUN_CHOSEN = 3.0
"""Mean length of stretches of them. Chosen: words have one to three tokens, answers have more."""


@batch_check(
    severity="error",
    why="The model sees each token that it is to predict: the loss falls to zero and nothing is learnt.",
    fix="Let the collator hide the chosen tokens (mask_replace_prob=0.8), and do not write the inputs back afterwards.",
    quotes=("hfcourse_decode_inputs",),
    purposes=("sft", "pretraining"),
)
def nothing_hidden(batch: Batch) -> Evidence | None:
    """The tokenizer has a mask token, single words are trained on, and the inputs there are the words themselves.

    Not this when: the tokenizer has no mask token, or it stands in the rows; longer stretches are trained on.
    """
    if batch.mask is None:
        return None
    sides = [side for side in batch.trained_sides if side.labels is not None and _chooses_words(side)]
    if not sides or any(len(side.disagreeing) or batch.mask in side.ids.flat for side in sides):
        return None
    rows = rows_where(sides, lambda side: side.trained_per_row > 0)
    return batch_evidence(f"none of the words that are to be predicted in {of_rows(rows, batch.rows)} is hidden", rows)


def _chooses_words(side: Sequences) -> bool:
    trained, runs = int(side.trained_per_row.sum()), side.trained_runs
    share = trained / max(1, int(side.lengths.sum()))
    return bool(
        runs is not None
        and len(runs) >= MIN_WORDS_CHOSEN
        and MIN_SHARE_CHOSEN <= share <= MAX_SHARE_CHOSEN
        and trained / len(runs) <= MAX_RUN_CHOSEN
    )


@batch_check(
    severity="warning",
    why="The labels of all words are off by a place, or special tokens are trained as words.",
    fix="Set labels by encoding.word_ids(): -100 where it is None, and the word's label at its first token.",
    quotes=("hfcourse_decode_inputs",),
    purposes=("classification",),
)
def labels_misplaced(batch: Batch) -> Evidence | None:
    """Special tokens, such as [CLS] and [SEP], have classes other than 0.

    Not this when: special tokens have class 0, which stands for none; no tokenizer is given.
    """
    if batch.tokenizer is None:
        return None
    special = np.fromiter(batch.tokenizer.special_ids, np.int64)
    count, rows, spots = gather(
        (side, np.flatnonzero((side.labels.flat > 0) & np.isin(side.ids.flat, special) & side.content))
        for side in batch.sides
        if side.labels is not None
    )
    if not count:
        return None
    return batch_evidence(
        f"{count} special tokens in {of_rows(rows, batch.rows)} have the class of a word",
        rows,
        spots,
        {"labels": count},
    )


# The text that is to be written is the text that is read.


MIN_ROWS_COPIED = 4
"""Rows that are no accident. Chosen: fewer may be short answers that repeat the question."""
MIN_SHARE_COPIED = 0.9
"""Share of the rows whose target is their source. Chosen: correction of text leaves many rows as they are."""


@batch_check(
    severity="warning",
    why="The model learns to copy: the loss falls to zero, and the task is not learnt.",
    fix="See that source and target come from different columns.",
    quotes=("hfcourse_decode_inputs",),
    purposes=("sft",),
)
def target_equals_source(batch: Batch) -> Evidence | None:
    """The labels of an encoder-decoder are its inputs, special tokens left out, in nearly all rows.

    Not this when: some words of the inputs are hidden or changed, as where a model learns to restore text.
    """
    source, targets = batch.side(""), batch.targets
    if source is None or targets is None or source.rows != targets.rows or source.rows < MIN_ROWS_COPIED:
        return None
    special = batch.tokenizer.special_ids if batch.tokenizer is not None else batch.ends | {batch.bos}
    same = [_words(source, row, special) == _words(targets, row, special) != [] for row in range(source.rows)]
    if sum(same) < MIN_SHARE_COPIED * source.rows:
        return None
    rows = source.numbers[np.flatnonzero(same)]
    return batch_evidence(f"the target of {of_rows(rows, batch.rows)} is its source", rows)


def _words(side: Sequences, row: int, special: frozenset[int | None]) -> list[int]:
    return [token for token in content(side, row).tolist() if token not in special]


@batch_check(
    severity="error",
    why=(
        "Models of Transformers shift labels inside the loss; shifted twice, the model learns to predict the token "
        "after next, or to copy its input. A decoder is to be shown the labels one place to the right."
    ),
    fix="labels = input_ids.clone() with prompts and padding set to -100; leave the shift to the model.",
    fixes={"Megatron, nanoGPT": "their losses do not shift: there shifted labels are right."},
    quotes=("hfcourse_decode_inputs",),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def labels_shifted(batch: Batch) -> Evidence | None:
    """Labels are the next (or the previous) tokens instead of the tokens at their own places.

    Columns called targets, and Megatron's, belong to a loss that does not shift: there it is this when they are other
    than the next tokens.

    Not this when: the column is called targets and holds the next tokens. With a loss mask next to the
    labels and no Transformers configuration it is only a remark: Megatron's data look so. Of an encoder-decoder it is
    this when the decoder's inputs are the labels themselves, not the labels one place to the right.
    """
    if (shown := _shown_to_decoder(batch)) is not None:
        return shown
    shifts = [(side, shift_of(side)) for side in batch.trained_sides if _is_off(side)]
    if not shifts:
        return None
    rows = rows_where([side for side, _ in shifts], lambda side: side.trained_per_row > 0)
    side, shift = shifts[0]
    of_megatron = side.loss_mask is not None and shift == 1 and not batch.model.given
    severity: Severity | None = "info" if of_megatron else None
    due = "; the loss of these columns does not shift, and takes the next token" if side.shifted_by_design else ""
    summary = f"in {of_rows(rows, batch.rows)} each label is {PLACES[shift]}{due}"
    return batch_evidence(summary, rows, values={"shift": shift}, severity=severity)


PLACES = {
    0: "the token at its own place",
    1: "the next token",
    -1: "the previous token",
    2: "the token after the next",
    -2: "the token before the previous one",
}
MOST_OTHER = 0.05
"""Share of labels that may differ from the tokens at their places in a copy. Chosen: as labels of the next tokens."""
LEAST_COPIED = 8
"""Labels from which a copy is not a coincidence. Chosen: text seldom repeats a token as often."""


def _is_off(side: Sequences) -> bool:
    """Return whether labels are at other places than the loss of their columns takes them from."""
    shift = shift_of(side)
    if not side.shifted_by_design or shift:
        return shift != int(side.shifted_by_design)
    trained = int(side.trained_per_row.sum())
    varied = trained >= LEAST_COPIED and len(np.unique(side.ids.flat[:trained])) > 1
    return side.labels is not None and varied and len(side.disagreeing) <= MOST_OTHER * trained


def _shown_to_decoder(batch: Batch) -> Evidence | None:
    targets, inputs = batch.targets, batch.decoder_inputs
    if (
        targets is None
        or inputs is None
        or targets.trained is None
        or not np.array_equal(inputs.lengths, targets.ids.lengths)
    ):
        return None
    shown = np.flatnonzero(targets.trained & targets.content)
    if not len(shown) or not np.array_equal(inputs.flat[shown], targets.ids.flat[shown]):
        return None
    return batch_evidence(
        f"in all {targets.rows} rows decoder_input_ids are the labels at their own places, so that the decoder is "
        "shown each token that it must write; leave them out, and the model makes them from the labels",
        targets.numbers,
        values={"shift": 0},
    )


@batch_check(
    severity="error",
    why="The loss is 0 or NaN from the first step, no gradient flows, and nothing is learnt.",
    fix="Decode a row and compare it with the text that the masking looks for: the response marker must be spelt and "
    "tokenized as in the template; with assistant_only_loss=True the chat template needs {% generation %} marks; see "
    "that max_length leaves the answer in.",
    fixes={
        "Unsloth": "train_on_responses_only: instruction_part and response_part must be the template's exact markers.",
        "Axolotl": "check chat_template, field_messages and roles_to_train; look at `axolotl preprocess --debug`.",
        "LLaMA-Factory": "set template to the model's own, and raise cutoff_len.",
    },
    quotes=("unsloth_all_masked", "axolotl_plateau_mask"),
    purposes=("sft", "pretraining", "dpo", "vlm", "classification"),
)
def all_labels_masked(batch: Batch) -> Evidence | None:
    """No label of the whole batch is trained on: every one is the ignore index, or the loss mask is zero.

    Not this when: only some rows are without trained tokens (`row_labels_masked`).
    """
    if (pixels := batch.integers.get("labels")) is not None and pixels.size and np.isin(pixels, (IGNORE, *VOID)).all():
        return batch_evidence(
            f"none of {pixels.size} pixels in {of_rows(batch.numbers, batch.rows)} has a class", batch.numbers,
            values={"pixels": pixels.size},
        )  # fmt: skip
    sides = batch.labelled
    # Targets without a label are padding from end to end.
    tokens = sum(len(side.ids.flat) if side is batch.targets else int(side.lengths.sum()) for side in sides)
    if not tokens or any(int(side.trained_per_row.sum()) for side in sides):
        return None
    rows = rows_where(sides, lambda side: (side.ids.lengths if side is batch.targets else side.lengths) > 0)
    known = batch.tokenizer
    unmarked = known is not None and known.chat_template is not None and not known.marks_generation
    why = "; this chat template has no {% generation %} marks, which assistant_only_loss=True needs" * unmarked
    return batch_evidence(
        f"none of {tokens} {batch.unit} in {of_rows(rows, batch.rows)} is trained on{why}",
        rows,
        values={"tokens": tokens},
    )


@batch_check(
    severity="warning",
    why="Such rows cost compute and teach nothing; where a micro-batch holds only such rows, its loss is NaN.",
    fix=(
        "Drop them before training, or find out why: the answer was truncated away, the response marker is missing, or "
        "the conversation has no assistant turn."
    ),
    fixes={
        "Unsloth": "train_on_responses_only drops such rows itself if they are few; many mean wrong markers.",
        "Axolotl": "drop rows without assistant turns; raise sequence_len.",
        "LLaMA-Factory": "raise cutoff_len; see that each sample has a response.",
    },
    quotes=("axolotl_plateau_mask",),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def row_labels_masked(batch: Batch) -> Evidence | None:
    """Some rows have content but no trained token, while others have.

    Not this when: no row of the batch is trained on (`all_labels_masked`); the row is empty (`empty_row`); the side is
    the prompt of a preference pair; words are hidden at random, which sometimes leaves short rows without one.
    """
    sides = [
        side for side in batch.labelled if side.name != "prompt" and not hides_words(side, batch.mask, batch.columns)
    ]
    if not any(int(side.trained_per_row.sum()) for side in sides):
        return None
    rows = rows_where(sides, lambda side: (side.trained_per_row == 0) & _has_content(batch, side))
    if not len(rows):
        return None
    trains = f"{rows_that(rows, batch.rows, 'trains', 'train')} on no token"
    if batch.purpose == "dpo":
        names = [side.name for side in sides if bool(((side.trained_per_row == 0) & _has_content(batch, side)).any())]
        trains = f"the {' and the '.join(names)} answer of {of_rows(rows, batch.rows)} is empty: no token is trained on"
    return batch_evidence(trains, rows, values={"rows": len(rows)})


def _has_content(batch: Batch, side: Sequences) -> Bools:
    """Return which rows have content; targets without a label belong to inputs that have."""
    content: Bools = side.lengths > 0
    return np.ones_like(content) if side is batch.targets else content


# Class labels outside the number of classes.


LEAST_MASKS = 2
LEAST_WHITE = 0.02
"""Share of pixels at 255 from which on they are a class. Chosen: a void margin alone is thinner."""


@batch_check(
    severity="error",
    why="The loss is indexed out of bounds: a device-side assert on a GPU, often reported at another line.",
    fix=(
        "Labels run from 0 to num_labels - 1; set num_labels, id2label and label2id when loading the model, and "
        "-100 for none."
    ),
    quotes=("hfcourse_walk_pipeline",),
    purposes=("classification", "vlm"),
)
def label_out_of_range(batch: Batch) -> Evidence | None:
    """A class label is negative (but not the ignore index) or at least the number of classes.

    Not this when: the number of classes is not known and no label is negative; the classes have names; 255 or -1 mark
    pixels without a class, unless there is nothing but 0 and 255.
    """
    choices = sum(side.name.startswith(CHOICE) for side in batch.sides)
    classes = choices or batch.model.num_labels
    limit = classes if classes is not None and classes > 1 else 2**62
    if _is_black_and_white(batch):
        limit = min(limit, 2)
    count, rows, example = 0, NO_ROWS, 0
    for labels, numbers in _labels(batch):
        wrong = np.flatnonzero(((labels < 0) | (labels >= limit)) & (labels != IGNORE))
        if len(wrong):
            count, example = count + len(wrong), int(labels[wrong[0]])
            rows = np.union1d(rows, numbers[wrong])
    if not count:
        return None
    known = f"0 to {limit - 1}" if limit < 2**62 else "0 and above"
    summary = f"{counted(count, 'label')} {'is' if count == 1 else 'are'} outside {known} (such as {example})"
    return batch_evidence(summary, rows.astype(np.int64), values={"labels": count, "example": example})


def _is_black_and_white(batch: Batch) -> bool:
    """Whether 255 is the other of two classes: masks that were saved as images and never divided."""
    pixels = batch.integers.get("labels")
    if pixels is None or len(pixels) < LEAST_MASKS or np.unique(pixels).tolist() != [0, VOID[0]]:
        return False
    return float(np.mean(pixels == VOID[0])) >= LEAST_WHITE


def _labels(batch: Batch) -> list[tuple[Ints, Ints]]:
    found = []
    if batch.classes is not None and not batch.class_names:
        found.append((batch.classes, batch.numbers[: len(batch.classes)]))
    if batch.boxes is not None and batch.boxes.form != "coco":  # COCO numbers its categories as it likes
        found.append((batch.boxes.classes, batch.numbers[batch.boxes.rows]))
    if batch.masks is not None:
        found.append((batch.masks.classes, batch.numbers[batch.masks.rows]))
    if (pixels := batch.integers.get("labels")) is not None:
        used = ~np.isin(pixels, () if _is_black_and_white(batch) else VOID)
        rows = np.broadcast_to(np.arange(len(pixels))[:, None, None], pixels.shape)
        found.append((pixels[used], rows[used]))
    if batch.purpose == "classification":
        found += [
            (side.labels.flat.astype(np.int64), np.repeat(side.numbers, side.ids.lengths))
            for side in batch.sides
            if side.labels is not None
        ]
    return found


# One class dominates.


LEAST_LABELS = 8
"""Labels from which a single class is reported, and twice as many from which a dominant one is. Chosen: chance explains
fewer."""
DOMINANT = 0.9
"""Share of the labels that are of one class. Source: karpathy_recipe, which calls a ratio of 1 to 10 imbalanced."""


@batch_check(
    severity="warning",
    why=(
        "Predicting the common class is a good answer to the loss: the rare ones are never learnt, and accuracy "
        "hides it."
    ),
    fix=(
        "Weight the loss or sample by class; watch recall of each class; start the last bias at the log of the "
        "class shares."
    ),
    fixes={"TRL": "with KTO add completions of the rarer mark, or set desirable_weight and undesirable_weight."},
    quotes=("slavv_class_imbalance", "karpathy_recipe_init_bias", "slavv_shuffle"),
    purposes=("classification", "embedding", "kto"),
    whole=True,
)
def class_imbalance(batch: Batch) -> Evidence | None:
    """At least nine labels in ten are of one class (among 16 or more), or all of them (among 8 or more).

    So are the marks of completions that say which are wanted (KTO), and labels with fractions that never vary.

    Not this when: the batch is so small that chance explains it; tokens are classified, and most of them, not all,
    belong to no entity. One in ten is the ratio that karpathy_recipe names.
    """
    if batch.totals is None:
        return None
    if batch.purpose == "embedding" or not (batch.totals.labels or batch.totals.token_classes):
        return _same_values(*batch.totals.values)
    of_tokens = not batch.totals.labels
    classes = batch.totals.token_classes if of_tokens else batch.totals.classes
    labels = classes.total()
    if labels < LEAST_LABELS:
        return None
    common = max(classes, key=classes.__getitem__)
    share = classes[common] / labels
    only = len(classes) == 1
    # Most tokens are of no entity: there a common class is as it should be.
    if not (only or (share >= DOMINANT and labels >= 2 * LEAST_LABELS and not of_tokens)):
        return None
    what = "all" if only else f"{share:.0%} of"
    if batch.purpose == "kto":
        mark = "desired" if common else "undesired"
        return batch_evidence(f"{what} {labels} completions are marked as {mark}", values={"share": share})
    name = quoted(batch.class_names[common]) if common in batch.class_names else common
    return batch_evidence(
        f"{what} {labels} labels are class {name}",
        values={"share": share, "class": common, "classes": len(classes)},
    )


def _same_values(count: int, least: float, greatest: float) -> Evidence | None:
    if count < LEAST_LABELS or least != greatest:
        return None
    return batch_evidence(f"all {count} labels are {least:g}", values={"share": 1.0, "labels": count})
