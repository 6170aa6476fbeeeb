"""A batch file → the columns that the probe trains on: rectangles of numbers, with the labels named `labels`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch import IGNORE, Batch, Sequences, read_batches
from mldebug_mcp.batch.ragged import Ragged
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

MAX_ROWS = 64
MAX_NUMBERS = 4_000_000
"""Numbers in a column above which rows are left out: they are passed to the worker as text."""
TARGETS = ("labels", "label", "targets", "target", "y")

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class ProbeBatch:
    """What is probed of a file.

    Args:
        columns: By name, as nested lists: `input_ids`, `attention_mask`, `position_ids` or float inputs, and `labels`.
        notes: What was left out or changed.
    """

    columns: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)


def read_probe_batch(path: str | Path) -> ProbeBatch:
    """Read the first rows of a batch or data set.

    Raises:
        InputError: it cannot be read, or its labels do not fit its inputs.
        MissingExtraError: its format needs a package that is not installed.
    """
    batch = next(iter(read_batches(path)))
    if batch.words is not None:
        raise InputError(f"{shorten(str(path), 200)}: holds text that is not tokenized; save a batch of token ids")
    notes: list[str] = []
    arrays: dict[str, Array] = {name: array for name, array in batch.floats.items() if name not in TARGETS}
    side = _side(batch, notes)
    if side is not None:
        arrays = _of_tokens(side, notes)
    target = _classes(batch.classes, bool(batch.class_names)) if batch.classes is not None else _values(batch)
    if target is not None:
        arrays["labels"] = target
    elif side is not None and "labels" not in arrays and any(name in TARGETS for name in batch.columns):
        why = next((one.summary for one in batch.problems), "labels and input_ids are of different shapes")
        raise InputError(f"{shorten(str(path), 200)}: {why}; give one label for each token or for each row")
    rows = min([MAX_ROWS, *(max(2, MAX_NUMBERS * len(one) // max(1, one.size)) for one in arrays.values())])
    return ProbeBatch({name: array[:rows].tolist() for name, array in arrays.items()}, notes)


def _classes(labels: Array, named: bool) -> Array:
    """Return the class of each row from 0 up: the numbers of named ones are arbitrary."""
    return np.asarray(np.unique(labels, return_inverse=True)[1]) if named else labels


def _values(batch: Batch) -> Array | None:
    """Return the numbers that a regression aims at."""
    return next((batch.floats[name] for name in TARGETS if name in batch.floats), None)


def _side(batch: Batch, notes: list[str]) -> Sequences | None:
    """Return the token rows to train on: the chosen ones of preference pairs, the completions of separate prompts."""
    if not batch.sides:
        return None
    chosen = batch.side("") or batch.side("chosen") or batch.side("completion") or batch.sides[0]
    if len(batch.sides) > 1:
        notes.append(f"only the {chosen.name} rows are probed")
    return chosen


def _of_tokens(side: Sequences, notes: list[str]) -> dict[str, Array]:
    arrays: dict[str, Array] = {"input_ids": _rectangle(side.ids, side.pad or 0)}
    uneven = len(set(side.ids.lengths.tolist())) > 1
    mask = side.attention
    if uneven:
        notes.append("rows differ in length and were padded on the right")
        mask = mask or Ragged(np.ones(len(side.ids.flat), np.int8), side.ids.offsets)
    if mask is not None:
        arrays["attention_mask"] = _rectangle(mask, 0)
    if side.positions is not None:
        arrays["position_ids"] = _rectangle(side.positions, 0)
    labels = side.labels
    if labels is None and side.loss_mask is not None:
        labels = Ragged(np.where(side.loss_mask.flat != 0, side.ids.flat, IGNORE), side.ids.offsets)
        notes.append("the labels are the token ids where the loss mask is 1")
    if labels is not None:
        arrays["labels"] = _rectangle(labels, IGNORE)
        if side.shifted_by_design:
            arrays["labels"] = np.insert(arrays["labels"][:, :-1], 0, IGNORE, axis=1)
            notes.append(
                "the labels are already the next tokens; they were shifted back, because the model shifts them itself"
            )
    return arrays


def _rectangle(rows: Ragged, fill: int) -> Array:
    """Return rows as an array, the first ones only, filled on the right."""
    count = min(MAX_ROWS, rows.rows)
    lengths = rows.lengths[:count]
    array = np.full((count, int(lengths.max(initial=0))), fill, np.int64)
    array[np.arange(array.shape[1]) < lengths[:, None]] = rows.flat[: rows.offsets[count]]
    return array
