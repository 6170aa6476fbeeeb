"""Labels are shifted against the inputs although the model shifts by itself."""

from __future__ import annotations

import numpy as np

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
        "after next, or to copy its input. A decoder is to be shown the labels one place to the right."
    ),
    fix="labels = input_ids.clone() with prompts and padding set to -100; leave the shift to the model.",
    fixes={"Megatron, nanoGPT": "their losses do not shift: there shifted labels are right."},
    quotes=("hfcourse_decode_inputs",),
    purposes=("sft", "pretraining", "dpo", "vlm"),
)
def labels_shifted(batch: Batch) -> BatchEvidence | None:
    """Labels are the next (or the previous) tokens instead of the tokens at their own places.

    Not this when: the column is called targets, as in code whose loss does not shift. With a loss mask beside the
    labels and no Transformers configuration it is only a remark: Megatron's data look so. Of an encoder-decoder it is
    this when the decoder's inputs are the labels themselves, not the labels one place to the right.
    """
    if (shown := _shown_to_decoder(batch)) is not None:
        return shown
    shifts = [(side, shift) for side in batch.trained_sides if (shift := shift_of(side)) and not side.shifted_by_design]
    if not shifts:
        return None
    rows = rows_where([side for side, _ in shifts], lambda side: side.trained_per_row > 0)
    where = "next" if shifts[0][1] == 1 else "previous"
    severity: Severity | None = "info" if shifts[0][0].loss_mask is not None and not batch.model.given else None
    said = f"in {of_rows(rows, batch.rows)} each label is the {where} token"
    return BatchEvidence(said, rows, values={"shift": shifts[0][1]}, severity=severity)


def _shown_to_decoder(batch: Batch) -> BatchEvidence | None:
    targets, inputs = batch.targets, batch.decoder_inputs
    if (
        targets is None
        or inputs is None
        or targets.trained is None
        or not np.array_equal(inputs.lengths, targets.ids.lengths)
    ):
        return None
    told = np.flatnonzero(targets.trained & targets.content)
    if not len(told) or not np.array_equal(inputs.flat[told], targets.ids.flat[told]):
        return None
    return BatchEvidence(
        f"in all {targets.rows} rows decoder_input_ids are the labels at their own places, so that the decoder is "
        "shown each token that it must write; leave them out, and the model makes them from the labels",
        targets.numbers,
        values={"shift": 0},
    )
