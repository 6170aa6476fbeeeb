"""Text that was read with the wrong encoding."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check, rows_that

FEW = 0.01
"""Share of the rows up to which it is a remark. Chosen: text from the web has as much, and it does no harm."""


@batch_check(
    severity="warning",
    why="The model learns to read and to write the garbled characters; rare scripts become long runs of odd tokens.",
    fix='Read the source files anew with encoding="utf-8"; text that is damaged already can mostly be mended (ftfy).',
    quotes=("karpathy_recipe_inspect_data",),
)
def garbled_text(batch: Batch) -> BatchEvidence | None:
    """Characters such as "Ã©" or "â€™" stand where the text had "é" or "’": UTF-8 was read as Latin-1.

    Not this when: an accented letter stands before a sign or two; single characters were lost.
    """
    told = [row for problem in batch.problems if problem.check == "garbled_text" for row in problem.rows]
    if not told:
        return None
    rows = np.unique(told).astype(np.int64)
    severity: Severity | None = "info" if len(rows) <= FEW * batch.rows else None
    said = f"{rows_that(rows, batch.rows, 'holds', 'hold')} characters that are UTF-8 read with another encoding"
    return BatchEvidence(said, rows, severity=severity)
