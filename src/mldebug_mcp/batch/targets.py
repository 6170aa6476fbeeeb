"""Labels that are not a copy of the inputs: targets of an encoder-decoder, transcripts of speech, classes of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.batch.columns import find, is_float, ragged
from mldebug_mcp.batch.padding import padding_token
from mldebug_mcp.batch.ragged import Ints, Ragged
from mldebug_mcp.batch.sequences import IGNORE, Sequences
from mldebug_mcp.batch.table import Column, Table

if TYPE_CHECKING:
    from mldebug_mcp.batch.context import Context

SPEECH = ("input_features", "input_values")
LOOKED_AT = 32
"""Rows that are looked at to tell targets from labels that were cut."""
COPIED = 0.8
"""Share of a row's labels that have to stand in its inputs to call them a copy. Chosen by hand."""
NEARLY_ALL = 0.95
"""Share of tokens that have to be the next ones to call two arrays inputs and targets. Chosen by hand."""


def with_usual_names(table: Table) -> Table:
    """Return the table with `x` and `y` (or inputs and targets) named for what they are, if y holds x's next tokens."""
    if find(table.columns, "", "ids"):
        return table
    for one, two in (("x", "y"), ("inputs", "targets"), ("input", "target")):
        x, y = table.columns.get(one), table.columns.get(two)
        if x is not None and y is not None and _are_next_tokens(x, y):
            new = {one: "input_ids", two: "targets"}
            table.columns = {new.get(name, name): column for name, column in table.columns.items()}
            table.notes.append(f"{one} and {two} were read as token ids and their next tokens")
            return table
    return table


def _are_next_tokens(x: Column, y: Column) -> bool:
    if is_float(x) or is_float(y):
        return False
    try:
        (ids, _), (targets, _) = ragged(x), ragged(y)
    except (TypeError, ValueError, OverflowError):
        return False
    if ids.rows != targets.rows or bool(np.any(ids.lengths != targets.lengths)) or len(ids.flat) < 2 * ids.rows + 2:
        return False
    inside = np.ones(len(ids.flat), np.bool_)
    inside[ids.offsets[:-1]] = False
    places = np.flatnonzero(inside)
    return float(np.mean(ids.flat[places] == targets.flat[places - 1])) >= NEARLY_ALL


def are_classes(ids: Ragged, labels: Ragged) -> bool:
    """Return whether labels are a 0 or 1 for each of several classes, not labels of tokens."""
    if labels.rows != ids.rows or not labels.rows or bool(np.any(labels.lengths != labels.lengths[0])):
        return False
    other = float(np.mean(labels.lengths != ids.lengths)) > 0.5
    return other and bool(np.all((labels.flat == 0) | (labels.flat == 1)))


def are_targets(ids: Ragged, labels: Ragged) -> bool:
    """Return whether labels, of other lengths than the inputs, are separate texts and not a cut copy of them."""
    if labels.rows != ids.rows or not labels.rows or float(np.mean(labels.lengths != ids.lengths)) <= 0.5:
        return False
    looked = [_stands_in(labels.row(row), ids.row(row)) for row in range(min(labels.rows, LOOKED_AT))]
    told = [inside for inside in looked if inside is not None]
    return bool(told) and sum(told) < 0.5 * len(told)


def _stands_in(labels: np.typing.NDArray[np.integer], ids: np.typing.NDArray[np.integer]) -> bool | None:
    """Return whether the labels of a row stand in its inputs, one after the other; None for a row without labels.

    Labels that run on behind the end of the inputs are a copy with something added.
    """
    labels = labels[labels != IGNORE]
    if not len(labels):
        return None
    starts = np.flatnonzero(ids == labels[0])
    parts = (ids[start : start + len(labels)] for start in starts[:LOOKED_AT].tolist())
    return any(len(part) >= COPIED * len(labels) and np.array_equal(part, labels[: len(part)]) for part in parts)


def of_speech(table: Table) -> Ragged | None:
    """Return the transcripts of a batch of speech, or None for other batches."""
    name = find(table.columns, "", "labels")
    if name is None or not any(column in table.columns for column in SPEECH) or is_float(table.columns[name]):
        return None
    try:
        rows, _ = ragged(table.columns[name])
    except (TypeError, ValueError, OverflowError):
        return None
    return rows if len(rows.flat) > rows.rows > 1 else None


def target_rows(labels: Ragged, numbers: Ints, context: Context) -> Sequences:
    """Return target labels as token rows that are trained on where they are not ignored."""
    trained = labels.flat != IGNORE
    told = context.tokenizer.pad if context.tokenizer is not None else None
    pad = told if told is not None else context.model.pad
    ids = Ragged(np.where(trained, labels.flat, 0 if pad is None else pad), labels.offsets)
    attention = Ragged(trained.astype(np.int8), labels.offsets)
    pad, may_end = padding_token(ids, attention, labels, context)
    return Sequences("labels", ids, numbers, labels=labels, attention=attention, pad=pad, pad_may_end=may_end)
