"""The one jump of a noisy curve, seen by what stands on both sides of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.measure.spikes import Spike
from mldebug_mcp.measure.statistics import MAD_TO_STD, median, median_of_three, positive, start_level

SIGMAS, TIMES = 7.0, 4.0
"""Standard deviations that a lone spike is off, and times as far as any other record, as it is or on the logarithm.
Chosen: at most 2 % of curves with noise of Student's t with 3 degrees of freedom have one."""
SIGMAS_ON_LOG, FAR = 4.0, 6.0
"""On the logarithm it is this far off in any case, unless it is this many times as far off as any other. Chosen: by
hand."""
LEAST = 24
"""Records behind the first fall without which none is said to stand alone. Chosen: by hand."""
_SIDE = 3
"""Records on each side whose median is the level. Chosen: neither the other record of a spike nor a slope moves a
median of six."""
_BATCH = 1 << 15
"""Records looked at together. Chosen: what is worked out of them fits into the caches of a processor."""


def lone_spike(values: Floats, share_of_level: float, share_of_progress: float) -> list[Spike]:
    """Return the record, or two, of a curve that stand out from the three on both sides as none elsewhere do.

    Args:
        values: The curve, shape (n,).
        share_of_level: Least height, as a share of the level beside it.
        share_of_progress: Least height, as a share of the way from the start of the curve to its lowest point.
    """
    start = start_level(values)
    # Noise that multiplies is large in the fall: of a curve that comes down to a tenth, what follows is judged.
    falls = start > 0 and float(values.min()) < start / 10
    fall = int(np.argmax(median_of_three(values) < start / 10)) if falls else 0
    rest = values[fall:]
    if len(rest) < LEAST:
        return []
    top = _farthest(rest)
    height = float(rest[top.at]) - top.level
    if height <= 0 or height < max(share_of_level * abs(top.level), share_of_progress * (start - float(rest.min()))):
        return []
    if not _stands_out(top, _farthest(np.log(rest)) if positive(rest) else None):
        return []
    high = [at for at in (top.at - 1, top.at, top.at + 1) if rest[at] > top.level + height / 2]
    return [Spike(fall + high[0], fall + high[-1], fall + top.at, top.level, height, recovered=True)]


@dataclass(frozen=True, slots=True)
class _Farthest:
    """The record of a curve that is farthest above the median of the six around it, but for the first three and last.

    Args:
        at: Its index.
        level: The median of the six around it.
        times: Its distance in multiples of the largest one elsewhere.
        away: The distance of each record from the median of the six around it, shape (n,).
    """

    at: int
    level: float
    times: float
    away: Floats

    def sigmas(self) -> float:
        """Return its distance in standard deviations of these distances."""
        sigma = MAD_TO_STD * median(np.abs(self.away)) * (1 + 10 / len(self.away))
        return float(self.away[self.at]) / sigma if sigma > 0 else math.inf


def _stands_out(top: _Farthest, on_log: _Farthest | None) -> bool:
    """Say whether a record stands alone, as it is or on the logarithm, where there is one."""
    if not any(one.times > TIMES and one.sigmas() > SIGMAS for one in (top, on_log) if one is not None):
        return False
    return on_log is None or (on_log.at == top.at and (top.times > FAR or on_log.sigmas() > SIGMAS_ON_LOG))


def _farthest(curve: Floats) -> _Farthest:
    level = level_around(curve)
    away = curve - level
    at = _SIDE + int(np.argmax(away[_SIDE:-1]))
    size = np.abs(away)
    before, after = size[: max(0, at - _SIDE)], size[at + _SIDE + 1 :]
    elsewhere = max(float(before.max(initial=0.0)), float(after.max(initial=0.0)))
    return _Farthest(at, float(level[at]), float(away[at]) / elsewhere if elsewhere > 0 else math.inf, away)


def level_around(curve: Floats) -> Floats:
    """Return the median of the three records on each side of every record, mirrored at the ends, shape (n,)."""
    padded, level = np.pad(curve, _SIDE, mode="reflect"), np.empty_like(curve)
    for first in range(0, len(curve), _BATCH):
        level[first : first + _BATCH] = _middle(padded[first : first + _BATCH + 2 * _SIDE])
    return level


def _middle(curve: Floats) -> Floats:
    """Return the median of the six around each record but the outer three, shape (n - 6,).

    Six by six they are not sorted: each three in a row are once, and of the threes on both sides the middle is taken.
    """
    lower, upper = np.minimum(curve[:-2], curve[1:-1]), np.maximum(curve[:-2], curve[1:-1])
    high, other = np.maximum(upper, curve[2:]), np.minimum(upper, curve[2:])
    threes = np.minimum(lower, other), np.maximum(lower, other), high
    (a, b, c), (d, e, f) = ([part[side] for part in threes] for side in (np.s_[:-4], np.s_[4:]))
    third = np.minimum(np.minimum(c, f), np.minimum(np.maximum(a, e), np.maximum(b, d)))
    fourth = np.maximum(np.maximum(a, d), np.maximum(np.minimum(b, f), np.minimum(c, e)))
    return np.asarray((third + fourth) / 2)
