"""Where the training loss fails: where it is no longer finite, or turns up for good."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Series
from mldebug_mcp.measure.statistics import blocks, median

RISE = 0.05
"""A loss that ends this share above its lowest level has turned; the losses of sound runs hardly ever do."""
SIGMAS = 6.0
"""... and this far above the noise of block medians. Both chosen by hand."""


def fails_at(loss: Series) -> float | None:
    """Return the step from which the loss is not finite, or at which it was lowest before it rose for good."""
    bad = ~np.isfinite(loss.value)
    if bad.any():
        return float(loss.step[int(np.argmax(bad))])
    cut = blocks(loss.value, 20)
    lowest = int(np.argmin(cut.level))
    after = cut.level[lowest + 1 :]  # of a loss that falls steeply to the end, the blocks before are higher too
    risen = median(after[-3:]) - float(cut.level[lowest]) if len(after) else 0.0
    if risen < max(RISE * abs(float(cut.level[lowest])), SIGMAS * cut.wobble):
        return None
    return float(loss.step[int(cut.first[lowest])])
