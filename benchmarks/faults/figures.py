"""The figures that the README shows: kept in figures.json by the commands that measure them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

FILE = Path(__file__).parent / "figures.json"

Rows = Sequence[Mapping[str, str]]
"""A table: one mapping of column to cell for each row."""


def kept(name: str) -> Rows:
    """Return a table as it was last measured."""
    rows: Rows = json.loads(FILE.read_text(encoding="utf-8"))[name]
    return rows


def keep(name: str, rows: Rows) -> None:
    """Keep a table, in place of what was measured before."""
    tables = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    FILE.write_text(json.dumps(tables | {name: rows}, indent=1) + "\n", encoding="utf-8")


def table(rows: Rows) -> str:
    """Return a table in Markdown."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


def side_by_side(columns: Mapping[str, Mapping[str, str]]) -> Rows:
    """Return a table of the same measures of several things: one row per measure, one column per thing."""
    measures = next(iter(columns.values()))
    return [{"": what, **{name: column[what] for name, column in columns.items()}} for what in measures]


def share(right: Sequence[bool]) -> str:
    """Return the share that is true, in words that suit a table."""
    return f"{np.mean(right):.3f}" if right else "no such runs"


def part_of(true: Sequence[bool]) -> str:
    """Return how many of some are true, and their share."""
    return f"{sum(true)} of {len(true)} ({sum(true) / len(true):.2f})" if true else "no such runs"


class _Answer(Protocol):
    @property
    def probability(self) -> float:
        """The probability of the first cause."""

    def right(self, places: int) -> bool:
        """Say whether a right cause stands among the first places."""


def calibration_error(ones: Sequence[_Answer], bins: int = 10, weights: Sequence[float] | None = None) -> float:
    """Return the expected calibration error of the leading hypothesis: |confidence - accuracy|, by size of bin.

    Args:
        ones: The answers.
        bins: Into so many intervals of equal width the confidences are sorted.
        weights: What each answer counts; all the same without.
    """
    if not ones:
        return float("nan")
    confidence = np.array([one.probability for one in ones])
    right = np.array([one.right(1) for one in ones])
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    counts = np.ones(len(ones)) if weights is None else np.array(weights)
    surplus = counts * (confidence - right)
    return float(sum(abs(surplus[which == one].sum()) for one in set(which.tolist())) / counts.sum())
