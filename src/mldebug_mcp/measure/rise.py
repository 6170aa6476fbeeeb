"""A loss that rises and does not come back: from where, and from what level to what."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.statistics import (
    blocks,
    end_level,
    median,
    median_of_three,
    positive,
    start_level,
)

SHARE_OF_PROGRESS = 0.2
"""The rise takes back at least this share of the progress made before it. Chosen: by hand."""
SHARE_OF_LEVEL = 0.08
"""... and is at least this share of the best level. Chosen: by hand."""
LEAST = 2
"""Finite records without which a rise cannot be told."""
SHORT, SHORT_FACTOR = 8, 1.4
"""In an excerpt of fewer records the last two must stand at this multiple of the level of its first half. Chosen: by
hand."""
MANIFOLD = 10.0
"""Times the lowest level: a higher rise is followed on the logarithm. Chosen: else the last of its jumps would be its
onset."""
EPOCHS, SHARE_BY_EPOCHS = 4, 0.05
"""Means over so many epochs in a row go up, to this share above the lowest. Chosen: they have hardly any noise; by
chance one in 24 level curves ends so, and none so high."""
FEW, TIMES, MOST_OF_PROGRESS = 20, 2.0, 0.5
"""Of so few records the last go up smoothly, to this multiple of the lowest and by this share of the progress made.
Chosen: such a slope is no noise."""
STEEP, STEEP_TIMES = 3, 4.0
"""... and so few in a row are enough where they go up to this multiple of the lowest. Chosen: by hand."""
SIGMAS = 6.0
"""A rise stands this far above the noise of block medians. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A rise of the loss that lasts to the end.

    Args:
        at: Index of the finite record at which it begins.
        lowest: The lowest level before.
        end: The level at the end.
    """

    at: int
    lowest: float
    end: float


def rise_for_good(run: Run) -> Rise | None:
    """Return the rise at whose top the training loss is still at the end of the log; None where there is none."""
    loss = run["loss"].finite
    if len(loss) < LEAST:
        return None
    if _rises_by_epochs(run, loss) or _rises_smoothly(loss):
        best = int(np.argmin(loss.value))
        return Rise(best + 1, float(loss.value[best]), float(loss.value[-1]))
    if len(loss) < SHORT:
        level = median(loss.value[: len(loss) // 2])
        if level <= 0 or float(loss.value[-2:].min()) < SHORT_FACTOR * level:
            return None
        return Rise(int(np.argmax(loss.value > 1.1 * level)), level, float(loss.value[-1]))
    cut = blocks(loss.value)
    best = int(np.argmin(cut.level))
    lowest, end = float(cut.level[best]), end_level(loss.value)
    rise = end - lowest
    start = start_level(loss.value) if best else lowest
    needed = max(SHARE_OF_PROGRESS * (start - lowest), SHARE_OF_LEVEL * abs(lowest), SIGMAS * cut.wobble, 1e-9)
    tail = loss.value[-max(3, len(loss) // 10) :]
    if rise < needed or best == len(cut.level) - 1 or float(np.quantile(tail, 0.2)) < lowest + rise / 3:
        return None
    return Rise(_onset(loss.value, int(cut.first[best]), lowest, rise), lowest, end)


def _rises_by_epochs(run: Run, loss: Series) -> bool:
    """Say whether the means of the last epochs go up one after the other, well above the lowest before them."""
    if run.step_name != "epoch" or len(loss) <= EPOCHS + 1 or bool(np.any(loss.step != np.floor(loss.step))):
        return False
    lowest, last = float(loss.value.min()), loss.value[-EPOCHS - 1 :]
    return bool(np.all(np.diff(last) > 0)) and 0 < lowest * (1 + SHARE_BY_EPOCHS) < float(last[-1])


def _rises_smoothly(loss: Series) -> bool:
    """Say whether a short curve comes down and goes up again, record by record to its end, by most of its progress."""
    if not EPOCHS + 1 < len(loss) <= FEW:
        return False
    lowest, end, up = float(loss.value.min()), float(loss.value[-1]), np.diff(loss.value) > 0
    if lowest <= 0 or end - lowest <= MOST_OF_PROGRESS * (float(loss.value[0]) - lowest):
        return False
    smooth = end > TIMES * lowest and bool(np.all(up[-EPOCHS:]))
    return smooth or (end > STEEP_TIMES * lowest and bool(np.all(up[-STEEP:])))


def _onset(values: Floats, after: int, lowest: float, rise: float) -> int:
    """Return the index at which the rise begins: a line through 15 % and 60 % of it, drawn back to its foot.

    A rise by more than a factor of ten is followed on the logarithm, else the last of its jumps would be its beginning.
    """
    smooth = median_of_three(values)
    if lowest > 0 and lowest + rise > MANIFOLD * lowest and positive(values):
        smooth, lowest, rise = np.log(smooth), math.log(lowest), math.log1p(rise / lowest)

    def reached(share: float) -> int:
        low = np.flatnonzero(smooth < lowest + share * rise)
        return min(len(values) - 1, max(after, int(low[-1]) + 1 if len(low) else after))

    early, late = reached(0.15), reached(0.6)
    return max(after, early - max(0, late - early) // 3)
