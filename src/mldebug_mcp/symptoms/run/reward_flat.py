"""Reward does not move."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import NOT_POLICY, REWARDS, reward
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, drift, noise, sample
from mldebug_mcp.text import figure

LEAST_RECORDS = 20
"""Axolotl looks at a reward that has not moved after 20 steps."""
SHARE_OF_LEVEL = 0.05
SHARE_OF_SPREAD = 0.25
"""A move below a quarter of the spread within groups of completions is no progress."""


@symptom(any_of=REWARDS, sources=("axolotl_stability",), not_for=NOT_POLICY, background=0.012)
def reward_flat(run: Run) -> Evidence | None:
    """The mean reward stays at one level over the whole log.

    Not this when: it rises slowly but clearly; the log is too short or the reward too noisy to show a rise (then it
    is unknown); it moved and came back. What counts as a move - the noise between records, a quarter of `reward_std`,
    5 % of the level, whichever is largest - was chosen on simulated curves.
    """
    rewards = reward(run)
    value = rewards.value
    if len(value) < LEAST_RECORDS:
        raise CannotTell(f"reward has {len(value)} finite value(s) here; {LEAST_RECORDS} are needed")
    level, moved = float(np.median(sample(value))), drift(value)
    spread = float(np.median(run["reward_std"].finite.value)) if "reward_std" in run and len(run["reward_std"]) else 0.0
    move = max(noise(value), SHARE_OF_LEVEL * abs(level), SHARE_OF_SPREAD * np.nan_to_num(spread))
    cut = blocks(value, 10)
    around = float(np.ptp(cut.level))
    if abs(moved.change) > move or around > 1.5 * move + 4 * cut.wobble:
        return None
    if abs(moved.change) + 2 * moved.error > move:
        if abs(moved.change) > 2 * moved.error:
            return None
        raise CannotTell(f"reward is too noisy for {len(value)} records to tell a level one from one that moves")
    return Evidence(
        f"reward stays at {figure(level)} from {run.step_name} {figure(float(rewards.step[0]))} to "
        f"{figure(float(rewards.step[-1]))}: its trend over the whole log is {moved.change:+.2g}, "
        f"the noise between records {noise(value):.2g}",
        steps=(float(rewards.step[0]),),
        values={"level": level, "change": moved.change, "noise": noise(value), "range_of_blocks": around},
    )
