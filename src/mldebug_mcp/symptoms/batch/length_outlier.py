"""Rows far longer than the rest."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Ints
from mldebug_mcp.batch.totals import LengthCounts, arrays_of, median_of
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    BatchEvidence,
    batch_check,
    rows_that,
)

LEAST_ROWS = 4
"""Rows that a side must have. Chosen: fewer have no usual length."""
FACTOR = 5
"""Times the median length. Chosen: log-normal lengths, of which the widest in use hardly ever show one."""
SIGMAS = 6
"""Robust deviations of log length above the median. Chosen: as `FACTOR`, on log-normal lengths."""
LEAST_EXCESS = 64
"""Tokens above the median. Chosen: among short rows several times the median is little to pad."""


@batch_check(
    severity="warning",
    why="One very long row sets the padding of its batch and the peak of memory, and can make the loss spike.",
    fix="Look at the row; cut or drop such rows (max_length), or group rows by length (group_by_length=True).",
    fixes={
        "Axolotl": "sequence_len with excess_length_strategy: drop; sample_packing: true.",
        "LLaMA-Factory": "lower cutoff_len.",
    },
    quotes=("axolotl_spike_one_sample", "karpathy_recipe_inspect_data"),
    whole=True,
)
def length_outlier(batch: Batch) -> BatchEvidence | None:
    """A row is 5 times as long as the median, 64 tokens longer, and 6 robust deviations of log length above it.

    Not this when: lengths vary widely anyway, as those of web documents do. The factors were chosen on log-normal
    lengths, of which the widest in use hardly ever show one.
    """
    if batch.totals is None:
        return None
    sides = batch.totals.lengths.values()
    rows = np.unique(np.concatenate([NO_ROWS, *(_far_longer(side) for side in sides)]))
    if not len(rows):
        return None
    lengths, counts = arrays_of(sum((side.counts for side in sides), Counter()))
    longest, median = int(lengths[-1]), median_of(lengths, counts)
    said = f"{rows_that(rows, batch.rows, 'has', 'have')} up to {longest} {batch.unit}, the median is {median:.0f}"
    return BatchEvidence(said, rows, values={"longest": longest, "median": median})


def _far_longer(side: LengthCounts) -> Ints:
    """Return the numbers of the rows far longer than the rest of their side."""
    lengths, counts = arrays_of(side.counts)
    if counts.sum() < LEAST_ROWS:
        return NO_ROWS
    log = np.log(np.maximum(lengths, 1))
    middle = median_of(log, counts)
    spread = 1.4826 * median_of(np.abs(log - middle), counts)
    least = max(math.exp(middle + max(math.log(FACTOR), SIGMAS * spread)), math.exp(middle) + LEAST_EXCESS)
    return side.numbers[side.longest > least]
