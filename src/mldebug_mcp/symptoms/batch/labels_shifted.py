"""Labels are shifted against the inputs although the model shifts by itself."""

from __future__ import annotations

from mldebug_mcp.batch.agreement import shift_of
from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
    rows_where,
)


@batch_check(
    severity="error",
    why=(
        "Models of Transformers shift labels inside the loss; shifted twice, the model learns to predict the token "
        "after next, or to copy its input."
    ),
    fix="labels = input_ids.clone() with prompts and padding set to -100; leave the shift to the model.",
    fixes={"Megatron, nanoGPT": "their losses do not shift: there shifted labels are right."},
    quotes=("hfcourse_decode_inputs",),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def labels_shifted(batch: Batch) -> BatchEvidence | None:
    """Labels are the next (or the previous) tokens instead of the tokens at their own places.

    Not this when: the column is called targets, as in code whose loss does not shift. With a loss mask beside the
    labels and no Transformers configuration it is only a remark: Megatron's data look so.
    """
    shifts = [(side, shift) for side in batch.trained_sides if (shift := shift_of(side)) and not side.shifted_by_design]
    if not shifts:
        return None
    rows = rows_where([side for side, _ in shifts], lambda side: side.trained_per_row > 0)
    where = "next" if shifts[0][1] == 1 else "previous"
    severity: Severity | None = "info" if shifts[0][0].loss_mask is not None and not batch.model.given else None
    return BatchEvidence(
        f"in {of_rows(rows, batch.rows)} each label is the {where} token",
        rows,
        values={"shift": shifts[0][1]},
        severity=severity,
    )
