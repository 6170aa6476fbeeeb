"""Calls of tools that no program could make."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check, rows_that


@batch_check(
    severity="warning",
    why="The model learns to write calls that fail, or that a result comes without a call.",
    fix="Write arguments with json.dumps, and give each result the tool_call_id of its call; leave out broken rows.",
    quotes=("karpathy_recipe_inspect_data",),
)
def tool_call_invalid(batch: Batch) -> BatchEvidence | None:
    """The arguments of a tool call are no JSON, or a result names a call that no message made.

    Not this when: calls have no ids; arguments are given as an object.
    """
    told = [row for problem in batch.problems if problem.check == "tool_call_invalid" for row in problem.rows]
    if not told:
        return None
    rows = np.unique(told).astype(np.int64)
    return BatchEvidence(
        f"{rows_that(rows, batch.rows, 'holds', 'hold')} tool calls whose arguments are no JSON, or results without "
        "their call",
        rows,
    )
