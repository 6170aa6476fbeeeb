"""Rewards and advantages beside the rows of a rollout, read as they are in the file: text keeps none of its columns."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Problem
from mldebug_mcp.batch.columns import is_float, numbers, row_count
from mldebug_mcp.batch.table import Table

ADVANTAGES = ("advantage", "advantages")
REWARDS = ("reward", "rewards", "returns", *ADVANTAGES)
LEAST_ROWS = 4
"""Rows from which advantages of zero are no single group's. Chosen by hand."""
MAX_ROWS = 1000


def rollout_problems(table: Table, first: int = 0) -> tuple[Problem, ...]:
    """Return what the rewards and advantages of a table show.

    Args:
        table: Columns as they are in the file.
        first: The number of its first row.
    """
    found: list[Problem] = []
    for name in REWARDS:
        column = table.columns.get(name)
        values = numbers(column) if column is not None and is_float(column) else None
        if column is None or values is None or len(values) != row_count(column):
            continue
        flat = values.reshape(len(values), -1)
        if name in ADVANTAGES and len(flat) >= LEAST_ROWS and flat.size and not flat.any():
            found.append(Problem("advantages_zero", f"{name} are 0 in all {len(flat)} rows"))
        wrong = np.flatnonzero(~np.isfinite(flat).all(axis=1))[:MAX_ROWS]
        if len(wrong):
            rows = wrong + first if table.numbers is None else table.numbers[wrong]
            found.append(
                Problem("nonfinite_values", f"{name} is NaN or Inf in {len(wrong)} row(s)", tuple(rows.tolist()))
            )
    return tuple(found)
