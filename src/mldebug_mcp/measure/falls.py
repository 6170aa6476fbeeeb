"""Sudden falls of a curve to a lower level, from which it climbs back over many records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.cycles import rate_comes_back
from mldebug_mcp.measure.statistics import noise, row_medians, start_level

SIGMAS = 7.0
"""Standard errors that a fall is deep. Chosen: by hand."""
SHARE = 0.1
"""... and the share of the level that it is. Chosen: by hand."""
BACK = 0.5
"""Of the fall: so much of it is lost again afterwards."""
STEADY = 0.6
"""Of the fall: before it the loss keeps within this, unless it goes far below that. Chosen: else it is the end of a
rise."""
BELOW = 0.3
"""Of the fall: by so much it goes below all that came shortly before, where the loss was not steady. Chosen: by
hand."""
NEAR_ZERO = 0.3
"""Of the loss at the start: what it falls from. Chosen: a loss near zero falls by half again and again."""
BEYOND = 2.0
"""... and it falls from no more than that level times this: what swings far above its start is unsteady, and no batch
is known again. Chosen: an ordinary climb does not double it."""
CUT = 0.8
"""A learning rate that falls below this share of itself from one record to the next is cut. Chosen: by hand."""

MOST = 2_000
"""Points that windows are moved over: medians stand for more. Chosen: time and memory grow with their square."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A fall of the loss from which it climbs back.

    Args:
        step: First step at the lower level.
        before, after: The levels on either side.
    """

    step: float
    before: float
    after: float


def falls_of(run: Run) -> list[Fall]:
    """Return the falls of the loss that neither its rate nor an epoch's end explains, in order."""
    loss = run["loss"].finite
    stride = -(-len(loss) // MOST)
    curve = _thinned(loss.value, stride)
    falls: dict[int, Fall] = {}
    for width in sorted({max(6, len(curve) // 25), max(8, len(curve) // 12)}):
        for thinned_place, (before, after) in _falls(curve, width).items():
            place = thinned_place if stride == 1 else _steepest(loss.value, thinned_place * stride, 2 * stride)
            if all(abs(place - other) > 2 * width * stride for other in falls) and not _explained(run, loss, place):
                falls[place] = Fall(float(loss.step[place]), before, after)
    return [falls[place] for place in sorted(falls)]


def _thinned(values: Floats, stride: int) -> Floats:
    """Return the median of each `stride` values in a row, shape (n // stride,)."""
    return values if stride == 1 else row_medians(values[: len(values) // stride * stride].reshape(-1, stride))


def _falls(values: Floats, width: int) -> dict[int, tuple[float, float]]:
    """Return where the medians of `width` values fall and climb back, and the levels before and after."""
    level, brief = _medians(values, width), _medians(values, width // 2)
    at = np.arange(2 * width, len(values) - 2 * width + 1)
    if not len(at):
        return {}
    before, after, earlier = level[at - width], level[at], level[at - 2 * width]
    drop = before - after
    error = 1.25 * noise(values) * np.sqrt(2 / width)
    later = np.maximum.accumulate(level[::-1])[::-1][at + width]
    shortly = _lowest(brief, 2 * width - width // 2 + 1)[at - 2 * width]
    lowest = _lowest(np.concatenate([np.full(2 * width, np.inf), level]), 3 * width + 1)[at - 2 * width]
    start = start_level(values)
    seen = (
        (drop > np.maximum(SIGMAS * error, SHARE * np.abs(before)))
        & (before > NEAR_ZERO * start)
        & ((before < BEYOND * start) | (start <= 0))
        & (earlier - before < STEADY / 2 * drop)  # else it falls all the time
        & ((before - shortly < STEADY * drop) | (after < lowest - BELOW * drop))
        & (later - after > BACK * drop)
    )
    return {
        _steepest(values, int(at[one]), width): (float(before[one]), float(after[one]))
        for one in _peaks(drop, seen, width)
    }


def _steepest(values: Floats, place: int, width: int) -> int:
    """Return where the curve falls most from three values to the next three, within a width of a place."""
    three = np.convolve(values, np.ones(3), mode="valid")
    first = max(3, place - width)
    near = np.arange(first, min(len(three), place + width + 1))
    return first + int(np.argmax(three[near - 3] - three[near]))


def _medians(values: Floats, width: int) -> Floats:
    """Return the median of each stretch of `width` values, shape (n - width + 1,)."""
    return row_medians(np.lib.stride_tricks.sliding_window_view(values, width))


def _lowest(values: Floats, width: int) -> Floats:
    """Return the smallest value of each stretch of `width` values, shape (n - width + 1,)."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(values, width).min(axis=1))


def _peaks(drop: Floats, seen: NDArray[np.bool_], width: int) -> list[int]:
    """Return where the deepest falls are, none within two widths of a deeper one."""
    left = np.where(seen, drop, -np.inf)
    out = []
    while np.isfinite(best := left.max(initial=-np.inf)):
        place = int(np.argmax(left == best))
        out.append(place)
        left[max(0, place - 2 * width) : place + 2 * width] = -np.inf
    return sorted(out)


def _explained(run: Run, loss: Series, place: int) -> bool:
    """Say whether the rate is cut, or an epoch ends, about where the loss falls, or the rate comes back after it."""
    first, last = float(loss.step[max(0, place - 4)]), float(loss.step[min(len(loss) - 1, place + 4)])
    if "learning_rate" in run:
        rate = run["learning_rate"].finite
        near = rate.value[(rate.step >= first) & (rate.step <= last)]
        if (near[1:] < CUT * near[:-1]).any():
            return True
        if any(step >= first for step in rate_comes_back(run)):
            return True
    if "epoch" in run:
        epoch = run["epoch"].finite
        before, after = epoch.at(first), epoch.at(last)
        return before is not None and after is not None and np.floor(after) > np.floor(before)
    return False
