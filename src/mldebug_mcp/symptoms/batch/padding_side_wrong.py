"""The padding side does not fit the purpose."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Bools
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.models.base import Severity
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    rows_that,
    rows_where,
)


@batch_check(
    severity="warning",
    why=(
        "Generation continues from the last position: from padding, if that is on the right. In training, padding on "
        "the left shifts positions unless position ids make up for it."
    ),
    fix="tokenizer.padding_side = 'left' for generation and 'right' for training; set it for each phase.",
    fixes={
        "Unsloth": (
            "FastLanguageModel sets the side for training and for_inference; do not set it by hand between them."
        ),
        "LLaMA-Factory": "it sets the side by stage; leave padding_side alone.",
    },
    quotes=("transformers_left_pad", "transformers_right_pad_warning"),
    purposes=("sft", "pretraining", "generation"),
)
def padding_side_wrong(batch: Batch) -> BatchEvidence | None:
    """Prompts for generation are padded on the right, or training rows on the left.

    Not this when: training rows are padded on the left and have position ids that begin at the text; the rows are
    completions, or preference pairs, which TRL pads on either side. Where the model's configuration says that only
    distances between tokens count (rotary positions) and a mask hides the padding, the left side is only a remark.
    """
    sides = [side for side in batch.sides if side.name in ("", "prompt") and side.padded]
    generation = batch.purpose == "generation"
    if generation and not batch.purpose_given:
        # Rows without labels may be anything: only their user knows.
        return None
    rows = rows_where(sides, _padded_right if generation else _padded_left)
    if not len(rows):
        return None
    side = "right" if generation else "left"
    harmless = batch.model.relative_positions and all(one.attention is not None for one in sides)
    severity: Severity | None = "error" if generation else "info" if harmless else None
    return BatchEvidence(f"{rows_that(rows, batch.rows, 'is', 'are')} padded on the {side}", rows, severity=severity)


def _padded_right(side: Sequences) -> Bools:
    start, stop = side.bounds
    return (stop < side.ids.offsets[1:]) & (stop > start)


def _padded_left(side: Sequences) -> Bools:
    start, stop = side.bounds
    left = (start > side.ids.offsets[:-1]) & (stop > start)
    if side.positions is not None:
        left &= side.positions.flat[np.minimum(start, len(side.ids.flat) - 1)] != 0
    return left
