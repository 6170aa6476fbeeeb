"""A data set as a table of columns, and which column is what: tokens, labels, masks, scores and other inputs."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Floats, Ints, Ragged, as_integers, whole_numbers
from mldebug_mcp.core.access import is_file, is_folder, read_bytes
from mldebug_mcp.core.config_files import MAX_CONFIG_BYTES
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import shorten

Column = Ragged | npt.NDArray[np.generic] | list[object]


@dataclass(slots=True)
class Table:
    """Columns of a file, or of one piece of it.

    Args:
        columns: By name. Lists of whole numbers as `Ragged`, tensors as arrays, everything else as a list of values.
        rows_without: For rows given one by one: which rows lack a column that others have.
        notes: What was skipped.
        numbers: The rows' numbers in the file, where only some of them are here.
        others: For token rows made of text: the columns in which rows with the same text may still differ.
        shard: Which file of several it is from.
        padded: Whether rows may be padded; the text of a stream and of its documents is not.
        stream: All tokens of a piece of a stream, whose rows are cuts of it at a fixed width, and not documents.
        tail: The last tokens of a stream, fewer than a window.
        cut_off: Bytes behind the last whole token.
        suggests: The purpose that the columns of text suggested before they were tokenized, and why.
        corrupt: Rows of this table that do not match their checksums, each with the byte of the file where it begins.
    """

    columns: dict[str, Column]
    rows_without: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    numbers: Ints | None = None
    others: tuple[str, ...] = ()
    shard: str = ""
    stream: npt.NDArray[np.integer] | None = None
    padded: bool = True
    tail: npt.NDArray[np.integer] | None = None
    cut_off: int = 0
    suggests: tuple[Literal["generation", "classification"], str] | None = None
    corrupt: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scalars = [name for name, column in self.columns.items() if getattr(column, "shape", None) == ()]
        for name in scalars:
            del self.columns[name]
        left_out = (f"{shorten(name, 60)}: left out, as it is one value and not one for each row" for name in scalars)
        self.notes = [*self.notes, *left_out]

    def numbers_at(self, places: Sequence[int] | Ints, first: int) -> Ints:
        """Return the numbers in the file of some rows, where the first row of a whole table is number `first`."""
        at = np.asarray(places, np.int64)
        return at + first if self.numbers is None else self.numbers[at]


MISSING_SHOWN = 1000
"""Rows listed for each column that they lack."""
MOST_CELLS = 20_000_000
"""Rows times columns that are laid out at a time: rows with keys of their own would fill the memory with nothing."""


def from_records(records: Sequence[Mapping[str, object]], *, first: int = 0) -> Table:
    """Make a table of rows given one by one. A row that lacks a column gets None there, and is listed."""
    counts = Counter(name for record in records for name in record)
    most = max(1, MOST_CELLS // max(1, len(records)))
    names = list(counts) if len(counts) <= most else [name for name, _ in counts.most_common(most)]
    columns: dict[str, Column] = {name: [record.get(name) for record in records] for name in names}
    without = {
        name: [first + number for number, record in enumerate(records) if record.get(name) is None][:MISSING_SHOWN]
        for name in names
    }
    notes = [f"left out the {len(counts) - most:,} rarest of {len(counts):,} columns"] if len(counts) > most else []
    return Table(columns, {name: rows for name, rows in without.items() if rows}, notes)


def from_mapping(values: Mapping[str, object]) -> Table:
    """Make a table of a mapping from column names to rows, or of one row."""
    columns: dict[str, Column] = {}
    for name, value in values.items():
        columns[str(name)] = [value] if isinstance(value, (str, int, float)) or value is None else _listed(value)
        if isinstance(value, Mapping):
            columns |= {path: _listed(leaf) for path, leaf in leaves(str(name), value) if not np.isscalar(leaf)}
    return Table(columns)


MAX_NESTING = 4
"""Mappings within mappings that are looked into. Chosen: an observation's camera's image lies three deep."""
MAX_LEAVES = 100
"""Values of one mapping that are looked at. Chosen: more than any batch has."""


def leaves(name: str, value: Mapping[Any, object]) -> Iterator[tuple[str, object]]:
    """Yield what the mappings within a mapping hold, named by the way there: `inputs.image`."""
    return islice(_leaves(name, value, MAX_NESTING), MAX_LEAVES)


def _leaves(name: str, value: Mapping[Any, object], left: int) -> Iterator[tuple[str, object]]:
    for key, inner in value.items():
        path = f"{name}.{key}"
        if not isinstance(inner, Mapping):
            yield path, inner
        elif left:
            yield from _leaves(path, inner, left - 1)


def _listed(value: object) -> Column:
    if isinstance(value, np.ndarray):
        return value
    return list(value) if isinstance(value, (list, tuple)) else [value]


def records_in(value: object) -> list[Mapping[str, object]] | None:
    """Return the rows if a value is a list of objects, else None."""
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return value
    return None


@dataclass(frozen=True, slots=True)
class Part:
    """Row groups of a parquet file or record batches of an Arrow file, from `start` up to `stop`.

    `first` is the number of the first row in the data set. A format that is read in one go has the whole path as file.
    `shard` is the file's name where there are several.
    """

    file: Path
    start: int = 0
    stop: int = 0
    first: int = 0
    shard: str = ""


def packed(files: Iterable[tuple[Path, Sequence[tuple[int, int]]]], most_bytes: int) -> list[Part]:
    """Return the parts of a data set: as many neighbouring groups of a file each as `most_bytes` hold, or one."""
    parts: list[Part] = []
    first = 0
    for file, groups in files:
        parts += _parts_of(file, groups, first, most_bytes)
        first += sum(rows for rows, _ in groups)
    return parts


def _parts_of(file: Path, groups: Sequence[tuple[int, int]], first: int, most_bytes: int) -> list[Part]:
    parts: list[Part] = []
    start = size = rows = 0
    for number, (group_rows, group_bytes) in enumerate(groups):
        if number > start and size + group_bytes > most_bytes:
            parts.append(Part(file, start, number, first))
            start, first, size, rows = number, first + rows, 0, 0
        size, rows = size + group_bytes, rows + group_rows
    return [*parts, Part(file, start, len(groups), first)] if groups else parts


Kind = Literal["ids", "labels", "attention", "positions", "loss_mask"]
SIDES = ("chosen", "rejected", "prompt", "completion")
NOT_SIDES = frozenset({"decoder", "labels", "reference", "ref"})
"""What `_input_ids` may follow without being a side of a pair or triplet."""
_COLUMNS_NAMES: Mapping[Kind, tuple[str, ...]] = {
    "ids": ("input_ids", "token_ids", "tokens", "input_tokens", "ids"),
    "labels": ("labels", "label_ids", "targets", "target_ids"),
    "attention": ("attention_mask",),
    "positions": ("position_ids", "positions"),
    "loss_mask": ("loss_mask", "completion_mask", "assistant_masks", "assistant_mask", "completion_masks"),
}
NEXT_TOKEN_NAMES = frozenset({"targets", "target_ids"})
"""Label columns that by their name hold the next tokens, as in nanoGPT and Megatron: shifted by design."""
CLASS_NAMES = (
    "labels", "label", "label_ids", "class", "classes", "target", "targets", "y", "sentiment", "intent", "emotion",
)  # fmt: skip
LONGEST_CLASS_NAME = 64
LEAST_ROWS_OF_CLASS = 2
"""Characters of a class's name, and rows that there are of each on average: what is longer or rarer is text."""
DOCUMENT_MARKS = (
    "seq_lengths",
    "seq_start_id",
    "cu_seq_lens_q",
    "cu_seqlens",
    "cu_seq_lens",
    "seq_idx",
    "document_ids",
    "sequence_ids",
)
"""Columns that keep packed documents apart without position ids."""
DOCUMENT_NUMBERS = ("seq_idx", "document_ids", "sequence_ids", "segment_ids", "doc_ids")
"""Columns with the number of the packed document of each token."""
DOCUMENT_BOUNDS = ("cu_seqlens", "cu_seq_lens", "cu_seq_lens_q")
"""Columns with the place of the beginning of each packed document, and of the end. Source: FlashAttention."""
_OF_LENGTHS = ("lengths", "length", "lens", "len")
_OF_SPEECH = ("logit", "logits", "feat", "feats", "feature", "features", "mel", "mels", "spec", "encoder_out")
_OF_TRANSCRIPTS = ("target", "targets", "tgt", "label", "labels", "token", "tokens", "text", "transcript")
INPUT_LENGTHS = ("input_lengths", *(f"{stem}_{end}" for stem in _OF_SPEECH for end in _OF_LENGTHS))
TARGET_LENGTHS = tuple(f"{stem}_{end}" for stem in _OF_TRANSCRIPTS for end in _OF_LENGTHS)
"""Frames of the model's output and symbols of the transcript in each row. Sources: torch's CTC loss, NeMo, ESPnet."""
SCALED_INSIDE = ("past_values",)
"""Inputs that forecasting models of Transformers scale themselves, unless the caller turns it off."""
FLOAT_INPUTS = (
    "pixel_values", "images", "image", "imgs", "img", "inputs", "input", "features", "x", "X", "data", "x_train",
    "X_train", "input_values", "input_features", "audio", "waveform", *SCALED_INSIDE,
)  # fmt: skip
"""Inputs that a network expects on the scale of 1. Embeddings, log-probabilities and rewards are on other scales."""


def is_of_images(name: str) -> bool:
    """Return whether a column holds inputs of a network or latents of them, by its name."""
    return name in FLOAT_INPUTS or "latent" in name


CONTRASTED = (
    ("anchor", "positive", "negative"),
    ("query", "positive", "negative"),
    ("query", "pos", "neg"),
    ("question", "positive", "negative"),
    ("anchor", "pos", "neg"),
    ("sentence1", "sentence2", "sentence3"),
    ("sentence_0", "sentence_1", "sentence_2"),
)
"""Columns of pairs and triplets for embeddings, as sentence-transformers names them; the third may be missing."""
ASKED_AND_SAID = (
    ("instruction", "output"),
    ("instruction", "response"),
    ("question", "answer"),
    ("query", "response"),
    ("query", "answer"),
    ("question", "response"),
    ("prompt", "response"),
    ("input", "output"),
    ("problem", "solution"),
    ("question", "solution"),
    ("user", "assistant"),
)
"""Columns that hold one exchange."""
RAW = frozenset(
    {"messages", "conversations", "conversation", "text", "prompt", "completion", "chosen", "rejected", "instruction"}
)
"""Columns of text that is not tokenized yet."""
SCORES = frozenset({"score", "scores", "similarity", "rating", "stars", "reward", "label", "labels"})
"""Numbers next to text that rate it: with others the table is one of measurements, with names and notes as texts."""
MARKS = ("kto_tag", "is_desirable", "desirable", "label", "labels")
"""Columns that say whether a completion is desired: LLaMA-Factory's, and those that TRL and Axolotl take for KTO."""
_DESIRED = frozenset({"true", "1", "1.0", "desirable", "desired", "good", "positive"})
_UNDESIRED = frozenset({"false", "0", "0.0", "-1", "-1.0", "undesirable", "undesired", "bad", "negative"})
REFERENCES = (
    "ground_truth", "ground_truths", "reward_model", "verification_info", "test_cases", "gold_answer", "final_answer",
    "reference_answer", "expected_answer",
)  # fmt: skip
"""Columns that a reward function compares an answer with, as verl, open-instruct and open-r1 name them."""
_SPELT = _DESIRED | _UNDESIRED
ASKED = ("prompt", "problem", "question", "query", "instruction")
MANY_WORDS = 0.5
MANY_TEXTS = 0.2
"""Shares of the values of a column that have to be of several words, and to differ, if it is running text. Chosen:
names of classes recur, and ids, paths and addresses are one word."""
VALUES_LOOKED_AT = 100
"""Values of a column that tell what it holds. Chosen: enough, and quick."""
_SEVERAL_WORDS = re.compile(r"\S\s+\S|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
"""Two words; or a few letters of Japanese, Chinese or Korean, which write no spaces."""


def find(columns: Mapping[str, Column], side: str, kind: Kind) -> str | None:
    """Return the name of the column that holds this for a side ("" for a plain batch), or None."""
    for name in _COLUMNS_NAMES[kind]:
        for spelt in (name,) if not side else (f"{side}_{name}", f"{name}_{side}"):
            if spelt in columns:
                return spelt
    if kind == "attention" and side in ("prompt", "completion") and f"{side}_mask" in columns:
        return f"{side}_mask"
    return None


CHOICE = "choice_"
"""What stands before the number of a choice in the names of its columns."""
MOST_CHOICES = 26
"""Choices of a question. Chosen: as many as there are letters."""
_OF_CHOICES = ("input_ids", "attention_mask", "token_type_ids")


def with_choices_apart(table: Table) -> Table:
    """Return the table with the token ids of each choice, which collators for multiple choice stack, as a side."""
    if depth(table.columns.get("input_ids", [])) != len(("rows", "choices", "tokens")):
        return table
    stacked = {name: table.columns[name] for name in _OF_CHOICES if depth(table.columns.get(name, [])) == 3}
    stacks = [row for column in stacked.values() for row in cast("list[object]", column)]
    counts = {len(stack) if isinstance(stack, (list, tuple, np.ndarray)) else 0 for stack in stacks}
    if len(counts) != 1 or not 1 < min(counts) <= MOST_CHOICES:
        return table
    columns = {name: column for name, column in table.columns.items() if name not in stacked}
    for name, column in stacked.items():
        for place in range(min(counts)):
            rows = cast("list[list[object]]", column)
            columns[f"{CHOICE}{place}_{name}"] = (
                column[:, place] if isinstance(column, np.ndarray) else [row[place] for row in rows]
            )
    return replace(table, columns=columns, notes=[*table.notes, f"each row has {min(counts)} choices"])


def sides_of_own(columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Return what stands before `_input_ids` in names of columns, unless that is a known side: anchor, positive, ..."""
    found = (name.removesuffix("_input_ids") for name in columns if name.endswith("_input_ids"))
    return tuple(name for name in found if name not in SIDES and name not in NOT_SIDES)


def first_value(values: Iterable[object]) -> object:
    """Return the first value that is not missing; None where all are."""
    return next((value for value in values if value is not None), None)


def depth(column: Column) -> int:
    """Return how deeply numbers are nested in a column: 1 for one per row, 2 for a list per row, and so on."""
    if isinstance(column, Ragged):
        return 2
    if isinstance(column, np.ndarray):
        return column.ndim
    value = first_value(column)
    found = 1
    while isinstance(value, (list, tuple, np.ndarray)):
        if isinstance(value, np.ndarray):
            return found + value.ndim
        found += 1
        value = value[0] if value else None
    return found


def holds_text(column: Column) -> bool:
    """Whether a column's first value is text or a list of messages."""
    if not isinstance(column, list):
        return False
    value = first_value(column)
    return isinstance(value, str) or (isinstance(value, list) and (not value or isinstance(value[0], dict)))


def is_text(columns: Mapping[str, Column]) -> bool:
    """Whether columns hold text to train on, and no token ids of it."""
    if any(find(columns, side, "ids") for side in ("", *SIDES, *sides_of_own(columns))):
        return False
    texts = {name for name, column in columns.items() if holds_text(column)}
    return has_known_texts(texts) or bool(running_texts(columns))


def has_usual_columns(columns: Mapping[str, Column]) -> bool:
    """Whether a column is called as token ids, inputs, classes or texts are."""
    usual = {*CLASS_NAMES, *RAW}
    return any(find(columns, side, "ids") for side in ("", *SIDES)) or any(
        name in usual or is_of_images(name) for name in columns
    )


def has_known_texts(names: Set[str]) -> bool:
    """Whether text columns of these names are known to trainers."""
    return bool(RAW & names) or any(set(group[:2]) <= names for group in (*CONTRASTED, *ASKED_AND_SAID))


def running_texts(columns: Mapping[str, Column]) -> list[str]:
    """Return the columns of running text, whatever their names, of a table that holds no measurements next to them."""
    if any(is_float(column) and name not in SCORES for name, column in columns.items()):
        return []
    return [name for name, column in columns.items() if _is_running_text(column)]


def _is_running_text(column: Column) -> bool:
    if not isinstance(column, list):
        return False
    values = [value for value in column[:VALUES_LOOKED_AT] if value is not None and value != ""]
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return False
    worded = sum(_SEVERAL_WORDS.search(text) is not None for text in texts)
    return worded >= MANY_WORDS * len(texts) and len(set(texts)) >= MANY_TEXTS * len(texts)


def row_count(column: Column) -> int:
    """Return how many rows a column has."""
    return column.rows if isinstance(column, Ragged) else len(column)


def ragged(column: Column) -> tuple[Ragged, list[int]]:
    """Return a column as rows of integers, and the numbers of the rows that lack a value.

    Raises:
        TypeError, ValueError: it holds something else.
    """
    if isinstance(column, Ragged):
        return column, []
    if isinstance(column, np.ndarray):
        if column.ndim > 2:
            raise ValueError(f"has {column.ndim} dimensions, not rows and tokens (of several choices give one: [:, 0])")
        array = as_integers(column)
        return Ragged.rectangle(array.reshape(1, -1) if array.ndim == 1 else array), []
    if depth(column) == 1:
        return Ragged.of([cast("list[int]", column)]), []
    missing = [number for number, row in enumerate(column) if row is None]
    rows: list[Any] = [[] if row is None else row for row in column]
    if not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        raise TypeError("holds a mixture of lists and other values")
    return Ragged.of(rows), missing


def ragged_or_none(column: Column | None) -> Ragged | None:
    """Return a column as rows of integers; None where there is none, or it holds something else."""
    try:
        return None if column is None else ragged(column)[0]
    except (TypeError, ValueError, OverflowError):
        return None


def class_labels(column: Column, rows: int) -> Ints | None:
    """Return one whole number for each row, or None if the column holds something else."""
    if isinstance(column, Ragged):
        return column.flat.astype(np.int64) if column.rows == rows and bool(np.all(column.lengths == 1)) else None
    try:
        if isinstance(column, np.ndarray):
            flat = column.reshape(-1) if column.ndim == 1 or column.shape[1:] == (1,) else None
            return None if flat is None or len(flat) != rows else as_integers(flat).astype(np.int64)
        values = [row[0] if isinstance(row, (list, tuple)) and len(row) == 1 else row for row in column]
        return whole_numbers(values).astype(np.int64) if len(values) == rows else None
    except (TypeError, ValueError):
        return None


def named_classes(column: Column, rows: int) -> tuple[Ints, dict[int, str]] | None:
    """Return a number for the name of each row's class, the same in every piece of a file, and what it stands for.

    None if the column holds something else: numbers, or texts that all differ.
    """
    if not isinstance(column, list) or len(column) != rows or not all(isinstance(value, str) for value in column):
        return None
    texts = cast("list[str]", column)
    known = {text: zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in set(texts)}
    if LEAST_ROWS_OF_CLASS * len(known) > rows or any(len(text) > LONGEST_CLASS_NAME for text in known):
        return None
    return np.array([known[text] for text in texts], np.int64), {number: text for text, number in known.items()}


def holds_classes(column: Column, rows: int) -> bool:
    """Whether a column holds a class for each row, as a whole number or by name."""
    if is_float(column):
        return False
    return class_labels(column, rows) is not None or named_classes(column, rows) is not None


def marks(name: str, column: Column, *, of_answers: bool) -> list[object] | None:
    """Return for each row 1 for a desired answer and 0 for another, None where the column holds anything else.

    Args:
        name: What the column is called.
        column: Its values.
        of_answers: Whether it stands next to completions; next to other texts numbers called `label` are classes.
    """
    if not isinstance(column, list) or not column:
        return None
    if not all(isinstance(value, bool | int | float | str) and _spelt(value) in _SPELT for value in column):
        return None
    plain = name.startswith("label") and not all(isinstance(value, bool) for value in column)
    return None if plain and not of_answers else [int(_spelt(value) in _DESIRED) for value in column]


def _spelt(value: object) -> str:
    return str(value).strip().lower()


def numbers(column: Column) -> npt.NDArray[np.float64] | None:
    """Return a column of floats as one array, rows first; flat if the rows differ in shape; None if it is none."""
    if isinstance(column, Ragged):
        return None
    try:
        array = np.asarray(column)
        if array.dtype.kind in "fiu" and array.ndim:
            return array.astype(np.float64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.concatenate([np.asarray(row, np.float64).reshape(-1) for row in column])
    except (TypeError, ValueError, OverflowError):
        return None


def is_float(column: Column) -> bool:
    """Whether a column holds numbers with fractions."""
    if isinstance(column, Ragged):
        return False
    if isinstance(column, np.ndarray):
        return column.dtype.kind == "f"
    value = first_value(column)
    while isinstance(value, (list, tuple)):
        value = first_value(value)
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def is_bytes(column: Column) -> bool:
    """Whether a column is an array of bytes, as images are stored: no layer takes them before they are converted."""
    return isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.dtype.itemsize == 1


def is_indices(column: Column) -> bool:
    """Whether a column holds rows of integers that only an embedding can take."""
    if not isinstance(column, np.ndarray):
        return isinstance(column, Ragged)
    # Pixels are bytes and have more dimensions; a linear layer refuses integers.
    return column.ndim == 2 and column.dtype.kind in "iu" and column.dtype.itemsize > 1


# Columns beside token ids, labels and masks: floats, class images, sizes of images, what a decoder is shown.


MAX_CATEGORY_CHARACTERS = 16
"""Characters up to which a value may be the name of a category; what is longer is text. Chosen by hand."""
ROW_NUMBERS = frozenset({"id", "_id", "idx", "index", "uuid", "guid", "row_id", "sample_id", "__index_level_0__"})
"""Columns that number the rows, and differ where all else is the same."""


def float_columns(table: Table) -> dict[str, Floats]:
    """Return the columns of floats by name, and inputs of networks that are given as bytes."""
    arrays: dict[str, Floats] = {}
    for name, column in table.columns.items():
        if isinstance(column, list) and column and all(isinstance(row, Mapping) for row in column):
            arrays |= _nested_floats(name, cast("list[Mapping[str, object]]", column))
        elif is_float(column) or (name in FLOAT_INPUTS and not is_indices(column)):
            array = numbers(column)
            if array is not None and array.size:
                arrays[name] = array
    return arrays


def _nested_floats(name: str, rows: list[Mapping[str, object]]) -> dict[str, Floats]:
    """Return the floats in the mappings of a column: the boxes of targets, the parts of an observation."""
    values: dict[str, list[object]] = {}
    for row in rows:
        for path, leaf in leaves(name, row):
            values.setdefault(path, []).append(leaf)
    found = {path: numbers(column) for path, column in values.items() if is_float(column)}
    return {path: array for path, array in found.items() if array is not None and array.size}


def integer_columns(table: Table, notes: list[str]) -> dict[str, Ints]:
    """Return the sizes of images by name, and as "labels" the classes of each pixel, where they are given."""
    arrays: dict[str, Ints] = {}
    for name in ("image_grid_thw", "num_images", "image_sizes"):
        if name in table.columns:
            try:
                arrays[name] = np.asarray(table.columns[name], np.int64)
            except (TypeError, ValueError):
                notes.append(f"{name} is not an array of whole numbers and was not used")
    if (classes := _class_images(table)) is not None:
        arrays["labels"] = classes
    for name in MASK_IMAGES:
        column = table.columns.get(name)
        if isinstance(column, np.ndarray) and column.ndim > 2 and column.dtype.kind in "iu":
            arrays[name] = column.astype(np.int64)
    return arrays


MASK_IMAGES = ("masks", "mask", "seg_masks", "segmentation", "segmentations", "segmentation_maps", "seg_maps")
"""Columns of images whose pixels are classes."""


def _class_images(table: Table) -> Ints | None:
    """Return the classes of each pixel, shape (rows, height, width), or None if the labels are something else."""
    column = table.columns.get("labels")
    if column is None or "pixel_values" not in table.columns or depth(column) != 3 or is_float(column):
        return None
    try:
        return np.asarray(column, np.int64)
    except (TypeError, ValueError):
        return None


COLOURS = (3, 4)
"""Lengths of the last axis of an image in colour, without and with transparency."""


def wrong_class_images(table: Table) -> str:
    """Return what is wrong with the shape of labels that are to be a class for each pixel; empty where nothing is."""
    column = table.columns.get("labels")
    if column is None or isinstance(column, Ragged) or "pixel_values" not in table.columns or is_float(column):
        return ""
    if depth(column) != 4:
        return ""
    shape = np.asarray(column[0]).shape
    if len(shape) == 3 and shape[-1] in COLOURS and shape[0] not in COLOURS:
        return f"labels are images in colour, {shape} each: a class for each pixel is wanted, as (height, width)"
    if len(shape) == 3 and shape[0] == 1:
        return f"labels have the shape {shape} each: a class for each pixel is wanted, as {shape[1:]}"
    return ""


def whole_marks(table: Table) -> str:
    """Return what is wrong with a 0 or 1 for each class, written as whole numbers; empty where nothing is."""
    name = next((name for name in ("labels", "label") if name in table.columns), "")
    column = table.columns.get(name)
    if column is None or depth(column) != 2 or is_float(column):
        return ""
    return f"{name} are whole numbers: a model of several labels for a row wants floats (0.0 and 1.0)"


@dataclass(frozen=True, slots=True)
class Rest:
    """A key of what rows hold besides floats and classes, and the bits by which such keys tell rows apart."""

    keys: Ints
    bits: float


def rest_of(table: Table, among: Sequence[str], floats: Mapping[str, Floats], rows: int) -> Rest | None:
    """Return what each row holds in these columns besides floats, classes and numbers of rows; None if nothing."""
    wanted = frozenset(among)
    columns = [
        [column.row(row).tolist() for row in range(rows)]
        if isinstance(column, Ragged)
        else column.tolist()
        if isinstance(column, np.ndarray)
        else column
        for name, column in table.columns.items()
        if name in wanted
        and name not in floats
        and name not in CLASS_NAMES
        and name.lower() not in ROW_NUMBERS
        and row_count(column) == rows
    ]
    if not columns:
        return None
    keys = np.fromiter((hash(repr(row)) for row in zip(*columns, strict=True)), np.int64, rows)
    return Rest(keys, sum(_bits(column) for column in columns))


def _bits(column: Sequence[object]) -> float:
    if any(len(str(value)) > MAX_CATEGORY_CHARACTERS for value in column[:100]):
        return math.inf
    return bits_to_tell_apart(np.array(list(Counter(map(str, column)).values()) or [1]))


def bits_to_tell_apart(counts: Ints) -> float:
    """Return how well a column tells two rows apart, in bits, from how often each of its values occurs.

    Two rows agree in it with a probability of two to the minus that (Renyi's entropy of order two).
    """
    shares = counts / counts.sum()
    return float(-np.log2(np.square(shares).sum()))


# The scores of preference pairs, where a data set gives them: which completion was liked better.


_PAIR_SCORES_NAMES = tuple(
    (form.format("chosen", word), form.format("rejected", word))
    for word in ("score", "rating", "reward")
    for form in ("{1}_{0}", "{0}_{1}", "{0}-{1}")
)
MARGIN = "margin"
"""By how much the chosen completion is better, in the data of TRL's RewardTrainer."""


def score_names(table: Table) -> tuple[str, ...]:
    """Return the columns of the chosen and the rejected completion's score; empty if there are none."""
    return next((pair for pair in _PAIR_SCORES_NAMES if set(pair) <= set(table.columns)), ())


def exchanged_pairs(table: Table) -> tuple[str, Ints]:
    """Return the places of the pairs whose rejected completion has the higher score, and of how many, in words."""
    margins = numbers(table.columns[MARGIN]) if MARGIN in table.columns else None
    if margins is not None and (margins > 0).any():
        margins = margins.reshape(-1)
        return f"of {int((margins != 0).sum())} pairs with a {MARGIN}", np.flatnonzero(margins < 0)
    names = score_names(table)
    columns = [numbers(table.columns[name]) for name in names]
    if len(columns) != 2 or columns[0] is None or columns[1] is None or columns[0].shape != columns[1].shape:
        return "", np.empty(0, np.int64)
    chosen, rejected = columns[0].reshape(-1), columns[1].reshape(-1)
    differing = int((chosen != rejected).sum())
    return f"of {differing} pairs that differ in {' and '.join(names)}", np.flatnonzero(chosen < rejected)


# Pixels of images: where their channels stand, and by which constants bytes became the numbers of a batch.
#
# A processor makes of a byte (byte * factor - mean) / deviation. So its numbers lie on a grid whose spacing and place
# tell the constants, as long as nothing was blended or resized afterwards.


COLOUR_CHANNELS = 3
CHANNELS = (1, 3, 4)
"""Lengths of an axis that may be colours. Chosen: grey, colour, and colour with transparency."""
MAX_PIXELS_COMPARED = 20_000
"""Pixels of a batch that are compared with a processor's grid, spread evenly. Chosen: more tell no more."""
MIN_PIXELS_COMPARED = 200
"""Pixels that rule out chance. Chosen: a pixel fits a wrong one with a probability of 0.2 in each channel."""
MAX_OFF_GRID = 0.1
"""Distance from a whole byte up to which a number is on the grid. Chosen: numbers written with three decimals are
within."""
MIN_SHARE_ON_GRID = 0.99
"""Share of the numbers that have to be on the grid. Chosen: the rest is padding of another value."""
MIN_BYTES_SEEN = 8
"""Bytes that have to differ. Chosen: a mask of a few values fits many grids."""
MAX_SHARE_OUTSIDE = 0.1
"""Share of the numbers that may lie outside the range of a processor. Chosen: noise put over a third of half of the
images, as random erasing does, has 0.03 there."""
MAX_OVERSHOOT = 0.15
"""Share of the range by which a number may lie outside. Chosen: bicubic resizing overshoots by a tenth."""


def channel_axis(array: Floats) -> int | None:
    """Return the axis of the channels of images or films, or None where it is not clear."""
    if array.ndim not in (4, 5):
        return None
    first, last = array.shape[-3] in CHANNELS, array.shape[-1] in CHANNELS
    return None if first == last else array.ndim - 3 if first else array.ndim - 1


@dataclass(frozen=True, slots=True)
class Scaling:
    """What a processor, called `name`, does to a byte of each channel: (byte * factor - mean) / deviation."""

    name: str
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    factor: float = 1 / 255

    def bytes(self, numbers: Floats, *, normalised: int = 1, rescaled: int = 1) -> Floats:
        """Return the bytes that became these numbers, of shape (pixels, channels)."""
        for _ in range(normalised):
            numbers = numbers * np.array(self.deviation) + np.array(self.mean)
        return numbers / self.factor**rescaled

    def reversed(self) -> Scaling:
        """Return the same with the constants of its channels in the opposite order."""
        return Scaling(self.name, self.mean[::-1], self.deviation[::-1], self.factor)

    def is_same(self, other: Scaling) -> bool:
        """Return whether the constants are the same, but for rounding."""
        mine, theirs = (np.array([*scaling.mean, *scaling.deviation]) for scaling in (self, other))
        return mine.shape == theirs.shape and bool(np.allclose(mine, theirs, atol=2e-3))

    def normalises(self) -> bool:
        """Return whether it changes rescaled numbers."""
        return set(self.mean) != {0.0} or set(self.deviation) != {1.0}


KNOWN = (
    Scaling("0 and 1", (0.0,) * 3, (1.0,) * 3),
    Scaling("0.5 and 0.5", (0.5,) * 3, (0.5,) * 3),
    Scaling("ImageNet", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    Scaling("CLIP", (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
)
"""Mean and deviation of the processors in use. Source: Transformers, `image_utils`."""


def read_scaling(path: str | Path) -> Scaling | None:
    """Return what the processor next to a model's `config.json` does to a byte; None where there is none to read."""
    place = expanded(path)
    folder = place if is_folder(place) else place.parent
    for name in ("preprocessor_config.json", "processor_config.json"):
        if is_file(folder / name):
            try:
                settings = json.loads(read_bytes(folder / name, MAX_CONFIG_BYTES, "give the processor's own file"))
            except (OSError, ValueError, RecursionError, InputError):
                continue
            inner = settings.get("image_processor") if isinstance(settings, dict) else None
            if (found := _scaling_in(inner if isinstance(inner, dict) else settings)) is not None:
                return found
    return None


def _scaling_in(settings: object) -> Scaling | None:
    if not isinstance(settings, Mapping) or settings.get("do_rescale", True) is not True:
        return None
    factor = settings.get("rescale_factor", 1 / 255)
    if not isinstance(factor, float) or not 0 < factor < 1:
        return None
    if settings.get("do_normalize") is False:
        return Scaling("its processor", (0.0,) * COLOUR_CHANNELS, (1.0,) * COLOUR_CHANNELS, factor)
    mean, deviation = (settings.get(name) for name in ("image_mean", "image_std"))
    if not isinstance(mean, list) or not isinstance(deviation, list) or len(mean) != len(deviation) or not mean:
        return None
    if not all(isinstance(number, (int, float)) for number in (*mean, *deviation)) or min(deviation) <= 0:
        return None
    return Scaling("its processor", tuple(map(float, mean)), tuple(map(float, deviation)), factor)


@dataclass(frozen=True, slots=True)
class Origin:
    """How often bytes were normalised and rescaled to the numbers of a batch, by which constants.

    They are reversed where the constants are those of the channels in the opposite order.
    """

    scaling: Scaling
    normalised: int = 1
    rescaled: int = 1
    is_reversed: bool = False


def origin(array: Floats, own: Scaling | None) -> Origin | None:
    """Return how bytes became these pixels, the plainest way that fits; None where no way does.

    Args:
        array: Images of three channels: (rows, 3, height, width), films, channels last, or patches (patches, numbers).
        own: What the model's processor does.
    """
    pixels = sample(array)
    if pixels is None:
        return None
    return next((way for way in _ways(own) if _fits(pixels, way)), None)


def sample(array: Floats) -> Floats | None:
    """Return some of the pixels, of shape (pixels, 3), without padding; None where channels are not clear."""
    if array.ndim == 2 and array.shape[1] % COLOUR_CHANNELS == 0 and array.shape[1] > COLOUR_CHANNELS:
        array = array.reshape(len(array), COLOUR_CHANNELS, -1)  # patches, as Qwen's processors flatten them
        axis: int | None = 1
    else:
        axis = channel_axis(array)
    if axis is None or array.shape[axis] != COLOUR_CHANNELS:
        return None
    moved = np.moveaxis(array, axis, -1)
    count = moved.size // COLOUR_CHANNELS
    places = np.arange(0, count, max(1, count // MAX_PIXELS_COMPARED))
    pixels = moved[np.unravel_index(places, moved.shape[:-1])]  # without a copy of the whole
    pixels = pixels[np.isfinite(pixels).all(axis=1) & pixels.any(axis=1)]
    return pixels if len(pixels) >= MIN_PIXELS_COMPARED else None


def share_outside(array: Floats, own: Scaling) -> float:
    """Return the share of the numbers that lie outside the range of a processor."""
    pixels = sample(array)
    if pixels is None or len(own.mean) != COLOUR_CHANNELS:
        return 0.0
    shares = own.bytes(pixels, rescaled=0)
    return float(np.mean((shares < -MAX_OVERSHOOT) | (shares > 1 + MAX_OVERSHOOT)))


def _ways(own: Scaling | None) -> Iterator[Origin]:
    """Yield ways to the numbers, the plainest first."""
    scalings = [*([own] if own is not None and len(own.mean) == COLOUR_CHANNELS else []), *KNOWN]
    for scaling in scalings:
        yield Origin(scaling)
    for scaling in scalings:
        if scaling.normalises():
            yield Origin(scaling, normalised=2)
            yield Origin(scaling, rescaled=2)
            if scaling.mean != scaling.mean[::-1]:
                yield Origin(scaling.reversed(), is_reversed=True)


def _fits(pixels: Floats, way: Origin) -> bool:
    """Return whether the numbers are those that bytes become in this way."""
    found = way.scaling.bytes(pixels, normalised=way.normalised, rescaled=way.rescaled)
    whole = np.round(found)
    on_grid = (np.abs(found - whole) <= MAX_OFF_GRID) & (whole >= 0) & (whole <= np.iinfo(np.uint8).max)
    return bool(on_grid.all(axis=1).mean() >= MIN_SHARE_ON_GRID) and len(np.unique(whole)) >= MIN_BYTES_SEEN


@dataclass(frozen=True, slots=True)
class Masks:
    """The class and the place of the image of each mask of a batch, and the largest number in any mask."""

    classes: Ints
    rows: Ints
    largest: float


def masks_of(table: Table) -> Masks | None:
    """Return the masks of the targets, or None where no column holds any that can be read."""
    masks, classes = (table.columns.get(name) for name in ("mask_labels", "class_labels"))
    if masks is None or classes is None or isinstance(masks, Ragged) or row_count(classes) != len(masks):
        return None
    try:
        classes, _ = ragged(classes)
        arrays = [np.asarray(mask, np.float64) for mask in masks]
        largest = max((float(mask.max()) for mask in arrays if mask.size), default=0.0)
    except (TypeError, ValueError, OverflowError):
        return None
    return Masks(classes.flat.astype(np.int64), np.repeat(np.arange(classes.rows), classes.lengths), largest)
