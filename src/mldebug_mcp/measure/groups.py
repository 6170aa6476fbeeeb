"""Groups of completions of one prompt: whether their rewards differ, without which there is nothing to learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rewards import rewards_of
from mldebug_mcp.measure.statistics import median

HIGH_SHARE = 0.8
"""Share of the groups without spread from which on a record has none. Source: axolotl_stability, `frac_reward_zero_std`
below 0.8 is healthy."""
ZERO = 1e-6
"""Standard deviation of rewards up to which there is none. Chosen: that of rewards up to 1, rounded."""
ROUNDING = 1e-6
"""Of the reward itself: the same for larger rewards. Chosen: what float32 leaves of the spread of equal rewards."""
NEARLY_ALWAYS = 0.9
"""Share of the records from some step on that lack variance, for its lack to begin there. Chosen: by hand."""
AT_CEILING = 0.99
"""Of the most that can be earned: a reward this near to it is the most. Chosen: by hand."""
WAS_BELOW = 0.9
"""Of the most that can be earned: a first reward below it was less. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Variance of rewards within groups, record by record.

    Args:
        series: The metric that tells of it.
        dead: In which of its records there is none, shape (n,).
        onset: The step from which nine in ten records lack it; the first step where none does.
        level: The reward there, None where it is not logged.
        solved: Whether that is the most that can be earned, 1 or a multiple of it, and it was earned less at first.
    """

    series: Series
    dead: NDArray[np.bool_]
    onset: float
    level: float | None
    solved: bool


def groups(run: Run) -> Groups | None:
    """Return the variance within groups, None where it is not logged."""
    rewards = rewards_of(run)
    if "frac_reward_zero_std" in run:
        series = run["frac_reward_zero_std"].finite
        dead = series.value >= HIGH_SHARE
    elif "reward_std" in run:
        series = run["reward_std"].finite
        size = 0.0 if rewards is None or not len(rewards) else median(np.abs(rewards.value))
        dead = series.value <= max(ZERO, ROUNDING * size)
    else:
        return None
    if not len(series):
        return None
    onset = float(series.step[_onset(dead)])
    since = np.empty(0) if rewards is None else rewards.value[rewards.step >= onset]
    level = median(since) if len(since) else None
    return Groups(series, dead, onset, level, level is not None and _is_solved(rewards, level))


def _onset(dead: NDArray[np.bool_]) -> int:
    share = np.cumsum(dead[::-1])[::-1] / np.arange(len(dead), 0, -1)
    return int(np.argmax((share >= min(NEARLY_ALWAYS, float(share.max()))) & dead))


def _is_solved(rewards: Series | None, level: float) -> bool:
    ceiling = float(np.ceil(level - (1 - AT_CEILING)))
    if rewards is None or ceiling < 1 or abs(level - ceiling) > (1 - AT_CEILING) * ceiling:
        return False
    return float(rewards.value.max()) <= ceiling * (2 - AT_CEILING) and float(rewards.value[0]) < WAS_BELOW * ceiling
