"""Learning rates that are printed with so few decimals that the end of a schedule cannot be told from zero."""

from __future__ import annotations

import math

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.measure.statistics import last_decimal

STEPS = 100
"""Units of the last decimal that a peak needs. Chosen: they show the end of a schedule to a hundredth."""
LEVELS = 3
"""Values, its end among them, that a rate must take for a decay to be seen in them. Chosen: two are a step."""
SLACK, MARGIN = 1.5, 0.05
"""How much longer than a cosine a schedule may stay within half a unit of its end. Chosen: lines and floors differ."""


def ends_by_rounding(rate: Floats, share: float) -> bool:
    """Say whether a rate may read the same over the last `share` of its record for want of decimals alone.

    `round(lr, 6)` of 1e-5 has ten levels: a cosine reads zero for its last seventh, though it never stands still.
    """
    unit, peak = last_decimal(rate), float(rate.max())
    if unit == 0 or peak <= 0 or peak >= STEPS * unit:
        return False
    end = float(rate[-1])
    levels = set(((rate - end) / unit).round())
    if len(levels) <= LEVELS or 1.0 not in levels:
        return False  # no decay, or one that fell to its end from more than a unit above
    height = max(peak - end, unit)
    unseen = 1 - math.acos(min(1.0, unit / height) - 1) / math.pi
    return share <= SLACK * unseen + MARGIN
