"""NaN or Inf in float inputs."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    BatchEvidence,
    batch_check,
)


@batch_check(
    severity="error",
    why="One such value makes the loss NaN and, after one step, every weight.",
    fix=(
        "Find the row's source: a division by a zero deviation, a log of zero, a missing value read as NaN; clean "
        "it before the collator."
    ),
    quotes=("axolotl_nan_forward_backward", "karpathy_recipe_visualize_before_net"),
)
def nonfinite_values(batch: Batch) -> BatchEvidence | None:
    """A float input holds NaN or infinity.

    Not this when: a float mask holds minus infinity where attention is forbidden.
    """
    said, rows = [], NO_ROWS
    for name, array in batch.floats.items():
        if "mask" in name or "bias" in name:
            continue
        wrong = ~np.isfinite(array)
        if bool(wrong.any()):
            said.append(f"{name} holds {int(np.isnan(array).sum())} NaN and {int(np.isinf(array).sum())} Inf")
            if len(array) == batch.rows:
                rows = np.union1d(rows, batch.numbers[wrong.reshape(len(array), -1).any(axis=1)])
    for problem in batch.problems:
        if problem.check == "nonfinite_values" and problem.summary.split()[0] not in batch.floats:
            said.append(problem.summary)
            rows = np.union1d(rows, problem.rows)
    return BatchEvidence("; ".join(said), rows.astype(np.int64)) if said else None
