"""In what a few rows of a data set differ from others: numbers compared with what is usual."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from mldebug_mcp.batch import Batch, Sequences
from mldebug_mcp.batch.sequences import Bools, Floats, Ints
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import figure, percent, shorten

LEAST_ROWS = 8
"""Rows that are needed to know what is usual. Chosen: of fewer a spread cannot be measured."""
MIN_ODD_DEVIATIONS = 6.0
"""Robust standard deviations from which on a row is called odd. Chosen: some ten rows with five numbers each are looked
at, and lengths of texts have long tails."""
LEAST_SPREAD = 0.05
"""Spread of a share that is taken for noise, at least. Chosen: a token more or less in a short row."""
LEAST_LOG_SPREAD = 0.2
"""Spread of a logarithm that is taken for noise, at least. Chosen: a fifth more or less."""
DEVIATIONS = 1.4826
"""Standard deviation of a normal distribution, in median absolute deviations.
Source: https://en.wikipedia.org/wiki/Median_absolute_deviation"""


class Oddity(NamedTuple):
    """In what a row differs: by how many robust standard deviations, in words."""

    row: int
    by: float
    says: str


def odd_rows(batch: Batch, rows: Collection[int]) -> list[Oddity]:
    """Return what some rows of a batch differ in from its other rows, what differs most first."""
    found = [token for side in batch.sides for token in _in_tokens(side, rows, batch.unit)]
    found += _in_numbers({**batch.floats, **batch.cells}, batch.numbers, rows)
    return sorted((oddity for oddity in found if oddity.by > MIN_ODD_DEVIATIONS), key=lambda oddity: -oddity.by)


def _in_tokens(side: Sequences, rows: Collection[int], unit: str) -> Iterator[Oddity]:
    where = f" ({side.name})" if side.name else ""
    here = np.isin(side.numbers, list(rows))
    each = [_tokens(side, index) for index in range(side.rows)]
    lengths = side.lengths.astype(np.float64)
    for index, by in _far(np.log1p(lengths), here, LEAST_LOG_SPREAD, both=True):
        summary = f"{lengths[index]:.0f} {unit} long{where}; {figure(median(lengths[~here]))} is usual around it"
        yield Oddity(int(side.numbers[index]), by, summary)
    for shares, says in (
        (_commonest(each), f"of its {unit} are the same one{where}"),
        (_unknown(each, here), f"of its {unit} are in no row around it{where}"),
    ):
        for index, by in _far(shares, here, LEAST_SPREAD):
            summary = f"{percent(float(shares[index]))} {says}; {percent(median(shares[~here]))} is usual"
            yield Oddity(int(side.numbers[index]), by, summary)


def _in_numbers(columns: Mapping[str, object], numbers: Ints, rows: Collection[int]) -> Iterator[Oddity]:
    here = np.isin(numbers, list(rows))
    for name, column in columns.items():
        if not isinstance(column, np.ndarray) or len(column) != len(numbers) or column.dtype.kind not in "fiu":
            continue
        sizes = np.abs(column.astype(np.float64)).reshape(len(column), -1).max(axis=1) if column.size else here * 0.0
        called, finite = shorten(name, 60), np.isfinite(sizes)
        for index in np.flatnonzero(here & ~finite).tolist():
            yield Oddity(int(numbers[index]), np.inf, f"{called} is not finite")
        usual = sizes[~here & finite]
        for index, by in _far(np.log1p(np.where(finite, sizes, 0.0)), here & finite, LEAST_LOG_SPREAD):
            summary = f"{called} is up to {figure(sizes[index])} in size; {figure(median(usual))} is usual"
            yield Oddity(int(numbers[index]), by, summary)


def _far(values: Floats, here: Bools, least: float, *, both: bool = False) -> Iterator[tuple[int, float]]:
    """Yield where `here` is, and by how many robust standard deviations the value lies above the others."""
    others = values[~here]
    if len(others) < LEAST_ROWS:
        return
    middle = median(others)
    spread = max(DEVIATIONS * median(np.abs(others - middle)), least)
    for index in np.flatnonzero(here).tolist():
        by = (float(values[index]) - middle) / spread
        yield index, abs(by) if both else by


def _tokens(side: Sequences, index: int) -> Ints:
    start, stop = (int(bound[index]) for bound in side.bounds)
    return np.asarray(side.ids.flat[start : max(start, stop)], np.int64)


def _commonest(rows: list[Ints]) -> Floats:
    """Return the share of each row's commonest token."""
    return np.array([np.unique(row, return_counts=True)[1].max() / len(row) if len(row) else 0.0 for row in rows])


def _unknown(rows: list[Ints], here: Bools) -> Floats:
    """Return the share of each row's tokens that no other row around has."""
    around = [np.unique(row) for row, inside in zip(rows, here.tolist(), strict=True) if not inside]
    if not around:
        return np.zeros(len(rows))
    tokens, counts = np.unique(np.concatenate(around), return_counts=True)
    in_one, in_two = tokens, tokens[counts > 1]  # of a row around, itself does not count
    return np.array(
        [
            1 - float(np.isin(row, in_one if inside else in_two).mean()) if len(row) else 0.0
            for row, inside in zip(rows, here.tolist(), strict=True)
        ]
    )
