"""A sudden fall of the loss from which it climbs back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import noise
from mldebug_mcp.text import figure

SIGMAS = 6.0
SHARE = 0.08
"""A fall by this share of the level, this many standard errors deep. Chosen by hand."""
BACK = 0.5
"""Of the fall: so much of it is lost again afterwards."""
STEADY = 0.6
"""Of the fall: before it the loss keeps within this, else it is the end of a rise or a part of steady progress."""


@symptom(
    needs=("loss",), sources=("bekman_mle",), points=60, not_for=("grpo", "ppo", "rl"), whole_run=True, background=0.01
)
def loss_falls_back(run: Run) -> Evidence | None:
    """The training loss falls at one step to a lower level, and climbs back from there over many steps.

    So it looks where the data start over, from rows that were seen or are easier. Not this when: the learning rate is
    cut there; the fall is the end of a spike or of a stretch of bad data; it is at an epoch boundary
    (`loss_epoch_steps`); the loss stays low. The numbers were chosen by hand.
    """
    loss = run["loss"].finite
    width = max(8, len(loss) // 25)
    if len(loss) < 5 * width:
        raise CannotTell(f"{len(loss)} finite values; {5 * width} are needed")
    level, brief = _medians(loss.value, width), _medians(loss.value, width // 2)
    at = np.arange(2 * width, len(loss) - 2 * width)
    before, after = level[at - width], level[at]
    wander = np.max([np.abs(brief[at - 2 * width + part * (width // 2)] - before) for part in range(4)], axis=0)
    drop = before - after
    error = 1.25 * noise(loss.value) * np.sqrt(2 / width)
    later = np.array([level[one + width :].max() for one in at])
    seen = (
        (drop > np.maximum(SIGMAS * error, SHARE * np.abs(before)))
        & (wander < STEADY * drop)
        & (later - after > BACK * drop)
    )
    places = [int(at[one]) for one in _peaks(drop, seen, width) if not _explained(run, loss, int(at[one]))]
    if not places:
        return None
    first = places[0]
    falls = [(float(level[one - width]), float(level[one])) for one in places]
    more = f"; {len(places)} such falls" if len(places) > 1 else ""
    return Evidence(
        f"loss falls from {figure(falls[0][0])} to {figure(falls[0][1])} at {run.step_name} "
        f"{figure(float(loss.step[first]))} and climbs back{more}",
        steps=tuple(float(loss.step[one]) for one in places[:10]),
        values={"before": falls[0][0], "after": falls[0][1], "falls": len(places)},
    )


def _medians(values: Floats, width: int) -> Floats:
    """Return the median of each stretch of `width` values, shape (n - width + 1,)."""
    out: Floats = np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)
    return out


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
    """Say whether the learning rate is cut, or an epoch ends, about where the loss falls."""
    first, last = float(loss.step[max(0, place - 4)]), float(loss.step[min(len(loss) - 1, place + 4)])
    if "learning_rate" in run:
        rate = run["learning_rate"].finite
        before, after = rate.at(first), rate.at(last)
        if before and after is not None and after < 0.8 * before:
            return True
    if "epoch" in run:
        epoch = run["epoch"].finite
        before, after = epoch.at(first), epoch.at(last)
        return before is not None and after is not None and np.floor(after) > np.floor(before)
    return False
