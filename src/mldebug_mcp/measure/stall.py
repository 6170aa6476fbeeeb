"""A loss that falls at first and then stands, at whatever level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Series
from mldebug_mcp.measure.statistics import blocks, end_level, start_level

STILL = 0.02
"""Of its level: the loss of a stalled run moves by less over the second half of the log. Chosen: by hand."""
HIGH_SHARE = 0.5
"""A loss above this share of ln(classes or vocabulary) shows that little more than frequencies was learned.

Unigram statistics of text lie near 0.6."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A loss that falls at first and then stands.

    Args:
        start, end: Its levels at the start and at the end.
        moved: How far it moves over the later half.
        onset: The step from which it stands.
    """

    start: float
    end: float
    moved: float
    onset: float


def stalled(loss: Series) -> Stall | None:
    """Return where a loss falls at first and then stands, if it does, at whatever level."""
    start, end = start_level(loss.value), end_level(loss.value)
    if start <= 0 or end > start * 0.97:
        return None
    cut = blocks(loss.value, 20)
    half = cut.level[len(cut.level) // 2 :]
    moved = float(half.max() - half.min())
    level = end + max(STILL * abs(end), 3 * cut.wobble)
    # Where the first block is at that level, the fall is within the noise.
    if moved > max(STILL * abs(end), 4 * cut.wobble) or cut.level[0] <= level:
        return None
    return Stall(start, end, moved, float(loss.step[int(cut.first[int(np.argmax(cut.level <= level))])]))
