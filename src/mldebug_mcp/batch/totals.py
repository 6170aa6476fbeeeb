"""What a check needs to know of all rows together, counted piece by piece in bounded memory: lengths and classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.cells import CellCounts
from mldebug_mcp.batch.ragged import Floats, Ints
from mldebug_mcp.batch.table import Column

LONGEST = 10_000
"""Longest rows of each side whose numbers are kept."""
MAX_CLASSES = 1_000_000
"""Classes that are told apart; of more, the rarer half is forgotten."""


@dataclass(slots=True)
class LengthCounts:
    """Rows by length, and which rows are the longest.

    Args:
        counts: Rows of each length, padding left out.
        longest: The longest rows seen, and perhaps more: their lengths.
        numbers: Their numbers in the file.
    """

    counts: Counter[int] = field(default_factory=Counter)
    longest: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, lengths: Ints, numbers: Ints) -> None:
        """Count rows."""
        count_into(self.counts, lengths)
        self._keep(lengths, numbers)

    def merge(self, later: LengthCounts) -> None:
        """Count what rows further on in the file have shown."""
        self.counts.update(later.counts)
        self._keep(later.longest, later.numbers)

    def _keep(self, lengths: Ints, numbers: Ints) -> None:
        lengths, numbers = np.concatenate([self.longest, lengths]), np.concatenate([self.numbers, numbers])
        if len(lengths) > 2 * LONGEST:
            kept = np.lexsort((numbers, -lengths))[:LONGEST]
            lengths, numbers = lengths[kept], numbers[kept]
        self.longest, self.numbers = lengths, numbers


@dataclass(slots=True)
class Totals:
    """Counts over the pieces seen so far.

    Args:
        lengths: By the name of the side.
        classes: Rows of each class label from 0 up.
        labels: Class labels in all.
        cells: By the name of the column of a table of measurements.
    """

    lengths: dict[str, LengthCounts] = field(default_factory=dict)
    classes: Counter[int] = field(default_factory=Counter)
    labels: int = 0
    cells: dict[str, CellCounts] = field(default_factory=dict)

    def add_cells(self, name: str, column: Column, numbers: Ints) -> None:
        """Count the cells of a column."""
        self.cells.setdefault(name, CellCounts()).merge(CellCounts.of(column, numbers))

    def add_lengths(self, side: str, lengths: Ints, numbers: Ints) -> None:
        """Count the rows of a side."""
        self.lengths.setdefault(side, LengthCounts()).add(lengths, numbers)

    def add_classes(self, labels: Ints) -> None:
        """Count class labels; negative ones mark rows without one."""
        labels = labels[labels >= 0]
        self.labels += len(labels)
        count_into(self.classes, labels)
        self._forget()

    def merge(self, later: Totals) -> None:
        """Add what rows further on in the file have shown."""
        for side, counts in later.lengths.items():
            self.lengths.setdefault(side, LengthCounts()).merge(counts)
        self.labels += later.labels
        self.classes.update(later.classes)
        for name, cells in later.cells.items():
            self.cells.setdefault(name, CellCounts()).merge(cells)
        self._forget()

    def _forget(self) -> None:
        if len(self.classes) > MAX_CLASSES:
            self.classes = Counter(dict(self.classes.most_common(MAX_CLASSES // 2)))


def count_into(counts: Counter[int], values: Ints) -> None:
    """Count whole numbers."""
    kinds, found = np.unique(values, return_counts=True)
    counts.update(dict(zip(kinds.tolist(), found.tolist(), strict=True)))


def arrays_of(counts: Counter[int]) -> tuple[Ints, Ints]:
    """Return what was counted, in order, and how often each occurs."""
    values = np.array(sorted(counts), np.int64)
    return values, np.array([counts[int(value)] for value in values], np.int64)


def median_of(values: npt.NDArray[np.number], counts: Ints) -> float:
    """Return the median of values with these counts, as `numpy.median` does."""
    order = np.argsort(values)
    sums = np.cumsum(counts[order])
    middle = np.array([(sums[-1] - 1) // 2, sums[-1] // 2])
    found: Floats = values[order][np.searchsorted(sums, middle, side="right")].astype(np.float64)
    return float(found.mean())
