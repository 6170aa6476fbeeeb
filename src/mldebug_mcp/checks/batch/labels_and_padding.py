"""Are the labels those of the inputs and enough of them trained on, and do masks, padding and positions fit?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from mldebug_mcp.batch.batch import MAX_PART_NAME, WHITE, Batch, PartCounts
from mldebug_mcp.batch.columns import CHOICE
from mldebug_mcp.batch.endings import content, document_starts, repeated_prompts
from mldebug_mcp.batch.sequences import Bools, Ints, Sequences, hides_words, inverted_rows, shift_of, shifted_rows
from mldebug_mcp.checks.batch import NO_ROWS, batch_evidence, gather, in_rows, of_rows, problems_of, rows_of, rows_where
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.core.text import counted, quoted, shorten
from mldebug_mcp.models.base import Severity

VOID = (255, -1)
"""Pixels that belong to no class. Source: label images of Pascal VOC, Cityscapes, ADE20K; SegFormer, for 255."""


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
        and not (shift_of(side, of_some=True) or side.shifted_by_design or hides_words(side, batch.mask, batch.columns))
    ]
    total, rows, spots = gather((side, side.disagreeing) for side in sides)
    trained = sum(int(side.trained_per_row.sum()) for side in sides)
    summary = f"{total} of {trained} trained labels, in {{rows}}, are not the tokens at their places"
    severity: Severity | None = None if total > 0.01 * trained else "warning"
    return in_rows(batch, rows, summary, spots, {"labels": total}, severity=severity)


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
    return in_rows(batch, rows, "none of the words that are to be predicted in {rows} is hidden")


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
    return in_rows(
        batch, rows, f"{count} special tokens in {{rows}} have the class of a word", spots, {"labels": count}
    )


# The text that is to be written is the text that is read.


MIN_ROWS_COPIED = 4
"""Rows that are no accident. Chosen: fewer may be short answers that repeat the question."""
MIN_SHARE_COPIED = 0.9
"""Share of the rows whose target is their source. Chosen: correction of text leaves many rows as they are."""


@batch_check(
    severity="warning",
    why="The model learns to copy: the loss falls to zero, and the task is not learnt.",
    fix="See that source and target come from different columns, and that the prompt ends before its answer.",
    quotes=("hfcourse_decode_inputs",),
    purposes=("sft",),
)
def target_equals_source(batch: Batch) -> Evidence | None:
    """The labels of an encoder-decoder are its inputs, or prompts end with their answers, in nearly all rows.

    Of answers of eight words and more it is one row in twenty. Special tokens are left out.

    Not this when: some words of the inputs are hidden or changed, as where a model learns to restore or correct text;
    the answer stands elsewhere in the prompt, as in a passage that it is found in; all answers are one.
    """
    if problems := problems_of(batch, "target_equals_source"):
        return in_rows(batch, rows_of(problems), "the prompts of {rows} end with their answers")
    source, targets = batch.side(""), batch.targets
    if source is None or targets is None or source.rows != targets.rows or source.rows < MIN_ROWS_COPIED:
        return None
    special = batch.tokenizer.special_ids if batch.tokenizer is not None else batch.ends | {batch.bos}
    same = [_words(source, row, special) == _words(targets, row, special) != [] for row in range(source.rows)]
    if sum(same) < MIN_SHARE_COPIED * source.rows:
        return None
    return in_rows(batch, source.numbers[np.flatnonzero(same)], "the target of {rows} is its source")


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
    shifts = [(side, shift_of(side, of_some=True)) for side in batch.trained_sides if _is_off(side)]
    if not shifts:
        return None
    side, shift = shifts[0]
    rows = rows_where([side for side, _ in shifts], shifted_rows)
    of_megatron = side.loss_mask is not None and shift == 1 and not batch.model.given
    severity: Severity | None = "info" if of_megatron else None
    due = "; the loss of these columns does not shift, and takes the next token" if side.shifted_by_design else ""
    summary = f"in {{rows}} each label is {PLACES[shift]}{due}"
    return in_rows(batch, rows, summary, values={"shift": shift}, severity=severity)


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
    shift = shift_of(side, of_some=True)
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
    if (
        (pixels := batch.integers.get("labels")) is not None
        and pixels.size
        and np.isin(pixels, (IGNORED_LABEL, *VOID)).all()
    ):
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
    summary = f"none of {tokens} {batch.unit} in {{rows}} is trained on{why}"
    return in_rows(batch, rows, summary, values={"tokens": tokens})


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
    trains = "{rows trains|train} on no token"
    if batch.purpose == "dpo":
        names = [side.name for side in sides if bool(((side.trained_per_row == 0) & _has_content(batch, side)).any())]
        trains = f"the {' and the '.join(names)} answer of {{rows}} is empty: no token is trained on"
    return in_rows(batch, rows, trains, values={"rows": len(rows)})


def _has_content(batch: Batch, side: Sequences) -> Bools:
    """Return which rows have content; targets without a label belong to inputs that have."""
    content: Bools = side.lengths > 0
    return np.ones_like(content) if side is batch.targets else content


LEAST_MASKS = 2
"""Masks without which their values are not judged. Chosen: one may hold two by chance."""
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
        wrong = np.flatnonzero(((labels < 0) | (labels >= limit)) & (labels != IGNORED_LABEL))
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
"""Labels from which a single class is reported, and twice as many for a dominant one. Chosen: chance explains fewer."""
MIN_DOMINANT_CLASS_SHARE = 0.9
"""Share of the labels that are of one class. Source: karpathy_recipe, which calls a ratio of 1 to 10 imbalanced."""


# Parts of the data that number or colour their classes in another way.


MIN_LABELS_OF_PART = 30
"""Labels of a part. Chosen: fewer may lack a class by chance."""
MIN_PARTS_AND_CLASSES = 3
"""Parts that begin at 0, and their classes. Chosen: one part of two classes may lack the third."""
MAX_PARTS_NAMED = 3
"""Parts that a sentence names. Chosen: a line holds as many."""
MIN_MASKS_OF_KIND = 3
"""Masks of a kind that are no accident. Chosen: one or two may be drawn otherwise."""


@batch_check(
    severity="error",
    why="A class of one part is another class in the rest: the model is taught both, and one class is out of range.",
    fix="Map the labels of each file or source to classes by name, from 0 to num_labels - 1; divide masks by 255.",
    quotes=("karpathy_recipe_inspect_data",),
    whole=True,
)
def classes_moved(batch: Batch) -> Evidence | None:
    """The classes of a file or a source are all those of the others plus one; or masks are 0 and 255 in some rows.

    Not this when: a part lacks classes or has more of them; 255 marks the pixels without a class next to others.
    """
    parts = batch.totals.parts if batch.totals is not None else PartCounts()
    summaries = [*_moved_labels(parts.classes), *_white_masks(parts)]
    return batch_evidence("; ".join(summaries)) if summaries else None


def _moved_labels(classes: Mapping[str, Counter[int]]) -> Iterator[str]:
    parts = {name: set(counts) for name, counts in classes.items() if counts.total() >= MIN_LABELS_OF_PART}
    least = [name for name, found in parts.items() if 0 in found]
    usual = set().union(*(parts[name] for name in least))
    moved = [name for name, found in parts.items() if len(found) > 1 and found == {label + 1 for label in usual}]
    # A third class may well be one that two parts of a few classes share.
    if moved and usual == set(range(len(usual))) and len(least) + len(usual) > MIN_PARTS_AND_CLASSES:
        names = ", ".join(quoted(shorten(name, MAX_PART_NAME)) for name in moved[:MAX_PARTS_NAMED])
        yield (
            f"labels run from 1 to {len(usual)} in {names} ({len(moved)} of {counted(len(parts), 'part')}), "
            f"and from 0 to {len(usual) - 1} in the others"
        )


def _white_masks(parts: PartCounts) -> Iterator[str]:
    for name, (counts, where) in parts.masks.items():
        if min(counts[1], counts[WHITE]) >= MIN_MASKS_OF_KIND and not counts[-1]:
            at = f", the first of them in {where[WHITE]}" if where[WHITE] else ""
            yield f"{name} are 0 and 255 in {counts[WHITE]} rows{at}, and 0 and 1 in {counts[1]}"


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
    if not (only or (share >= MIN_DOMINANT_CLASS_SHARE and labels >= 2 * LEAST_LABELS and not of_tokens)):
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


# Do masks, padding and positions fit the tokens?


MIN_ROWS_FOR_ORDER = 50
"""Rows from which classes that stand together are no accident. Chosen: of fewer, a batch may be sorted for a reader."""
MIN_ROWS_OF_CLASS = 5
"""Rows of a class on average. Chosen: of fewer the labels are numbers of rows."""


@batch_check(
    severity="info",
    why="A loader that does not shuffle shows one class for a long time; a split by row leaves classes out.",
    fix="Shuffle rows before a split, and see that the loader shuffles.",
    quotes=("slavv_shuffle",),
    purposes=("classification",),
)
def classes_sorted(batch: Batch) -> Evidence | None:
    """The rows of each class stand together.

    Not this when: the rows are few, or of one class.
    """
    if batch.classes is None or len(batch.classes) < MIN_ROWS_FOR_ORDER:
        return None
    kinds, changes = len(np.unique(batch.classes)), int((np.diff(batch.classes) != 0).sum())
    if kinds < 2 or changes >= kinds or len(batch.classes) < MIN_ROWS_OF_CLASS * kinds:
        return None
    return batch_evidence("the rows of each class stand together")


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
    return in_rows(batch, rows, "the attention mask of {rows} is 0 on the text and 1 on the padding")


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
    return in_rows(
        batch,
        rows,
        f"{' and '.join(what)} in {{rows}}",
        spots,
        {"padding_attended": attended, "text_hidden": hidden},
        severity="error" if hidden else None,
    )


def _mask_missing(batch: Batch) -> Evidence | None:
    if batch.purpose != "generation":
        return None
    sides = [side for side in batch.sides if side.attention is None and side.padded]
    rows = rows_where(sides, lambda side: side.bounds[0] > side.ids.offsets[:-1])
    return in_rows(batch, rows, "{rows is|are} padded on the left, without an attention mask")


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
    return in_rows(batch, rows, f"{total} padding positions in {{rows}} carry labels", spots, {"positions": total})


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
    side = "right" if generation else "left"
    harmless = batch.model.relative_positions and all(sequences.attention is not None for sequences in sides)
    severity: Severity | None = "error" if generation else "info" if harmless else None
    return in_rows(batch, rows, f"{{rows is|are}} padded on the {side}", severity=severity)


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

    Or they run on where the bounds of packed documents say that another begins, which is a warning.

    Not this when: they restart at 0 for a packed document; they all begin after the padding id, as RoBERTa's do, which
    may not begin at 0; a piece of a longer text continues where the last one ended.
    """
    _, rows, spots = gather((side, _wrong_positions(batch, side)) for side in batch.sides)
    if not len(rows) and (problems := problems_of(batch, "position_ids_wrong")):
        return batch_evidence(problems[0].summary, rows_of(problems), severity="warning")
    return in_rows(batch, rows, "the position ids of {rows} do not count the tokens", spots)


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
    if len(repeated_prompts(batch)):
        return None
    return in_rows(
        batch,
        rows,
        f"{starts} documents begin inside {{rows}} without restarting positions or a document mask",
        spots,
        {"documents": starts},
        severity="info" if batch.purpose == "pretraining" else None,
    )


def _starts_without_reset(batch: Batch, side: Sequences) -> Ints:
    found = document_starts(batch, side)
    if side.positions is None:
        return found
    # Where positions begin at another number than 0 (`position_ids_wrong`), they restart there all the same.
    return found[side.positions.flat[found] > side.positions.flat[side.bounds[0][side.ids.row_of(found)]]]
