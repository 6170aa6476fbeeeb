"""Rows far longer than the rest."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Bools
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch_registry import (
    BatchEvidence,
    batch_check,
    of_rows,
    rows_where,
)

LEAST_ROWS = 4
FACTOR = 5
SIGMAS = 6
LEAST_EXCESS = 64


@batch_check(
    severity="warning",
    why="One very long row sets the padding of its batch and the peak of memory, and can throw the loss up.",
    fix="Look at the row; cut or drop such rows (max_length), or group rows by length (group_by_length=True).",
    fixes={
        "Axolotl": "sequence_len with excess_length_strategy: drop; sample_packing: true.",
        "LLaMA-Factory": "lower cutoff_len.",
    },
    quotes=("axolotl_spike_one_sample", "karpathy_recipe_inspect_data"),
)
def length_outlier(batch: Batch) -> BatchEvidence | None:
    """A row is 5 times as long as the median, 64 tokens longer, and 6 robust deviations of log length above it.

    Not this when: lengths vary widely anyway, as those of web documents do. The factors were chosen on log-normal
    lengths, of which the widest in use hardly ever show one.
    """
    rows = rows_where([side for side in batch.sides if side.rows >= LEAST_ROWS], _far_longer)
    if not len(rows):
        return None
    longest = max(int(side.lengths.max(initial=0)) for side in batch.sides)
    median = float(np.median(np.concatenate([side.lengths for side in batch.sides])))
    return BatchEvidence(
        f"{of_rows(rows, batch.rows)} {'has' if len(rows) == 1 else 'have'} up to {longest} tokens, the median is "
        f"{median:.0f}",
        rows,
        values={"longest": longest, "median": median},
    )


def _far_longer(side: Sequences) -> Bools:
    lengths = side.lengths
    log = np.log(np.maximum(lengths, 1))
    middle = float(np.median(log))
    spread = 1.4826 * float(np.median(np.abs(log - middle)))
    found: Bools = (log > middle + max(math.log(FACTOR), SIGMAS * spread)) & (lengths > np.exp(middle) + LEAST_EXCESS)
    return found
