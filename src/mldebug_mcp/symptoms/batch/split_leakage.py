"""Rows of the evaluation data are in the training data."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check


@batch_check(
    severity="error",
    why="The evaluation measures memory: its loss is too low, and it cannot show overfitting.",
    fix="Drop the shared rows from the training data, and split by source or conversation before cutting rows.",
    quotes=("kapoor_17_fields",),
    whole=True,
)
def split_leakage(batch: Batch) -> BatchEvidence | None:
    """Rows of the data set given with --against are also here, exactly or nearly.

    Not this when: rows share a system prompt or other boilerplate, but not four fifths of their text. Below one row
    in a hundred, all of them near, it is a warning; the share was chosen by hand.
    """
    overlap = batch.overlap
    if overlap is None or overlap.against_exact is None or overlap.against_near is None:
        return None
    exact, near = len(overlap.against_exact), len(overlap.against_near)
    if not exact + near:
        return None
    severity: Severity | None = "warning" if not exact and near < 0.01 * overlap.against_rows else None
    return BatchEvidence(
        f"of {overlap.against_rows} rows of {overlap.against}, {exact} are here too, and {near} more nearly so",
        np.unique(np.concatenate([overlap.against_exact[:, 0], overlap.against_near[:, 0]])),
        values={"exact": exact, "near": near, "against_rows": overlap.against_rows},
        severity=severity,
    )
