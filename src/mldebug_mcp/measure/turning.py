"""Where the training loss fails: where it is no longer finite, or turns up for good."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Series
from mldebug_mcp.measure.statistics import blocks, median

RISE, SIGMAS = 0.05, 6.0
"""Share above its lowest level, and times the noise of block medians. Chosen: losses of sound runs hardly ever rise."""
BLOCKS, LAST = 20, 3
"""Blocks of records, and those at the end that are its level. Chosen: an outlier in one moves no median."""


def fails_at(loss: Series) -> float | None:
    """Return the step from which the loss is not finite, or at which it was lowest before it rose for good."""
    bad = ~np.isfinite(loss.value)
    if bad.any():
        return float(loss.step[int(np.argmax(bad))])
    cut = blocks(loss.value, BLOCKS)
    lowest = int(np.argmin(cut.level))
    after = cut.level[lowest + 1 :]  # of a loss that falls steeply to the end, the blocks before are higher too
    risen = median(after[-LAST:]) - float(cut.level[lowest]) if len(after) else 0.0
    if risen < max(RISE * abs(float(cut.level[lowest])), SIGMAS * cut.wobble):
        return None
    return float(loss.step[int(cut.first[lowest])])
