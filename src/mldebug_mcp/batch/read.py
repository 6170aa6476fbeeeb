"""Reading a batch: the file's format, its columns, the tokenizer and the model's configuration beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

from mldebug_mcp.batch.batch import MAX_ROLE_TOKENS, PURPOSES, Batch, Purpose
from mldebug_mcp.batch.build import Context, build
from mldebug_mcp.batch.columns import RAW, SIDES, find
from mldebug_mcp.batch.formats import format_of
from mldebug_mcp.batch.model_config import ModelConfig, read_model_config
from mldebug_mcp.batch.sample import thinned
from mldebug_mcp.batch.table import Table
from mldebug_mcp.batch.tokenizer import Tokenizer, load_tokenizer
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

LATER_ROLE_TOKENS = 10_000
"""Tokens of each piece after the first that are decoded to look for role markers."""


def read_batches(
    path: str | Path,
    tokenizer: str | Path | Tokenizer | None = None,
    model: str | Path | None = None,
    purpose: str = "auto",
    sample: int | None = None,
) -> Iterator[Batch]:
    """Yield a batch or data set, a piece at a time: one piece unless the file is large.

    Args:
        path: The file or folder.
        tokenizer: A tokenizer's folder or file. Text that is not tokenized yet needs one.
        model: The model's `config.json`.
        purpose: One of `PURPOSES`, or "auto" to infer it.
        sample: Look at about this many rows, spread evenly over the data.

    Raises:
        InputError: something cannot be used; the message says what.
        MissingExtraError: a format or the tokenizer needs a package that is not installed.
    """
    file = Path(path).expanduser()
    reader = format_of(file)
    loaded = tokenizer if isinstance(tokenizer, Tokenizer) or tokenizer is None else load_tokenizer(tokenizer)
    config = read_model_config(model) if model is not None else ModelConfig()
    context = Context(str(path), (reader.NAME,), _purpose(purpose), loaded, config)
    tables = reader.tables(file)
    if sample is not None:
        tables = thinned(tables, reader.rows(file), sample)
    any_rows = False
    for table in tables:
        if not table.columns:
            continue
        batch = build(_tokenized(table, context), context)
        # What the first piece is for, all are for; and decoding a share of the later ones is enough.
        budget = LATER_ROLE_TOKENS if any_rows else MAX_ROLE_TOKENS
        context = replace(context, first=context.first + batch.rows, purpose=context.purpose or batch.purpose)
        yield replace(batch, purpose_given=purpose != "auto", role_budget=budget)
        any_rows = True
    if not any_rows:
        raise InputError(f"{shorten(str(path), 200)}: holds no rows; save the batch again")


def _purpose(name: str) -> Purpose | None:
    if name == "auto":
        return None
    found = next((one for one in PURPOSES if one == name), None)
    if found is None:
        raise InputError(
            f"purpose {shorten(name, 40)!r} does not exist; use one of: auto, {', '.join(get_args(Purpose))}"
        )
    return found


def _tokenized(table: Table, context: Context) -> Table:
    """Return the table with its text rendered and tokenized, if it holds text and no token ids."""
    if any(find(table.columns, side, "ids") for side in ("", *SIDES)) or not RAW & set(table.columns):
        return table
    if context.tokenizer is None:
        raise InputError(
            f"{shorten(context.path, 200)}: holds text that is not tokenized; give the tokenizer that the training uses"
        )
    from mldebug_mcp.batch.conversations import tokenize

    return tokenize(table, context.tokenizer, context.purpose)
