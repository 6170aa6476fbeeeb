"""input_ids, labels or masks differ in length."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
)


@batch_check(
    severity="error",
    why="The collator or the loss stops over shapes; padded apart, labels and tokens no longer stand side by side.",
    fix=(
        "Cut and pad all columns of a row together; a collator that pads input_ids must pad labels, masks and "
        "position ids too."
    ),
    fixes={"Transformers": "DataCollatorForSeq2Seq pads labels; DataCollatorWithPadding does not."},
    quotes=("hfcourse_walk_pipeline",),
)
def length_mismatch(batch: Batch) -> BatchEvidence | None:
    """A column of a row is longer or shorter than its token ids.

    Not this when: the model is an encoder-decoder, whose labels have their own length. The other checks leave such
    rows, or the column, out.
    """
    told = [problem for problem in batch.problems if problem.check == "length_mismatch"]
    if not told:
        return None
    rows = np.unique([row for problem in told for row in problem.rows]).astype(np.int64)
    return BatchEvidence("; ".join(problem.summary for problem in told[:4]), rows)
