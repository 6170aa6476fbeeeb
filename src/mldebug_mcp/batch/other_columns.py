"""Columns beside token ids, labels and masks: floats, class images, sizes of images, what a decoder is shown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.batch import columns as names
from mldebug_mcp.batch.ragged import Floats, Ints, Ragged
from mldebug_mcp.batch.table import Table

CATEGORY = 16
"""Characters up to which a value may be the name of a category; what is longer is text. Chosen by hand."""

ROW_NUMBERS = frozenset({"id", "_id", "idx", "index", "uuid", "guid", "row_id", "sample_id", "__index_level_0__"})
"""Columns that number the rows, and differ where all else is the same."""


def float_columns(table: Table) -> dict[str, Floats]:
    """Return the columns of floats by name, and inputs of networks that are given as bytes."""
    arrays = {}
    for name, column in table.columns.items():
        if names.is_float(column) or (name in names.FLOAT_INPUTS and not names.is_indices(column)):
            array = names.numbers(column)
            if array is not None and array.size:
                arrays[name] = array
    return arrays


def integer_columns(table: Table, notes: list[str]) -> dict[str, Ints]:
    """Return the sizes of images by name, and as "labels" the classes of each pixel, where they are given."""
    arrays: dict[str, Ints] = {}
    for name in ("image_grid_thw", "num_images", "image_sizes"):
        if name in table.columns:
            try:
                arrays[name] = np.asarray(table.columns[name], np.int64)
            except (TypeError, ValueError):
                notes.append(f"{name} is no array of whole numbers and was not used")
    if (classes := _class_images(table)) is not None:
        arrays["labels"] = classes
    return arrays


def _class_images(table: Table) -> Ints | None:
    """Return the classes of each pixel, shape (rows, height, width), or None if the labels are something else."""
    column = table.columns.get("labels")
    if column is None or "pixel_values" not in table.columns or names.depth(column) != 3 or names.is_float(column):
        return None
    try:
        return np.asarray(column, np.int64)
    except (TypeError, ValueError):
        return None


def decoder_inputs(table: Table) -> Ragged | None:
    """Return what a decoder is shown, or None where no column says so."""
    column = table.columns.get("decoder_input_ids")
    if column is None:
        return None
    try:
        return names.ragged(column)[0]
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Rest:
    """What rows hold beside floats and classes: text, categories, whole numbers.

    Args:
        keys: A key of each row's values, shape (rows,).
        bits: How much they tell rows apart: the logarithm of how many combinations there could be.
    """

    keys: Ints
    bits: float


def rest_of(table: Table, among: Sequence[str], floats: Mapping[str, Floats], rows: int) -> Rest | None:
    """Return what each row holds in these columns beside floats, classes and numbers of rows; None if nothing."""
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
        and name not in names.CLASS_NAMES
        and name.lower() not in ROW_NUMBERS
        and names.row_count(column) == rows
    ]
    if not columns:
        return None
    keys = np.fromiter((hash(repr(row)) for row in zip(*columns, strict=True)), np.int64, rows)
    return Rest(keys, sum(_bits(column) for column in columns))


def _bits(column: Sequence[object]) -> float:
    if any(len(str(value)) > CATEGORY for value in column[:100]):
        return math.inf
    return bits_to_tell_apart(np.array(list(Counter(map(str, column)).values()) or [1]))


def bits_to_tell_apart(counts: Ints) -> float:
    """Return how well a column tells two rows apart, in bits, from how often each of its values occurs.

    Two rows agree in it with a probability of two to the minus that (Renyi's entropy of order two).
    """
    shares = counts / counts.sum()
    return float(-np.log2(np.square(shares).sum()))
