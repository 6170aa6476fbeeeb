"""Reading a batch: its format, its columns, and the tokenizer and model configuration given with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from mldebug_mcp.batch.batch import MAX_ROLE_TOKENS, PURPOSES, Batch, Purpose
from mldebug_mcp.batch.build import build
from mldebug_mcp.batch.columns import is_text
from mldebug_mcp.batch.context import Context
from mldebug_mcp.batch.formats import IN_PARTS, format_of
from mldebug_mcp.batch.model_config import ModelConfig, read_model_config
from mldebug_mcp.batch.nested_text import with_plain_texts
from mldebug_mcp.batch.part import Part
from mldebug_mcp.batch.picked import picked
from mldebug_mcp.batch.rollouts import rollout_problems
from mldebug_mcp.batch.sample import thinned
from mldebug_mcp.batch.table import Table
from mldebug_mcp.batch.text_problems import text_problems
from mldebug_mcp.batch.tokenizer import Tokenizer, load_tokenizer
from mldebug_mcp.batch.words import Words
from mldebug_mcp.errors import InputError
from mldebug_mcp.paths import expanded
from mldebug_mcp.progress import checkpoint
from mldebug_mcp.text import shorten

LATER_ROLE_TOKENS = 10_000
"""Tokens of each piece after the first that are decoded to look for role markers."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """A batch or data set that can be read: the same for all of its parts, on whatever machine they are read.

    Args:
        file: The file or folder.
        context: What is known beside it.
        purpose_given: Whether the user said what it is for.
        sample: Look at about this many rows, spread evenly over the data; None for all.
        rows: How many rows there are, if a sample needs to know and there is more than one piece.
        chosen: Look at the rows of these numbers only; None for all.
    """

    file: Path
    context: Context
    purpose_given: bool
    sample: int | None = None
    rows: int | None = None
    chosen: Sequence[int] | None = None

    def batches(self) -> Iterator[Batch]:
        """Yield its pieces: one unless the file is large. Raises InputError if there are no rows."""
        any_rows = False
        for batch in self._built(self._tables(), 0):
            yield batch
            any_rows = True
        if not any_rows:
            raise InputError(f"{shorten(self.context.path, 200)}: holds no rows; save the batch again")

    def _tables(self) -> Iterator[Table]:
        return format_of(self.file).tables(self.file) if self.chosen is None else picked(self.file, self.chosen)

    def parts(self) -> list[Part]:
        """Return the parts that can be read separately, in order; only one if the format is read in one go."""
        reader = IN_PARTS.get(format_of(self.file).NAME)
        return [Part(self.file)] if reader is None else reader.parts(self.file)

    def batches_of(self, part: Part) -> Iterator[Batch]:
        """Yield the pieces of a part; none if it holds no rows."""
        reader = IN_PARTS.get(self.context.formats[0])
        return self.batches() if reader is None else self._built(reader.part_tables(part), part.first)

    def _built(self, tables: Iterator[Table], first: int) -> Iterator[Batch]:
        context = replace(self.context, first=first)
        words: Words | None = None
        if self.sample is not None:
            tables = thinned(tables, self.rows, self.sample, first)
        any_rows = False
        for table in map(with_plain_texts, tables):
            checkpoint(f"reading {shorten(self.file.name, 60)}: row {context.first:,}")
            if not table.columns:
                continue
            words = None if context.tokenizer is not None or not is_text(table.columns) else words or Words()
            batch = build(_tokenized(table, context, words), context, words)
            first = context.first
            problems = (*batch.problems, *text_problems(table, first), *rollout_problems(table, first))
            # All pieces take the purpose of the first; and of the later ones, decoding a part is enough.
            budget = LATER_ROLE_TOKENS if any_rows or first else MAX_ROLE_TOKENS
            context = replace(context, first=context.first + batch.rows, purpose=context.purpose or batch.purpose)
            yield replace(batch, purpose_given=self.purpose_given, role_budget=budget, problems=problems)
            any_rows = True


def open_data(
    path: str | Path,
    tokenizer: str | Path | Tokenizer | None = None,
    model: str | Path | None = None,
    purpose: str = "auto",
    sample: int | None = None,
) -> DataSet:
    """Find out how to read a batch or data set.

    Args:
        path: The file or folder.
        tokenizer: A tokenizer's folder or file. Text that is not tokenized yet is split into words without one.
        model: The model's `config.json`.
        purpose: One of `PURPOSES`, or "auto" to infer it.
        sample: Look at about this many rows, spread evenly over the data.

    Raises:
        InputError: something cannot be used; the message says what.
        MissingExtraError: a format or the tokenizer needs a package that is not installed.
    """
    file = expanded(path)
    reader = format_of(file)
    loaded = tokenizer if isinstance(tokenizer, Tokenizer) or tokenizer is None else load_tokenizer(tokenizer)
    config = read_model_config(model) if model is not None else ModelConfig()
    context = Context(str(path), (reader.NAME,), _purpose(purpose), loaded, config)
    return DataSet(file, context, purpose != "auto", sample, None if sample is None else reader.rows(file))


def read_batches(
    path: str | Path,
    tokenizer: str | Path | Tokenizer | None = None,
    model: str | Path | None = None,
    purpose: str = "auto",
    sample: int | None = None,
) -> Iterator[Batch]:
    """Yield a batch or data set, a piece at a time; takes and raises what `open_data` does."""
    return open_data(path, tokenizer, model, purpose, sample).batches()


def _purpose(name: str) -> Purpose | None:
    if name == "auto":
        return None
    found = next((one for one in PURPOSES if one == name), None)
    if found is None:
        raise InputError(
            f"purpose {shorten(name, 40)!r} does not exist; use one of: auto, {', '.join(get_args(Purpose))}"
        )
    return found


def _tokenized(table: Table, context: Context, words: Words | None) -> Table:
    """Return the table with its text rendered and tokenized, or split into words where there is no tokenizer."""
    encoder = words or context.tokenizer
    if encoder is None or not is_text(table.columns):
        return table
    from mldebug_mcp.batch.conversations import tokenize

    return tokenize(table, encoder, context.purpose)
