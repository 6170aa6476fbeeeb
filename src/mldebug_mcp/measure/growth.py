"""How evenly a quantity grows, from a handful of records on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Series


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
