"""Columns of a table that are the same."""

from __future__ import annotations

from collections import defaultdict

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.constant_column import LEAST_ROWS, SHOWN
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check
from mldebug_mcp.text import shorten


@batch_check(
    severity="warning",
    why="If one of them is the target, the model reads the answer from its input and learns nothing else.",
    fix="Leave out the columns that are made of the target or known only after it; of other copies keep one.",
    quotes=("domingos_insidious_contamination",),
    whole=True,
)
def equal_columns(batch: Batch) -> BatchEvidence | None:
    """Two columns of a table of measurements hold the same values in all rows.

    Not this when: they never vary (`constant_column`); the rows are few.
    """
    alike: dict[int, list[str]] = defaultdict(list)
    for name, one in (batch.totals.cells if batch.totals is not None else {}).items():
        if not one.constant and one.rows >= LEAST_ROWS:
            alike[one.sum].append(shorten(name, 30))
    found = [" and ".join(names) for names in alike.values() if len(names) > 1]
    if not found:
        return None
    return BatchEvidence(f"{'; '.join(found[:SHOWN])} hold the same values in all rows", values={"groups": len(found)})
