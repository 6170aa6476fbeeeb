"""No reward variance within groups."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.symptoms.policy import NOT_POLICY
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import median
from mldebug_mcp.text import counted, figure

HIGH_SHARE = 0.8
"""Axolotl: `frac_reward_zero_std` below 0.8 is healthy; 1.0 on every step means no gradient updates."""
ZERO = 1e-6
LEAST_RECORDS = 10
MOST = 0.8
"""The share of records, in the later half of the log, that lack variance; chosen by hand."""


@symptom(
    any_of=("frac_reward_zero_std", "reward_std"),
    sources=("axolotl_stability",),
    not_for=NOT_POLICY,
    background=0.01,
)
def reward_std_zero(run: Run) -> Evidence | None:
    """Nearly all groups of completions have the same reward, record after record.

    Not this when: it happens only sometimes, or in less than 80 % of the groups. At the end of a run that has
    solved its task it is expected: read it with the level of the reward.
    """
    series, dead = without_variance(run)
    if len(dead) < LEAST_RECORDS:
        raise CannotTell(f"{series.name} has {counted(len(dead), 'value')}; {LEAST_RECORDS} are needed")
    later = dead[len(dead) // 2 :]
    if later.mean() < MOST:
        return None
    onset = float(series.step[_onset(dead)])
    typical = median(series.value[len(dead) // 2 :])
    return Evidence(
        f"{series.name} is {figure(typical)} in the later half of the log: groups without variance in "
        f"{later.mean():.0%} of its records, from {run.step_name} {figure(onset)} on{_beside(run, onset)}",
        steps=(onset,),
        values={"share_of_records": float(dead.mean()), "share_of_later_half": float(later.mean())},
    )


def without_variance(run: Run) -> tuple[Series, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the metric that tells of variance within groups, and in which of its records there is none."""
    if "frac_reward_zero_std" in run:
        series = run["frac_reward_zero_std"].finite
        return series, series.value >= HIGH_SHARE
    series = run["reward_std"].finite
    return series, series.value <= ZERO


def _onset(dead: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """Return the first index from which nine in ten records lack variance."""
    share: Floats = np.cumsum(dead[::-1])[::-1] / np.arange(len(dead), 0, -1)
    return int(np.argmax((share >= min(0.9, float(share.max()))) & dead))


def _beside(run: Run, onset: float) -> str:
    if "reward" not in run:
        return ""
    level = run["reward"].finite
    later = level.where(level.step >= onset).value
    return f"; the reward there is {figure(median(later))}" if len(later) else ""
