"""Unmasked labels are not the input ids."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.agreement import hides_words, shift_of
from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    NO_SPOTS,
    BatchEvidence,
    batch_check,
    of_rows,
    spots_at,
)


@batch_check(
    severity="error",
    why=(
        "The model is trained on tokens that are not in its input: labels of another row, another tokenizer, "
        "or stale data."
    ),
    fix="labels = input_ids.clone(), then mask; build both from one encoding and never shuffle or pad them apart.",
    fixes={
        "Axolotl": "delete last_run_prepared and prepare the data again.",
        "LLaMA-Factory": "set overwrite_cache: true once.",
    },
    quotes=("hfcourse_decode_inputs", "axolotl_clear_caches"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def labels_mismatch(batch: Batch) -> BatchEvidence | None:
    """Trained labels differ from the tokens at their places.

    Not this when: they are shifted (`labels_shifted`); the inputs there are mask tokens, as for masked language
    models; the model is an encoder-decoder.
    """
    total, rows, spots, trained = 0, NO_ROWS, NO_SPOTS, 0
    for side in batch.trained_sides:
        wrong = side.disagreeing
        if not len(wrong) or shift_of(side) or side.shifted_by_design or hides_words(side, batch.mask, batch.columns):
            continue
        total += len(wrong)
        trained += int(side.trained_per_row.sum())
        rows = np.union1d(rows, side.numbers[np.unique(side.ids.row_of(wrong))])
        spots = spots or spots_at(side, wrong)
    if not total:
        return None
    said = f"{total} of {trained} trained labels, in {of_rows(rows, batch.rows)}, are not the tokens at their places"
    return BatchEvidence(said, rows, spots, {"labels": total}, None if total > 0.01 * trained else "warning")
