"""The scores of preference pairs, where a data set gives them: which completion was liked better."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.columns import numbers
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.table import Table

_NAMES = tuple(
    (form.format("chosen", word), form.format("rejected", word))
    for word in ("score", "rating", "reward")
    for form in ("{1}_{0}", "{0}_{1}", "{0}-{1}")
)


def score_names(table: Table) -> tuple[str, ...]:
    """Return the columns of the chosen and the rejected completion's score; empty if there are none."""
    return next((pair for pair in _NAMES if set(pair) <= set(table.columns)), ())


def exchanged_pairs(table: Table) -> tuple[str, Ints]:
    """Return the places of the pairs whose rejected completion has the higher score, and of how many, in words."""
    names = score_names(table)
    columns = [numbers(table.columns[name]) for name in names]
    if len(columns) != 2 or columns[0] is None or columns[1] is None or columns[0].shape != columns[1].shape:
        return "", np.empty(0, np.int64)
    chosen, rejected = columns[0].reshape(-1), columns[1].reshape(-1)
    differing = int((chosen != rejected).sum())
    return f"of {differing} pairs that differ in {' and '.join(names)}", np.flatnonzero(chosen < rejected)
