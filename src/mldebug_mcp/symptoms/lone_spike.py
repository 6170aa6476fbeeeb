"""The one jump of a noisy curve, seen by what stands on both sides of it."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Floats
from mldebug_mcp.symptoms.spikes import Spike
from mldebug_mcp.symptoms.statistics import MAD_TO_STD, median_of_three, positive, start_level

SIGMAS, TIMES = 7.0, 4.0
"""A record, or two side by side, stand alone if they are so many standard deviations off, and so many times as far as
any other record: as they are, or on the logarithm.

Of curves with noise of Student's t with 3 degrees of freedom at most 2 % have such a record. Chosen by hand.
"""
SIGMAS_ON_LOG, FAR = 4.0, 6.0
"""On the logarithm they must be so far off in any case, unless they are so many times as far as any other record."""
LEAST = 24
_SIDE = 3


def lone_spike(values: Floats, share_of_level: float, share_of_progress: float) -> list[Spike]:
    """Return the record, or two, of a curve that stand out from the three on both sides as none elsewhere do.

    Args:
        values: The curve, shape (n,).
        share_of_level: Least height, as a share of the level beside it.
        share_of_progress: Least height, as a share of the way from the start of the curve to its lowest point.
    """
    start = start_level(values)
    # Noise that multiplies is large in the fall: of a curve that comes down to a tenth, what follows is judged.
    fall = int(np.argmax(median_of_three(values) < start / 10)) if start > 0 else 0
    rest = values[fall:]
    if len(rest) < LEAST:
        return []
    top = _stands_out(rest)
    if top is None:
        return []
    level = float(np.median(_around(rest)[:, top]))
    height = float(rest[top]) - level
    if height <= 0 or height < max(share_of_level * abs(level), share_of_progress * (start - float(rest.min()))):
        return []
    high = [at for at in (top - 1, top, top + 1) if rest[at] > level + height / 2]
    return [Spike(fall + high[0], fall + high[-1], fall + top, level, height, recovered=True)]


def _stands_out(curve: Floats) -> int | None:
    """Return the index of the record that stands alone, or None."""
    top, sigmas, times = _farthest(curve)
    alone = sigmas > SIGMAS and times > TIMES
    if positive(curve):
        on_log, log_sigmas, log_times = _farthest(np.log(curve))
        alone = alone or (log_sigmas > SIGMAS and log_times > TIMES)
        alone = alone and on_log == top and (log_sigmas > SIGMAS_ON_LOG or times > FAR)
    return top if alone else None


def _farthest(curve: Floats) -> tuple[int, float, float]:
    """Return the record farthest above the median of the six around it, but for the first three and the last.

    Also its distance in standard deviations of these distances, and in multiples of the largest one elsewhere.
    """
    away = curve - np.median(_around(curve), axis=0)
    top = _SIDE + int(np.argmax(away[_SIDE:-1]))
    size = np.abs(away)
    sigma = MAD_TO_STD * float(np.median(size)) * (1 + 10 / len(curve))
    before, after = size[: max(0, top - _SIDE)], size[top + _SIDE + 1 :]
    elsewhere = max(float(before.max(initial=0.0)), float(after.max(initial=0.0)))
    far = float(away[top])
    return top, far / sigma if sigma > 0 else math.inf, far / elsewhere if elsewhere > 0 else math.inf


def _around(curve: Floats) -> Floats:
    """Return the three records on each side of every record, mirrored at the ends, shape (6, n)."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(curve, _SIDE, mode="reflect"), 2 * _SIDE + 1)
    return np.delete(windows, _SIDE, axis=1).T
