"""Identical rows."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.keys import row_keys
from mldebug_mcp.models.batch import Severity
from mldebug_mcp.symptoms.batch_registry import (
    BatchEvidence,
    batch_check,
)


@batch_check(
    severity="warning",
    why="Duplicates weigh more than the rest and are memorised; across splits they make an evaluation worthless.",
    fix="Drop duplicates before the split; see that no source is listed twice and that workers do not share a seed.",
    fixes={
        "Axolotl": "dataset_exact_deduplication: true.",
        "LLaMA-Factory": "see that a data set is not listed twice.",
    },
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "pretraining", "dpo", "classification", "vlm"),
)
def duplicate_rows(batch: Batch) -> BatchEvidence | None:
    """A row is the same as an earlier one in everything that the model sees.

    Not this when: prompts are the same and completions differ; prompts for generation are repeated, as GRPO does.
    """
    keys = row_keys(batch)
    seen: dict[int, int] = {}
    again = [(row, first) for row, key in keys if (first := seen.setdefault(key, row)) != row]
    if not again:
        return None
    rows = np.unique([row for pair in again for row in pair])
    row, first = again[0]
    # Chosen by hand: collections of instructions hold up to about one in a hundred.
    severity: Severity | None = "info" if len(again) < 0.01 * batch.rows else None
    return BatchEvidence(
        f"{len(again)} of {batch.rows} rows repeat another (row {row} is row {first})",
        rows,
        values={"duplicates": len(again)},
        severity=severity,
    )
