"""A sudden fall of the loss from which it climbs back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.cycles import rate_comes_back
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import noise, row_medians, start_level
from mldebug_mcp.symptoms.terms import refuse_new_terms
from mldebug_mcp.text import figure

SIGMAS = 7.0
SHARE = 0.1
"""A fall by this share of the level, this many standard errors deep. Chosen by hand."""
BACK = 0.5
"""Of the fall: so much of it is lost again afterwards."""
STEADY = 0.6
"""Of the fall: before it the loss keeps within this, else it is the end of a rise, unless it goes far below that."""
BELOW = 0.3
"""Of the fall: by so much it may fail to go below all that came shortly before."""
NEAR_ZERO = 0.3
"""Of the loss at the start: what it falls from. A loss near zero falls by half again and again."""
CUT = 0.8
"""A learning rate that falls below this share of itself from one record to the next is cut."""

MOST = 2_000
"""Points that windows are moved over: of a longer curve medians of neighbours stand for it, as the time and the memory
that it takes grow with the square of the points."""


@symptom(
    needs=("loss",),
    sources=("bekman_mle",),
    points=40,
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
    background=0.01,
    follows=("loss_spikes_recur", "loss_spike_single"),
)
def loss_falls_back(run: Run) -> Evidence | None:
    """The training loss falls at one step to a lower level, and climbs back from there over many steps.

    This happens where the data start over, with rows that were seen before or are easier.
    Not this when: the learning rate is cut there, or comes back later, with which the loss climbs; the fall is the end
    of a spike or of a stretch of bad data; it is at an epoch boundary (`loss_epoch_steps`), as where each record is the
    mean of one; the loss stays low. Unknown where a term of the loss sets in during the run. The numbers were chosen by
    hand.
    """
    loss = run["loss"].finite
    if run.step_name == "epoch" and bool(np.all(loss.step == np.floor(loss.step))):
        raise CannotTell("each record is the mean of an epoch, in which all rows are seen once")
    refuse_new_terms(run)
    stride = -(-len(loss) // MOST)
    curve = _thinned(loss.value, stride)
    falls: dict[int, tuple[float, float]] = {}
    for width in sorted({max(6, len(curve) // 25), max(8, len(curve) // 12)}):
        for thinned_place, levels in _falls(curve, width).items():
            place = thinned_place if stride == 1 else _steepest(loss.value, thinned_place * stride, 2 * stride)
            if all(abs(place - other) > 2 * width * stride for other in falls) and not _explained(run, loss, place):
                falls[place] = levels
    if not falls:
        return None
    places = sorted(falls)
    before, after = falls[places[0]]
    more = f"; {len(places)} such falls" if len(places) > 1 else ""
    return Evidence(
        f"loss falls from {figure(before)} to {figure(after)} at {run.step_name} "
        f"{figure(float(loss.step[places[0]]))} and climbs back{more}",
        steps=tuple(float(loss.step[one]) for one in places[:10]),
        values={"before": before, "after": after, "falls": len(places)},
    )


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
    seen = (
        (drop > np.maximum(SIGMAS * error, SHARE * np.abs(before)))
        & (before > NEAR_ZERO * start_level(values))
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
