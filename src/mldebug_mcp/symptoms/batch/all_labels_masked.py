"""No label is trained on."""

from __future__ import annotations

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
    rows_where,
)


@batch_check(
    severity="error",
    why="The loss is 0 or NaN from the first step, no gradient flows, and nothing is learnt.",
    fix="Decode a row and compare it with the text that the masking looks for: the response marker must be spelt and "
    "tokenized as in the template; with assistant_only_loss=True the chat template needs {% generation %} marks; see "
    "that max_length leaves the answer in.",
    fixes={
        "Unsloth": "train_on_responses_only: instruction_part and response_part must be the template's exact markers.",
        "Axolotl": "check chat_template, field_messages and roles_to_train; look at `axolotl preprocess --debug`.",
        "LLaMA-Factory": "set template to the model's own, and raise cutoff_len.",
    },
    quotes=("unsloth_all_masked", "axolotl_plateau_mask"),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def all_labels_masked(batch: Batch) -> BatchEvidence | None:
    """No label of the whole batch is trained on: every one is the ignore index, or the loss mask is zero.

    Not this when: only some rows are without trained tokens (`row_labels_masked`).
    """
    sides = batch.labelled
    # Targets without a label are padding from end to end.
    tokens = sum(len(side.ids.flat) if side is batch.targets else int(side.lengths.sum()) for side in sides)
    if not tokens or any(int(side.trained_per_row.sum()) for side in sides):
        return None
    rows = rows_where(sides, lambda side: (side.ids.lengths if side is batch.targets else side.lengths) > 0)
    return BatchEvidence(
        f"none of {tokens} {batch.unit} in {of_rows(rows, batch.rows)} is trained on", rows, values={"tokens": tokens}
    )
