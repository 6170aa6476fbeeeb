"""A loss like the teeth of a saw: it jumps up, and comes down bit by bit until it jumps again.

So does the loss of rows that come in blocks of one kind: each block is learnt, and the next is another. A spike comes
down as it went up; noise goes up as it goes down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.measure.statistics import mad, median

SIGMAS, OF_LEVEL = 6.0, 0.04
"""Standard deviations of the changes from record to record, and share of the level, that a jump is. Chosen: no noise
goes so far."""
STAYS, BACK, LONGEST = 0.5, 0.5, 40
"""Share of a jump that is left a record after its top, and that is gone before the next, within so many records.
Chosen: half is where a jump is told from what it came from."""
FEWEST, SHORTEST = 3, 4
"""Teeth, and records of each. Chosen: two may be a change of the data."""
MOST, SUDDEN, EVENLY = 0.1, 0.8, 1.3
"""Share of the changes that are the largest; their share of all that the loss goes up; and times that of all that it
goes down. Fitted: noise and spikes have 0.9 to 1.2 in benchmarks/faults and loops, rows in blocks 1.34 and more."""


@dataclass(frozen=True, slots=True)
class Teeth:
    """The teeth.

    Args:
        first: Index of the last record before each jump, shape (n,).
        height: Median height of the jumps.
        length: Median records from one jump to the next.
    """

    first: NDArray[np.int64]
    height: float
    length: float


def teeth_of(values: Floats) -> Teeth | None:
    """Return the teeth of a curve in time order, None if it is no saw."""
    change = np.diff(values)
    if len(change) < FEWEST * SHORTEST or _share(change) < max(SUDDEN, EVENLY * _share(-change)):
        return None
    least = max(SIGMAS * mad(change), OF_LEVEL * abs(median(values)))
    jumps = np.flatnonzero(change > least)
    starts = jumps[np.append(True, np.diff(jumps) >= SHORTEST - 1)] if len(jumps) else jumps
    ends = np.minimum(np.append(starts[1:], len(values) - 1), starts + LONGEST)
    found = [(at, height) for at, end in zip(starts, ends, strict=True) if (height := _tooth(values, at, end)) > 0]
    if len(found) < FEWEST:
        return None
    first = np.array([at for at, _ in found])
    return Teeth(first, float(np.median([height for _, height in found])), float(np.median(np.diff(first))))


def _share(change: Floats) -> float:
    """Return which share of all that a curve goes up its largest steps make."""
    up = np.sort(change[change > 0])[::-1]
    return float(up[: max(2, int(MOST * len(change)))].sum() / up.sum()) if len(up) else 0.0


def _tooth(values: Floats, at: int, end: int) -> float:
    """Return the height of a jump after `at` that comes down bit by bit until `end`, 0 of any other."""
    after = values[at + 1 : end + 1]
    if len(after) < SHORTEST:
        return 0.0
    before, top = float(values[at]), float(after[:2].max())
    height = top - before
    stays, back = float(after[2]) - before > STAYS * height, top - float(after[-2:].min()) > BACK * height
    return height if stays and back else 0.0
