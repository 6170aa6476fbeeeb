"""Identical rows."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import (
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
    purposes=("sft", "pretraining", "dpo", "classification", "embedding", "vlm"),
    whole=True,
)
def duplicate_rows(batch: Batch) -> BatchEvidence | None:
    """A row is the same as an earlier one in everything that the model sees.

    Not this when: prompts are the same and completions differ; prompts for generation are repeated, as GRPO does.
    """
    if batch.overlap is None or not len(batch.overlap.exact):
        return None
    again = batch.overlap.exact
    row, first = again[0].tolist()
    # Chosen by hand: collections of instructions hold up to about one in a hundred.
    severity: Severity | None = "info" if len(again) < 0.01 * batch.overlap.rows else None
    near = f", {len(batch.overlap.near)} more nearly do" if len(batch.overlap.near) else ""
    return BatchEvidence(
        f"{len(again)} of {batch.overlap.rows} rows repeat another (row {row} is row {first}){near}",
        np.unique(again),
        values={"duplicates": len(again), "near_duplicates": len(batch.overlap.near)},
        severity=severity,
    )
