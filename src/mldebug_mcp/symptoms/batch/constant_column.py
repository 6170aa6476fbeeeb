"""A column of a table that never varies."""

from __future__ import annotations

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check
from mldebug_mcp.text import quoted, shorten

LEAST_ROWS = 50
"""Rows from which a value that never changes is told. Chosen: in so many it is no accident."""
SHOWN = 4
"""Columns that a sentence names. Chosen: a line holds as many."""


@batch_check(
    severity="warning",
    why="It tells the model nothing, and dividing by its standard deviation of zero makes it NaN.",
    fix="See whether the source lost it (a failed join, a dead sensor, a filter on it); else leave the column out.",
    quotes=("karpathy_recipe_inspect_data",),
    whole=True,
)
def constant_column(batch: Batch) -> BatchEvidence | None:
    """A column of a table of measurements holds the same value in all rows.

    Not this when: the rows are few. Of words and whole numbers, such as a version or a fold, it is only remarked.
    """
    counts = batch.totals.cells if batch.totals is not None else {}
    found = {name: one for name, one in counts.items() if one.constant and one.rows >= LEAST_ROWS}
    if not found or len(found) == len(counts):
        return None
    listed = ", ".join(f"{shorten(name, 30)} ({quoted(one.value)})" for name, one in list(found.items())[:SHOWN])
    measured = any(one.numeric and "." in one.value for one in found.values())
    severity: Severity | None = None if measured else "info"
    said = f"{len(found)} of {len(counts)} columns hold one value in all rows: {listed}"
    return BatchEvidence(said, values={"columns": len(found)}, severity=severity)
