"""Columns become a `Batch`.

It finds out what each column is, what pads the rows, what the targets are, and the purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from mldebug_mcp.batch import columns as names
from mldebug_mcp.batch.batch import (
    BOX_COLUMNS,
    MIN_MEASUREMENT_ROWS,
    Batch,
    Context,
    Problem,
    Purpose,
    boxes_of,
    cells_of,
    is_numeric,
)
from mldebug_mcp.batch.columns import (
    TARGET_LENGTHS,
    Column,
    Kind,
    Table,
    depth,
    exchanged_pairs,
    find,
    float_columns,
    integer_columns,
    is_float,
    masks_of,
    ragged_or_none,
    rest_of,
    row_count,
)
from mldebug_mcp.batch.relations import drawn_items, histories
from mldebug_mcp.batch.roles import RowRoles, Words, read_roles
from mldebug_mcp.batch.sequences import SHIFTS, Bools, Ints, Ragged, Sequences, hides_words
from mldebug_mcp.batch.templates import ASSISTANT
from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

# Which token pads the rows: as the tokenizer or the model's configuration says, else as the rows themselves show.


LEAST_RUN = 3
"""Equal tokens at the edge of a row that look like padding if nothing else tells. Chosen by hand: text sometimes
repeats a token twice, but not three times at the very end of several rows."""
MIN_ROWS_ENDING_ALIKE = 2
"""Rows that have to end so where no label tells and the token stands inside rows too."""
TIMES_CHANCE = 10
"""Such rows, for each that a token as common as it is elsewhere would make by chance. Chosen by hand."""


def padding_token(
    ids: Ragged, attention: Ragged | None, labels: Ragged | None, context: Context
) -> tuple[int | None, bool]:
    """Return the padding token, and whether the same token may also be the real end or beginning of a text."""
    tokenizer, model = context.tokenizer, context.model
    own_pad = tokenizer.pad if tokenizer is not None else None
    pad = own_pad if own_pad is not None else model.pad
    if pad is None or not bool(np.any(ids.flat == pad)):
        inferred = _inferred(ids, attention, labels)
        pad = pad if inferred is None else inferred
    if pad is None:
        return None, False
    ends = (tokenizer.ends | {tokenizer.bos}) if tokenizer is not None else {*model.eos, model.bos}
    unknown = tokenizer is None and not model.eos and attention is not None
    content = unknown and bool(np.any((attention.flat != 0) & (ids.flat == pad)))  # type: ignore[union-attr]
    return pad, pad in ends or content


def _inferred(ids: Ragged, attention: Ragged | None, labels: Ragged | None) -> int | None:
    if not len(ids.flat):
        return None
    if attention is not None:
        attended = attention.flat != 0
        for part in (ids.flat[~attended], ids.flat[attended]):  # the second is for a mask that is the wrong way round
            if len(part) and bool(np.all(part == part[0])) and len(part) < len(ids.flat):
                return int(part[0])
        if bool((~attended).any()):
            return None
    return _from_edges(ids, labels)


def _from_edges(ids: Ragged, labels: Ragged | None) -> int | None:
    """Return the token that fills the ends, or else the beginnings, of some rows but not of all."""
    full = np.flatnonzero(ids.lengths >= LEAST_RUN)
    if len(full) < 2 or bool(np.any(ids.lengths != ids.lengths[0])):
        return None
    for at_end in (True, False):
        edge = (ids.offsets[1:] - 1 if at_end else ids.offsets[:-1])[full]
        step = -1 if at_end else 1
        same = np.logical_and.reduce([ids.flat[edge] == ids.flat[edge + step * away] for away in range(1, LEAST_RUN)])
        tokens = np.unique(ids.flat[edge[same]])
        if len(tokens) != 1 or bool(same.all()) or tokens[0] < 0:
            continue
        token = int(tokens[0])
        masked = labels is not None and bool(np.all(labels.flat[edge[same]] == IGNORED_LABEL))
        if masked or _only_at_edge(ids, token, at_end=at_end):
            return token
        least = max(MIN_ROWS_ENDING_ALIKE, TIMES_CHANCE * _by_chance(ids, token, full[~same]))
        if labels is None and int(same.sum()) >= least:
            return token
    return None


def _by_chance(ids: Ragged, token: int, others: Ints) -> float:
    """Return how many rows would end in a run of a token that is as common, and as often in runs, as in these rows."""
    same = ids.take(others).flat == token
    if len(same) < LEAST_RUN:
        return 0.0
    in_run = np.logical_and.reduce([same[place : len(same) - LEAST_RUN + 1 + place] for place in range(LEAST_RUN)])
    return ids.rows * max(float(np.mean(same)) ** LEAST_RUN, float(np.mean(in_run)))


def _only_at_edge(ids: Ragged, token: int, *, at_end: bool) -> bool:
    """Whether a token stands nowhere but in one run at that edge of its rows: text repeats what it also uses inside."""
    starts, stops = ids.offsets[:-1], ids.offsets[1:]
    places = np.flatnonzero(ids.flat == token)
    rows = ids.row_of(places)
    found = np.bincount(rows, minlength=ids.rows)
    # Of n in a row, all lie at its end if the first is n from the end.
    order = np.searchsorted(rows, np.arange(ids.rows), side="left")
    some = np.flatnonzero(found)
    first, last = places[order[some]], places[order[some] + found[some] - 1]
    at_edge = stops[some] - first == found[some] if at_end else last - starts[some] + 1 == found[some]
    return bool(np.all(at_edge))


# Labels that are not a copy of the inputs: targets of an encoder-decoder, transcripts of speech, classes of a row.


SPEECH = ("input_features", "input_values")
MAX_ROWS_FOR_TARGETS = 32
"""Rows that are looked at to tell targets from labels that were cut."""
MIN_COPIED_LABEL_SHARE = 0.8
"""Share of a row's labels that have to stand in its inputs to call them a copy. Chosen by hand."""
NEARLY_ALL = 0.95
"""Share of tokens that have to be the next ones to call two arrays inputs and targets. Chosen by hand."""
OF_GRAIN: Mapping[str, str] = {
    "inputs": "input_ids",
    "inputs_segmentation": "attention_mask",
    "inputs_segment_ids": "attention_mask",
    "inputs_position": "position_ids",
    "inputs_positions": "position_ids",
    "targets_segmentation": "loss_mask",
    "targets_segment_ids": "loss_mask",
}
"""Columns of batches that Grain packs and MaxText trains on: segments number the documents of a row, padding is 0.
Sources: https://github.com/google/grain (packing) and https://github.com/AI-Hypercomputer/maxtext (input_pipeline)."""
SHARE_NEXT = 0.5
"""Share of targets that have to be the next tokens in rows of short documents, whose last targets are others."""


def _with_names_of_grain(table: Table) -> Table:
    """Return the table with the names that Transformers has for what Grain and MaxText call inputs and targets."""
    columns = table.columns
    inputs, targets = columns.get("inputs"), columns.get("targets")
    named = any(name in columns for name in OF_GRAIN if name != "inputs")
    if inputs is None or not (named or isinstance(inputs, Ragged)) or is_float(inputs) or depth(inputs) != 2:
        return table
    if targets is not None and not _are_neighbours(inputs, targets, SHARE_NEXT if named else NEARLY_ALL):
        return table
    note = "inputs were read as token ids" + (", and their segments as documents" if named else "")
    renamed = {OF_GRAIN.get(name, name): column for name, column in columns.items()}
    return replace(table, columns=renamed, notes=[*table.notes, note])


def with_usual_names(table: Table) -> Table:
    """Return the table with `x` and `y` (or inputs and targets) named for what they are, if y holds x's next tokens."""
    if find(table.columns, "", "ids"):
        return table
    table = _with_names_of_grain(table)
    for text, two in (("x", "y"), ("inputs", "targets"), ("input", "target")):
        x, y = table.columns.get(text), table.columns.get(two)
        if x is not None and y is not None and _are_neighbours(x, y):
            new = {text: "input_ids", two: "targets"}
            table.columns = {new.get(name, name): column for name, column in table.columns.items()}
            table.notes.append(
                f"{text} and {two} were read as token ids and their next tokens, as they hold tokens of the same text"
            )
            return table
    return table


def _are_neighbours(x: Column, y: Column, share: float = NEARLY_ALL) -> bool:
    if is_float(x) or is_float(y):
        return False
    ids, targets = ragged_or_none(x), ragged_or_none(y)
    if ids is None or targets is None:
        return False
    if ids.rows != targets.rows or bool(np.any(ids.lengths != targets.lengths)) or len(ids.flat) < 2 * ids.rows + 2:
        return False
    return any(_shifted_share(ids, targets, shift) >= share for shift in (*SHIFTS, 0))


def _shifted_share(ids: Ragged, targets: Ragged, shift: int) -> float:
    """Return the share of targets that are the tokens so many places on in their row."""
    places = np.arange(len(ids.flat)) + shift
    row = np.repeat(np.arange(ids.rows), ids.lengths)
    inside = (places >= ids.offsets[row]) & (places < ids.offsets[row + 1])
    return float(np.mean(ids.flat[places[inside]] == targets.flat[inside])) if bool(inside.any()) else 0.0


def are_classes(ids: Ragged, labels: Ragged) -> bool:
    """Return whether labels are a 0 or 1 for each of several classes, not labels of tokens."""
    return labels.rows == ids.rows and are_marks(labels) and float(np.mean(labels.lengths != ids.lengths)) > 0.5


def are_marks(labels: Ragged) -> bool:
    """Return whether all rows hold as many numbers, each 0 or 1."""
    if not labels.rows or bool(np.any(labels.lengths != labels.lengths[0])):
        return False
    return bool(np.all((labels.flat == 0) | (labels.flat == 1)))


def are_targets(ids: Ragged, labels: Ragged) -> bool:
    """Return whether labels, of other lengths than the inputs, are separate texts and not a cut copy of them."""
    if labels.rows != ids.rows or not labels.rows or float(np.mean(labels.lengths != ids.lengths)) <= 0.5:
        return False
    looked = [_stands_in(labels.row(row), ids.row(row)) for row in range(min(labels.rows, MAX_ROWS_FOR_TARGETS))]
    judged = [inside for inside in looked if inside is not None]
    return bool(judged) and sum(judged) < 0.5 * len(judged)


def _stands_in(labels: np.typing.NDArray[np.integer], ids: np.typing.NDArray[np.integer]) -> bool | None:
    """Return whether the labels of a row stand in its inputs, one after the other; None for a row without labels.

    Labels that run on behind the end of the inputs are a copy with something added.
    """
    labels = labels[labels != IGNORED_LABEL]
    if not len(labels):
        return None
    starts = np.flatnonzero(ids == labels[0])
    parts = (ids[start : start + len(labels)] for start in starts[:MAX_ROWS_FOR_TARGETS].tolist())
    return any(
        len(part) >= MIN_COPIED_LABEL_SHARE * len(labels) and np.array_equal(part, labels[: len(part)])
        for part in parts
    )


def of_speech(table: Table) -> Ragged | None:
    """Return the transcripts of a batch of speech, or None for other batches."""
    name = find(table.columns, "", "labels")
    if name is None or not any(column in table.columns for column in SPEECH) or is_float(table.columns[name]):
        return None
    rows = ragged_or_none(table.columns[name])
    if rows is None or not len(rows.flat) > rows.rows > 1 or are_marks(rows):
        return None
    lengths = next((names.class_labels(table.columns[name], rows.rows) for name in TARGET_LENGTHS
                    if name in table.columns), None)  # fmt: skip
    return rows if lengths is None else rows.up_to(lengths)


def target_rows(labels: Ragged, numbers: Ints, context: Context) -> Sequences:
    """Return target labels as token rows that are trained on where they are not ignored."""
    trained = labels.flat != IGNORED_LABEL
    own_pad = context.tokenizer.pad if context.tokenizer is not None else None
    pad = own_pad if own_pad is not None else context.model.pad
    ids = Ragged(np.where(trained, labels.flat, 0 if pad is None else pad), labels.offsets)
    attention = Ragged(trained.astype(np.int8), labels.offsets)
    pad, may_end = padding_token(ids, attention, labels, context)
    return Sequences("labels", ids, numbers, labels=labels, attention=attention, pad=pad, pad_may_end=may_end)


# The purpose of a batch, if the user did not give it.


FEW_CLASSES = 64
"""Labels of tokens below this number, and equal to hardly any token, are classes of tokens, not tokens."""
SHARED_PROMPTS = 0.9
"""Share of the pairs whose prompts agree, from which on both sides have one prompt."""
_THOUGHT = re.compile(r"</?think(?:ing)?>")
"""What templates of reasoning models open, or open and close, for the answer that is to be generated."""


def is_preference(side: Sequences, table: Table, purpose: Purpose | None) -> bool:
    """Whether the rows are chosen completions followed by the rejected ones of the same prompts."""
    if side.labels is not None or side.rows < 2 or side.rows % 2:
        return False
    if purpose is not None:
        # A reward model's batch has no mask of completions, but a mask of padding and rows of one length.
        padded = side.attention is not None and bool(np.all(side.ids.lengths == side.ids.lengths[0]))
        return purpose == "dpo" and (side.loss_mask is not None or padded)
    if side.loss_mask is None:
        return False
    # Next to a label, completions are wanted or not each for itself (KTO).
    if "completion_mask" not in table.columns or "label" in table.columns or side.attention is None:
        return False
    return _shares_prompts(side, side.rows // 2)


def _shares_prompts(side: Sequences, apart: int) -> bool:
    """Whether rows so far apart have the same prompts."""
    same = 0
    for row in range(side.rows - apart):
        prompts = [_prompt(side, row), _prompt(side, row + apart)]
        # Of an empty completion the row is the prompt alone.
        least = min(map(len, filter(len, prompts)), default=0)
        same += bool(least) and np.array_equal(prompts[0][:least], prompts[1][:least])
    return same >= SHARED_PROMPTS * (side.rows - apart)


def _prompt(side: Sequences, row: int) -> Ints:
    assert side.loss_mask is not None  # noqa: S101 - the caller saw one
    trained = np.flatnonzero(side.loss_mask.row(row))
    end = int(trained[0]) if len(trained) else int(side.lengths[row])
    return side.ids.row(row)[:end].astype(np.int64)


MAX_MASKED_IN_PRETRAINING = 0.02
"""Share of the tokens without a label up to which rows are plain text. Chosen: the first of each document at most."""


class Inferred(NamedTuple):
    """A purpose, and what of the data suggests it."""

    purpose: Purpose
    because: str


def infer_purpose(
    sides: list[Sequences],
    floats: Mapping[str, object],
    context: Context,
    table: Table,
    *,
    has_classes: bool,
    has_targets: bool,
) -> Inferred:
    """Return the purpose that the columns and labels suggest, and what suggests it."""
    side_names = {side.name for side in sides}
    if side_names & {"chosen", "rejected"}:
        return Inferred("dpo", "it has chosen and rejected rows")
    if others := side_names - {"", "prompt", "completion"}:
        compared = f"its texts are compared: {', '.join(shorten(other, 30) for other in sorted(others))}"
        are_choices = any(name.startswith(names.CHOICE) for name in others)
        answers = Inferred("classification", f"each row has {len(others)} choices")
        return answers if are_choices else Inferred("embedding", compared)
    # Beside a completion, or a mask of it, a label of each row says whether the completion is wanted (KTO).
    has_classes = has_classes and not any(side.loss_mask is not None or side.name == "completion" for side in sides)
    valued = "labels" in floats or ("label" in floats and not any(side.is_trained for side in sides))
    if not has_targets and (not sides or has_classes or valued or context.model.token_classification):
        return Inferred("classification", "its labels are classes or values" if sides else "it has no token rows")
    if not has_targets and ("pixel_values" in floats or any(name.startswith("image_grid") for name in table.columns)):
        return Inferred("vlm", "images stand with the tokens")
    if has_targets:
        return Inferred("sft", "its labels are texts of their own")
    return _of_tokens(sides[0], context, table)


def are_marked(sides: list[Sequences], classes: Ints) -> bool:
    """Whether the classes of rows say which of their completions are wanted, as KTO has them."""
    answers = any(side.loss_mask is not None or side.name == "completion" for side in sides)
    return answers and bool(np.isin(classes, (0, 1)).all())


def _of_tokens(side: Sequences, context: Context, table: Table) -> Inferred:
    packed = side.packed and not side.is_trained and not side.name and not _has_roles(side, context)
    if packed or _are_ids_alone(side, context, table):
        rows = "its rows are packed and have" if packed else "it has token ids alone, with"
        return Inferred("pretraining", f"{rows} neither labels nor turns")
    if side.name or not side.is_trained:
        answers = not side.name and _has_answers(side, context)
        because = "its rows hold answers of an assistant" if answers else "it has neither labels nor answers"
        return Inferred("sft" if answers else "generation", because)
    if _labels_are_classes(side):
        return Inferred("classification", "its labels are few classes, and not the tokens at their places")
    if hides_words(side, context.tokenizer.mask if context.tokenizer is not None else None, table.columns):
        return Inferred("pretraining", "words are hidden at random, and their labels are the words")
    masked, content = 0, len(side.ids.flat)
    if not side.labelled_by_itself and side.trained is not None:
        masked, content = int((side.content & ~side.trained).sum()), int(side.content.sum())
    # A packed batch masks the first token of each document; an instruction batch masks prompts.
    share = f"{masked / max(content, 1):.0%} of its tokens are masked"
    if masked <= MAX_MASKED_IN_PRETRAINING * content and not _has_roles(side, context):
        return Inferred("pretraining", f"{share}, and it has no turns")
    return Inferred("sft", share)


MANY_ROWS = 20
"""Rows that are a data set, and no batch of prompts to generate from. Chosen by hand."""
LEAST_PADDED = 0.1
"""Share of rows that begin with padding from which they are prompts to generate from. Chosen by hand."""


def _are_ids_alone(side: Sequences, context: Context, table: Table) -> bool:
    """Whether rows of ids have neither a mask nor labels, nor turns nor padding in front, as prompts have.

    A mask of ones alone, as tokenizers give it with every row, is none where there are many rows.
    """
    companions = {kind for kind in _BESIDE_IDS if find(table.columns, "", kind)}
    if side.rows >= MANY_ROWS and side.attended is not None and bool(side.attended.all()):
        companions -= {"attention"}
    if side.name or side.rows < 2 or companions:
        return False
    padded_in_front = float(np.mean(side.bounds[0] - side.ids.offsets[:-1] >= LEAST_RUN))
    return padded_in_front < LEAST_PADDED and not _has_roles(side, context)


def _labels_are_classes(side: Sequences) -> bool:
    if side.labels is None or side.labelled_by_itself or side.trained is None:
        return False
    # Padding may be labelled with class 0, which is the padding token's number too.
    used = side.trained & side.content
    labels, ids = side.labels.flat[used], side.ids.flat[used]
    if len(labels) and bool(np.all(labels == labels[0])) and labels[0] > 0:
        return False  # tags of one kind are the common one, 0; any other number in all places is a fault
    if not len(labels) or int(labels.max()) >= FEW_CLASSES or int(labels.min()) < 0 or int(ids.max()) < 2 * FEW_CLASSES:
        return False
    return float(np.mean(labels == ids)) < 0.05


def _has_roles(side: Sequences, context: Context) -> bool:
    """Whether the first rows show the turns of a conversation."""
    return any(row.turns for row in _first_roles(side, context))


def _has_answers(side: Sequences, context: Context) -> bool:
    """Whether the first rows end with the words of an assistant, not with the marker before them."""
    return any(
        row.turns and row.turns[-1].role == ASSISTANT and _THOUGHT.sub("", row.words(row.turns[-1])).strip()
        for row in _first_roles(side, context)
    )


def _first_roles(side: Sequences, context: Context) -> Iterator[RowRoles]:
    """Yield the first rows decoded; none without a tokenizer."""
    if context.tokenizer is not None:
        for index in range(min(side.rows, 4)):
            yield read_roles(side, index, context.tokenizer)


def split_preference_halves(sides: list[Sequences], table: Table, purpose: Purpose | None) -> list[Sequences]:
    """Return chosen and rejected rows if a batch holds one after the other, as TRL's preference collator makes it.

    Behind them may stand the reference answers, as its collator for triples has them.
    """
    if len(sides) != 1 or sides[0].name:
        return sides
    side = sides[0]
    parts = (*PAIR, "reference") if _are_triples(side, table) else PAIR
    if parts == PAIR and not is_preference(side, table, purpose):
        return sides
    rows = side.rows // len(parts)
    return [_part(side, name, np.arange(rows) + place * rows) for place, name in enumerate(parts)]


PAIR = ("chosen", "rejected")


def _are_triples(side: Sequences, table: Table) -> bool:
    if "completion_mask" not in table.columns or "label" in table.columns or side.attention is None:
        return False
    if side.labels is not None or side.rows % 3 or side.rows < MIN_ROWS_OF_TRIPLES:
        return False
    return _shares_prompts(side, side.rows // 3)


MIN_ROWS_OF_TRIPLES = 6
"""Rows from which thirds are distinguished from three answers to one prompt. Chosen: two triples."""


def _part(side: Sequences, name: str, rows: Ints) -> Sequences:
    def take(column: Ragged | None) -> Ragged | None:
        return None if column is None else column.take(rows)

    return Sequences(
        name, side.ids.take(rows), side.numbers[: len(rows)], take(side.labels), take(side.attention),
        take(side.positions), take(side.loss_mask), pad=side.pad, pad_may_end=side.pad_may_end,
    )  # fmt: skip


def with_prompt_apart(sides: list[Sequences]) -> list[Sequences]:
    """Return the sides; completions whose prompts stand in a column of their own are trained on as a whole."""
    by_name = {side.name: side for side in sides}
    if "prompt" not in by_name or len(sides) == 1:
        return sides
    return [side if side.name == "prompt" or side.trained is not None else _trained_whole(side) for side in sides]


def _trained_whole(side: Sequences) -> Sequences:
    mask = side.attention if side.attention is not None else Ragged(side.content.astype(np.int8), side.ids.offsets)
    return Sequences(
        side.name, side.ids, side.numbers, side.labels, side.attention, side.positions, mask,
        pad=side.pad, pad_may_end=side.pad_may_end,
    )  # fmt: skip


# Columns → `Batch`: find out what each column is, compare their lengths, infer the purpose.


_BESIDE_IDS: tuple[Kind, ...] = ("labels", "attention", "positions", "loss_mask")
MAX_NAMES = 1000
MAX_COLUMN_NAME = 80
"""Columns that answers name, and characters of a name."""


@dataclass(slots=True)
class _BuildState:
    """What building one batch has found so far."""

    table: Table
    context: Context
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    targets: Ragged | None = None
    has_classes: bool = False
    class_names: dict[int, str] = field(default_factory=dict)
    is_words: bool = False

    def problem(self, check: str, summary: str, rows: list[int] | Ints) -> None:
        self.problems.append(Problem.at(check, summary, rows, self.table, self.context.first))

    def numbers(self, places: Ints) -> Ints:
        """Return the numbers in the file of rows of the table."""
        return self.table.numbers_at(places, self.context.first)


def build(table: Table, context: Context, words: Words | None = None) -> Batch:
    """Make a batch of a table; `words` is what its text was split into, where it had no tokenizer.

    Raises:
        InputError: no column is one that the checks know, or the token ids are not whole numbers.
    """
    table = names.with_choices_apart(with_usual_names(table))
    found = _BuildState(table, context, notes=list(table.notes), is_words=words is not None)
    wanted = _sides_in(table)
    sides = [side for name in wanted if (side := _side(found, name)) is not None]
    classes = _classes(found, sides)
    floats = float_columns(table)
    cells = {} if sides else cells_of(table)
    boxes, masks = boxes_of(table), masks_of(table)
    of_items = (rows.rows for _, rows in (*drawn_items(table), *histories(table)))
    drawn = next(of_items, 0) if not sides and not floats else 0
    if not sides and not floats and classes is None and boxes is None and not drawn and not _are_measurements(cells):
        raise _of_no_batch(table, context)
    if not sides:
        found.targets = of_speech(table)
    sides = split_preference_halves(sides, table, context.purpose)
    has_classes = classes is not None or found.has_classes
    marked = classes is not None and "label" in table.columns and are_marked(sides, classes)
    if context.purpose is not None:
        purpose, because = context.purpose, ""
    elif marked or table.suggests is not None:
        purpose, because = table.suggests or Inferred("kto", "its label marks each completion as desired or not")
    else:
        purpose, because = infer_purpose(
            sides, floats, context, table, has_classes=has_classes, has_targets=found.targets is not None
        )
    numeric = (*floats, *cells)
    rows = _rows(found, wanted, classes) or _numeric_rows(table, numeric, has_boxes=boxes is not None) or drawn
    if sides and sides[0].name == "chosen" and wanted == ("",):
        rows //= len(sides)
    _missing(found)
    _positions_of_documents(found, sides)
    _positions_of_segments(found, sides)
    if mismatch := names.wrong_class_images(table):
        found.problem("schema_mismatch", mismatch, [])
    if context.model.problem_type == MULTI_LABEL and (mismatch := names.whole_marks(table)):
        found.problem("schema_mismatch", mismatch, [])
    _token_types(found)
    which, exchanged = exchanged_pairs(table)
    if len(exchanged):
        found.problem("preference_swapped", which, exchanged)
    return Batch(
        path=context.path,
        formats=context.formats,
        purpose=purpose,
        purpose_given=context.purpose is not None,
        purpose_because=because,
        rows=rows,
        numbers=found.numbers(np.arange(rows, dtype=np.int64)),
        sides=tuple(with_prompt_apart(sides)),
        targets=_targets(found),
        classes=classes,
        class_names=found.class_names,
        floats=floats,
        stored_as_bytes=frozenset(name for name in floats if names.is_bytes(table.columns.get(name, []))),
        integers=integer_columns(table, found.notes),
        boxes=boxes,
        masks=masks,
        words=words,
        decoder_inputs=None if found.targets is None else ragged_or_none(table.columns.get("decoder_input_ids")),
        rest=rest_of(table, table.others if sides else tuple(table.columns), floats, rows),
        cells=cells,
        columns=tuple(shorten(name, MAX_COLUMN_NAME) for name in islice(table.columns, MAX_NAMES)),
        tokenizer=context.tokenizer,
        model=context.model,
        problems=tuple(found.problems),
        notes=tuple(found.notes),
    )


MULTI_LABEL = "multi_label_classification"
"""The `problem_type` of Transformers by which a row may have several classes."""


def _token_types(found: _BuildState) -> None:
    """Report token types that the model has no embedding for."""
    limit = found.context.model.token_types
    if limit is None:
        return
    for name in (name for name in found.table.columns if name.endswith("token_type_ids")):
        rows = ragged_or_none(found.table.columns[name])
        if rows is None:
            continue
        wrong = np.flatnonzero((rows.flat < 0) | (rows.flat >= limit))
        if len(wrong):
            summary = f"{name} holds {int(rows.flat[wrong[0]])}, and the model has {limit} token types"
            found.problem("token_id_out_of_range", summary, np.unique(rows.row_of(wrong)))


def _of_no_batch(table: Table, context: Context) -> InputError:
    known = "input_ids, labels, attention_mask, chosen_input_ids, rejected_input_ids, pixel_values"
    named = ", ".join(shorten(name, 30) for name in list(table.columns)[:8]) or "none"
    return InputError(
        f"{shorten(context.path, 200)}: none of its columns is one of a batch ({named}); give some of {known}, ..."
    )


def _rows(found: _BuildState, sides: Sequence[str], classes: Ints | None) -> int:
    """Return how many rows of token ids a table has, 1 where they are one flat row; without any, how many classes."""
    columns = found.table.columns
    counts = [row_count(columns[name]) for side in sides if (name := find(columns, side, "ids"))]
    if not counts:
        return 0 if classes is None else len(classes)
    return 1 if _ids_depth(found, sides[0]) == 1 else max(counts)


def _numeric_rows(table: Table, numeric: Sequence[str], *, has_boxes: bool) -> int:
    """Return how many rows the numeric columns of a table have, or its boxes where those have none.

    Images of several sizes are one flat array of numbers, but as many rows as the column has.
    """
    rows = max((row_count(table.columns[name]) for name in numeric if name in table.columns), default=0)
    if rows or not has_boxes:
        return rows
    return max(row_count(table.columns[name]) for name in BOX_COLUMNS if name in table.columns)


def _are_measurements(cells: Mapping[str, Column]) -> bool:
    """Return whether there are several numbers for each of several rows."""
    numeric = sum(map(is_numeric, cells.values()))
    return numeric > 1 and row_count(next(iter(cells.values()))) >= MIN_MEASUREMENT_ROWS


def _targets(found: _BuildState) -> Sequences | None:
    if found.targets is None:
        return None
    return target_rows(found.targets, found.numbers(np.arange(found.targets.rows, dtype=np.int64)), found.context)


def _sides_in(table: Table) -> tuple[str, ...]:
    have = {side for side in names.SIDES if find(table.columns, side, "ids")}
    if {"chosen", "rejected"} <= have or ("chosen" in have or "rejected" in have):
        return tuple(side for side in ("prompt", "chosen", "rejected") if side in have)
    if find(table.columns, "", "ids"):
        return ("",)
    return tuple(side for side in ("prompt", "completion") if side in have) or names.sides_of_own(table.columns)


def _read(found: _BuildState, side: str, kind: Kind) -> Ragged | None:
    """Return a column of a side as rows, or None if there is none or it is of another shape."""
    name = find(found.table.columns, side, kind)
    if name is None or (not side and kind == "loss_mask" and find(found.table.columns, "completion", "ids")):
        return None
    column = found.table.columns[name]
    if kind != "ids" and (depth(column) > 2 or (depth(column) == 1 and _ids_depth(found, side) > 1)):
        if kind == "positions":
            found.notes.append(f"{name} has {depth(column)} dimensions and was not checked")
        return None
    try:
        rows, missing = names.ragged(column)
    except (TypeError, ValueError, OverflowError) as error:
        reason = f"{shorten(name, 100)} {error}"
        if kind == "ids":
            raise InputError(
                f"{shorten(found.context.path, 200)}: {reason}; give token ids as lists of whole numbers"
            ) from None
        found.problem("schema_mismatch", reason, [])
        return None
    if missing:
        found.problem("schema_mismatch", f"{len(missing)} row(s) lack {shorten(name, 100)}", missing)
    return rows


def _ids_depth(found: _BuildState, side: str) -> int:
    name = find(found.table.columns, side, "ids")
    return 0 if name is None else depth(found.table.columns[name])


def _side(found: _BuildState, name: str) -> Sequences | None:
    ids = _read(found, name, "ids")
    if ids is None:
        return None
    columns = {kind: _read(found, name, kind) for kind in _BESIDE_IDS}
    if not name and columns["labels"] is not None:
        columns["labels"] = _labels_of_tokens(found, ids, columns["labels"])
    keep = np.ones(ids.rows, np.bool_)
    for kind, column in columns.items():
        if column is None:
            continue
        agreeing = _agreeing(found, name, kind, ids, column)
        if agreeing is None:
            columns[kind] = None
        else:
            keep &= agreeing
    kept = np.flatnonzero(keep)
    if len(kept) < ids.rows:
        ids = ids.take(kept)
        columns = {kind: None if column is None else column.take(kept) for kind, column in columns.items()}
    labels = find(found.table.columns, name, "labels") or ""
    pad, may_end = (
        (None, False)
        if found.is_words or not found.table.padded
        else padding_token(ids, columns["attention"], columns["labels"], found.context)
    )
    return Sequences(
        name=name,
        ids=ids,
        numbers=found.numbers(kept),
        labels=columns["labels"],
        attention=columns["attention"],
        positions=columns["positions"],
        loss_mask=columns["loss_mask"],
        shifted_by_design=labels.removeprefix(f"{name}_") in names.NEXT_TOKEN_NAMES or _is_of_megatron(found, name),
        documents_masked=_documents_masked(found.table, name, columns["attention"]),
        pad=pad,
        pad_may_end=may_end,
    )


def _labels_of_tokens(found: _BuildState, ids: Ragged, labels: Ragged) -> Ragged | None:
    """Return the labels if they belong to the input's tokens; None if they are classes or separate texts."""
    if are_classes(ids, labels):
        found.has_classes = True
        found.notes.append(f"labels hold a 0 or 1 for each of {int(labels.lengths[0])} classes")
        return None
    known = found.context.model.encoder_decoder or "decoder_input_ids" in found.table.columns
    if not known and not are_targets(ids, labels):
        return labels
    found.targets = labels
    why = "of an encoder-decoder model" if known else "have lengths and texts of their own, as for an encoder-decoder:"
    found.notes.append(f"labels {why} are separate from input_ids and were not compared with them")
    return None


def _agreeing(found: _BuildState, side: str, kind: Kind, ids: Ragged, column: Ragged) -> Bools | None:
    """Return which rows of a column are as long as their token ids; None if the column as a whole does not fit."""
    name, ids_name = find(found.table.columns, side, kind), find(found.table.columns, side, "ids")
    if column.rows != ids.rows:
        found.problem("length_mismatch", f"{name} has {column.rows} rows, {ids_name} has {ids.rows}", [])
        return None
    wrong = np.flatnonzero(column.lengths != ids.lengths)
    if not len(wrong):
        return np.ones(ids.rows, np.bool_)
    row = int(wrong[0])
    found.problem(
        "length_mismatch",
        f"{name} and {ids_name} differ in length in {len(wrong)} of {ids.rows} row(s): in row "
        f"{found.numbers(wrong)[0]} {int(column.lengths[row])} and {int(ids.lengths[row])}",
        wrong,
    )
    return None if 2 * len(wrong) > ids.rows else column.lengths == ids.lengths


def _is_of_megatron(found: _BuildState, side: str) -> bool:
    """Whether the columns are those that Megatron's data loaders give: their labels are the next tokens."""
    return find(found.table.columns, side, "ids") == "tokens" and "loss_mask" in found.table.columns


def _documents_masked(table: Table, side: str, attention: Ragged | None) -> bool:
    if any(mark in table.columns for mark in names.DOCUMENT_MARKS):
        return True
    if attention is not None:
        # Numbered documents (1 1 1 2 2) in the mask, as Axolotl's multipack writes them.
        return bool(len(attention.flat)) and int(attention.flat.max()) > 1
    name = find(table.columns, side, "attention")
    return name is not None and depth(table.columns[name]) > 2 and not _is_causal(table.columns[name])


def _positions_of_documents(found: _BuildState, sides: Sequence[Sequences]) -> None:
    """Report positions that run on where a document begins, by the bounds given to attention."""
    bounds = next((found.table.columns[name] for name in names.DOCUMENT_BOUNDS if name in found.table.columns), None)
    ends = None if bounds is None else ragged_or_none(bounds)
    for side in sides if ends is not None else ():
        if side.positions is None or side.rows != 1 or ends is None or not len(ends.flat) > 2:
            continue
        starts = ends.flat[1:-1].astype(np.int64)
        if int(ends.flat[0]) or int(ends.flat[-1]) != len(side.ids.flat) or bool((np.diff(ends.flat) <= 0).any()):
            continue
        on = int((side.positions.flat[starts] == side.positions.flat[starts - 1] + 1).sum())
        if on:
            summary = f"position_ids run on at the beginning of {on} of {len(starts) + 1} documents"
            found.problem("position_ids_wrong", summary, [0])


def _positions_of_segments(found: _BuildState, sides: Sequence[Sequences]) -> None:
    """Report positions that run on where the number of the document changes; BERT's two segments of a row are none."""
    columns = found.table.columns
    numbered = next((column for name in names.DOCUMENT_NUMBERS if (column := ragged_or_none(columns.get(name)))), None)
    for side in sides if numbered is not None else ():
        if side.positions is None or numbered is None or not np.array_equal(numbered.offsets, side.ids.offsets):
            continue
        begins = np.flatnonzero(np.diff(numbered.flat)) + 1
        row, (start, stop) = side.ids.row_of(begins), side.bounds
        inside = (begins > start[row]) & (begins < stop[row])
        begins, row = begins[inside], row[inside]
        on = side.positions.flat[begins] == side.positions.flat[begins - 1] + 1
        if on.any() and np.bincount(row).max() > 1:
            wrong = np.unique(row[on])
            summary = f"position_ids run on at the beginning of {int(on.sum())} documents in {len(wrong)} rows"
            found.problem("position_ids_wrong", summary, wrong)


MASKS_LOOKED_AT = 4
"""Rows whose masks are looked at: each is as large as its tokens squared."""


def _is_causal(column: Column) -> bool:
    """Whether masks of rows times tokens times tokens hide only what comes later, and perhaps padding.

    Then each token is seen by all that follow it. A mask that keeps documents apart hides it from the next document.
    """
    try:
        masks = np.asarray(column[:MASKS_LOOKED_AT])  # type: ignore[index]
    except ValueError:
        return False
    if masks.ndim < 3 or masks.dtype == object or masks.shape[-1] != masks.shape[-2]:
        return False
    masks = masks.reshape(-1, *masks.shape[-2:])
    own = np.diagonal(masks, axis1=1, axis2=2)[:, np.newaxis, :]
    earlier = np.tril(np.ones(masks.shape[1:], np.bool_))
    return bool(np.all((masks == own) | ~earlier))


def _classes(found: _BuildState, sides: list[Sequences]) -> Ints | None:
    if any(side.labels is not None for side in sides):
        return None
    for name in names.CLASS_NAMES:
        if name not in found.table.columns:
            continue
        column = found.table.columns[name]
        rows = row_count(column)
        if names.is_float(column) or (sides and rows != sides[0].rows):
            continue
        if (labels := names.class_labels(column, rows)) is not None:
            return labels
        if (named := names.named_classes(column, rows)) is not None:
            labels, found.class_names = named
            return labels
    return None


def _missing(found: _BuildState) -> None:
    """Report columns that some rows have and others lack."""
    known = set(names.FLOAT_INPUTS) | set(names.CLASS_NAMES)
    for kind in _BESIDE_IDS:
        known |= {find(found.table.columns, side, kind) or "" for side in ("", *names.SIDES)}
    reported = " ".join(problem.summary for problem in found.problems)
    for name, rows in found.table.rows_without.items():
        if name in known and f"lack {name}" not in reported:
            column = found.table.columns.get(name)
            lacking = sum(value is None for value in column) if isinstance(column, list) else len(rows)
            found.problems.append(Problem("schema_mismatch", f"{lacking} row(s) lack {name}", tuple(rows)))
