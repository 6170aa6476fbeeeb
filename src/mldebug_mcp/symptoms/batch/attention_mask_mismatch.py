"""The attention mask disagrees with the padding."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.agreement import inverted_rows
from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    NO_SPOTS,
    BatchEvidence,
    batch_check,
    of_rows,
    rows_that,
    rows_where,
    spots_at,
)


@batch_check(
    severity="warning",
    why="The model reads padding as text, or does not see part of the text.",
    fix=(
        "Let the tokenizer or the collator make the mask (tokenizer.pad); do not compare ids with pad_token_id where "
        "padding and end are the same token."
    ),
    fixes={"Axolotl": "clear the prepared data set (dataset_prepared_path) after changing special tokens."},
    quotes=("transformers_left_pad",),
)
def attention_mask_mismatch(batch: Batch) -> BatchEvidence | None:
    """The mask lets the model attend to padding, or hides text.

    Not this when: the mask is the wrong way round altogether (`attention_mask_inverted`); padding and end are the
    same token and the mask is one longer than the text; rows without a mask are not padded on the left.
    """
    attended, hidden, rows, spots = 0, 0, NO_ROWS, NO_SPOTS
    for side in batch.sides:
        if side.attended is None or len(inverted_rows(side)):
            continue
        wrong = side.misattended
        if len(wrong):
            attended += int(side.attended[wrong].sum())
            hidden += int((~side.attended[wrong]).sum())
            rows = np.union1d(rows, side.numbers[np.unique(side.ids.row_of(wrong))])
            spots = spots or spots_at(side, wrong)
    if len(rows):
        what = [f"{attended} padding positions are attended to"] * bool(attended) + [
            f"{hidden} tokens of text are hidden"
        ] * bool(hidden)
        return BatchEvidence(
            f"{' and '.join(what)} in {of_rows(rows, batch.rows)}",
            rows,
            spots,
            {"padding_attended": attended, "text_hidden": hidden},
            "error" if hidden else None,
        )
    return _mask_missing(batch)


def _mask_missing(batch: Batch) -> BatchEvidence | None:
    if batch.purpose != "generation":
        return None
    sides = [side for side in batch.sides if side.attention is None and side.padded]
    rows = rows_where(sides, lambda side: side.bounds[0] > side.ids.offsets[:-1])
    if not len(rows):
        return None
    padded = rows_that(rows, batch.rows, "is", "are")
    return BatchEvidence(f"{padded} padded on the left, and there is no attention mask", rows)
