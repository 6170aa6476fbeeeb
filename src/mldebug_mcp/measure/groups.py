"""Groups of completions of one prompt: whether their rewards differ, without which there is nothing to learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rewards import rewards_of
from mldebug_mcp.measure.statistics import median

HIGH_SHARE = 0.8
"""Axolotl: `frac_reward_zero_std` below 0.8 is healthy; 1.0 on every step means no gradient updates."""
ZERO = 1e-6
ROUNDING = 1e-6
"""Of the reward itself: what float32 leaves of the spread of equal rewards."""
NEARLY_ALWAYS = 0.9
AT_CEILING = 0.99
WAS_BELOW = 0.9


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
