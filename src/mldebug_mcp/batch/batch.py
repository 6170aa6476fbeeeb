"""A tokenized batch or data set, as the checks see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.model_config import ModelConfig
from mldebug_mcp.batch.ragged import Ints, Ragged
from mldebug_mcp.batch.roles import RowRoles, read_roles
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.batch.table import Column
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.batch.words import END, Encoder, Words

if TYPE_CHECKING:
    from mldebug_mcp.batch.boxes import Boxes
    from mldebug_mcp.batch.other_columns import Rest
    from mldebug_mcp.batch.overlap import Overlap
    from mldebug_mcp.batch.totals import Totals

Purpose = Literal["sft", "pretraining", "dpo", "generation", "classification", "embedding", "vlm"]
PURPOSES: tuple[Purpose, ...] = ("sft", "pretraining", "dpo", "generation", "classification", "embedding", "vlm")

MAX_ROLE_TOKENS = 200_000
"""Tokens of a batch that are decoded to look for role markers. Decoding runs in Python, not in numpy."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was found while reading and that a check reports: in which rows, and in words."""

    check: str
    summary: str
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Batch:
    """What was read.

    Args:
        path: The file or folder, as the user gave it.
        formats: Names of the readers that read it.
        purpose: What the batch is for, given or inferred.
        purpose_given: Whether the user said so.
        rows: Rows (preference pairs count once).
        sides: The token rows. A preference batch has "chosen" and "rejected", and "prompt" if there is such a column.
        targets: The labels of an encoder-decoder or of speech, as token rows of their own.
        classes: One class label for each row, if the labels are classes.
        class_names: What the labels stand for, where the file has names and no numbers.
        numbers: The number of each row in the file.
        floats: Float inputs by column name.
        stored_as_bytes: Those of them that the file holds as bytes.
        boxes: The boxes that a detector is to find.
        decoder_inputs: What the decoder is shown, where that is a column beside the targets.
        rest: Where there are no token rows, what each row holds that no other field does: text, categories.
        cells: The columns of a table of measurements, with one value for each row.
        columns: The columns of the file.
        tokenizer, model: What was given with the batch.
        words: What the text was split into, where it came without its tokenizer: its ids are words, not tokens.
        problems: What reading found.
        notes: What was skipped or guessed.
        overlap: What rows share, once all of the data has been read.
        totals: Lengths and classes of all rows, once all of the data has been read.
        role_budget: Tokens that may be decoded to look for role markers.
    """

    path: str
    formats: tuple[str, ...]
    purpose: Purpose
    purpose_given: bool
    rows: int
    numbers: Ints
    sides: tuple[Sequences, ...] = ()
    targets: Sequences | None = None
    classes: Ints | None = None
    class_names: Mapping[int, str] = field(default_factory=dict)
    floats: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    stored_as_bytes: frozenset[str] = frozenset()
    integers: Mapping[str, Ints] = field(default_factory=dict)
    boxes: Boxes | None = None
    decoder_inputs: Ragged | None = None
    rest: Rest | None = None
    cells: Mapping[str, Column] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    tokenizer: Tokenizer | None = None
    model: ModelConfig = field(default_factory=ModelConfig)
    words: Words | None = None
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    overlap: Overlap | None = None
    totals: Totals | None = None
    role_budget: int = MAX_ROLE_TOKENS

    def side(self, name: str) -> Sequences | None:
        """Return the token rows of this name, or None."""
        return next((side for side in self.sides if side.name == name), None)

    @property
    def trained_sides(self) -> tuple[Sequences, ...]:
        """The token rows for which it is known where the loss is computed."""
        return tuple(side for side in self.sides if side.trained is not None)

    @property
    def labelled(self) -> tuple[Sequences, ...]:
        """The token rows that carry labels: the trained sides, and separate targets."""
        return self.trained_sides if self.targets is None else (*self.trained_sides, self.targets)

    @property
    def full_sides(self) -> tuple[Sequences, ...]:
        """The token rows that begin at the start of a text: not completions whose prompts are in a separate column."""
        prompt = self.side("prompt")
        return self.sides if prompt is None else (prompt,)

    @property
    def bos(self) -> int | None:
        """The token that begins a text, from the tokenizer, else from the model's configuration."""
        if self.words is not None:
            return None
        return self.tokenizer.bos if self.tokenizer is not None else self.model.bos

    @property
    def texts(self) -> Encoder | None:
        """What knows the text of an id, or None."""
        return self.words if self.tokenizer is None else self.tokenizer

    @property
    def unit(self) -> Literal["tokens", "words"]:
        """What a position of a row is."""
        return "tokens" if self.words is None else "words"

    @property
    def mask(self) -> int | None:
        """The token that hides a word from a masked language model, where the tokenizer tells."""
        return self.tokenizer.mask if self.tokenizer is not None else None

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens that end a turn or a text, from the tokenizer and its template, else from the configuration."""
        if self.words is not None:
            return frozenset({END})
        return self.tokenizer.ends if self.tokenizer is not None else frozenset(self.model.eos)

    @property
    def vocabulary(self) -> int | None:
        """How many token ids the model knows, or else the tokenizer."""
        if self.words is not None:
            return None
        if self.model.vocab_size is not None:
            return self.model.vocab_size
        return self.tokenizer.size if self.tokenizer is not None else None

    @cached_property
    def roles(self) -> tuple[RowRoles, ...]:
        """The rows decoded, with the role spans that their markers show; empty without a tokenizer."""
        found: list[RowRoles] = []
        if self.tokenizer is None:
            return ()
        budget = self.role_budget
        for side in self.sides:
            for index in range(side.rows):
                budget -= int(side.ids.offsets[index + 1] - side.ids.offsets[index])
                if budget < 0:
                    return tuple(found)
                found.append(read_roles(side, index, self.tokenizer))
        return tuple(found)
