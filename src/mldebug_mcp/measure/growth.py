"""How evenly a quantity grows, from a handful of records on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Series
from mldebug_mcp.measure.statistics import blocks, departure

GROWTH, BLOCKS = 0.08, 12
"""Of its level, over twelve blocks of the later two thirds of the log. Chosen: caches have settled by then."""
STEADY_GROWTH, EVENNESS = 0.02, 0.5
"""... or this much, where no block rises by less than half of the mean rise. Chosen: only a leak is that even."""
THIRD = 3
"""Part of the log, and of what is left, that is its start and its end. Chosen: optimizer state has settled by then."""
RISING_BLOCKS = 0.75
"""Share of the blocks that rise. Chosen: a half do by chance."""
STILL = 1 / 6
"""Share of the growth that falls into the last third. Chosen: half of what an even growth has there."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The straight line through a curve.

    Args:
        per_step: Its slope.
        share: How far it rises from the first record to the last, as a share of the first level.
        straightness: Share of the variance that it explains (R²), 0 of a curve that does not move.
        still: Slope over the last third of the records over that of the first third; 1 where it does not slow down.
        records: Records behind it.
    """

    per_step: float
    share: float
    straightness: float
    still: float
    records: int


def growth_of(series: Series) -> Growth | None:
    """Return how a curve grows, without its first record, in which things are set up; None below six of them."""
    step, value = series.finite.step[1:], series.finite.value[1:]
    if len(value) < 5 or float(value[0]) <= 0 or float(step[-1]) <= float(step[0]):
        return None
    spread = float(np.var(value))
    slope, first = (float(one) for one in np.polyfit(step - step[0], value, 1))
    third = max(2, len(value) // 3)
    rises = [
        float((part[-1] - part[0]) / max(at[-1] - at[0], 1e-12))
        for part, at in ((value[:third], step[:third]), (value[-third:], step[-third:]))
    ]
    rest = float(np.var(value - first - slope * (step - step[0])))
    return Growth(
        per_step=slope,
        share=slope * float(step[-1] - step[0]) / float(value[0]),
        straightness=1 - rest / spread if spread > 0 else 0.0,
        still=rises[1] / rises[0] if rises[0] > 0 else 0.0,
        records=len(value),
    )


@dataclass(frozen=True, slots=True)
class LastingGrowth:
    """A growth over the later two thirds of a log that does not level off.

    Args:
        per_step: How much each step adds there.
        onset: Where the curve leaves its first level.
    """

    per_step: float
    onset: float


def lasting_growth(series: Series) -> LastingGrowth | None:
    """Return how a curve grows over its later two thirds, None where it does not, or levels off."""
    level = blocks(series.value[len(series) // THIRD :], BLOCKS).level
    rises = np.diff(level)
    grown = float(level[-1] - level[0])
    still = float(level[-1] - level[-1 - len(level) // THIRD])
    least = STEADY_GROWTH if float(rises.min()) >= EVENNESS * float(rises.mean()) else GROWTH
    if level[0] <= 0 or grown < least * level[0] or (rises > 0).mean() < RISING_BLOCKS or still < STILL * grown:
        return None
    onset = float(series.step[departure(series.value, float(level[-1]))])
    covered = float(series.step[-1]) - float(series.step[len(series) // THIRD])
    return LastingGrowth(grown / (covered or 1), onset)
