"""Rejected completions that were scored higher than the chosen ones."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check, of_rows

MOST = 0.5
"""Share of the pairs above which the columns are exchanged, and not single pairs: then it is an error."""


@batch_check(
    severity="warning",
    why="The model is trained away from what was liked better: rewards look right, and answers get worse.",
    fix="Take the completion with the higher score as chosen; see which of the two lists the data set gives first.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("dpo",),
)
def preference_swapped(batch: Batch) -> BatchEvidence | None:
    """The data's own scores, ratings or rewards of the pairs say that the rejected completion is the better one.

    Not this when: there are no columns of scores for both sides; a pair's scores are equal.
    """
    told = next((problem for problem in batch.problems if problem.check == "preference_swapped"), None)
    if told is None:
        return None
    rows = np.array(told.rows, np.int64)
    severity: Severity | None = "error" if len(rows) > MOST * batch.rows else None
    said = f"{told.summary}, the rejected completion has the higher one in {of_rows(rows, batch.rows)}"
    return BatchEvidence(said, rows, values={"pairs": len(rows)}, severity=severity)
