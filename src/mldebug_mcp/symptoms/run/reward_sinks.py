"""Reward gets steadily worse from the start."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.symptoms.policy import (
    ENTROPIES,
    EXPLORATION,
    NOT_POLICY,
    REWARDS,
    TEXT_POLICIES,
    averaged,
    from_the_start,
    reward,
)
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.statistics import blocks, end_level, monotone
from mldebug_mcp.text import counted, figure

LEAST_RECORDS = 20
STEADY = -0.6
"""Rank correlation of block medians with time."""
SHARE = 0.2
"""The fall, of the level at the start ..."""
SIGMAS = 6.0
"""... and above the noise of block medians."""
OF_A_POLICY = (*ENTROPIES, "policy_loss", "approx_kl", "clip_ratio")
"""What is logged of a policy that is a network; agents without one mostly begin at random, logged or not."""


@symptom(any_of=REWARDS, not_for=NOT_POLICY, background=0.004)
def reward_sinks(run: Run) -> Evidence | None:
    """The mean reward falls bit by bit from where the untrained policy was, and never was higher.

    Not this when: it rises first (`reward_falls`); it drops at once and stays there, or hardly moves (`reward_flat`);
    an agent acts less and less at random, which alone moves its reward; the log begins in mid-run. A policy that gets
    worse for so long does learn: the wrong thing. The numbers were chosen by hand.
    """
    rewards = averaged(run, reward(run))
    value = rewards.value
    if len(value) < LEAST_RECORDS:
        raise CannotTell(f"reward has {counted(len(value), 'finite value')} here; {LEAST_RECORDS} are needed")
    if not from_the_start(rewards):
        raise CannotTell("the log begins in mid-run")
    if explores_less(run):
        raise CannotTell("actions may be taken at random less and less, which alone moves the reward")
    if not sinks(run, rewards):
        return None
    start, end = float(blocks(value, 20).level[0]), end_level(value)
    return Evidence(
        f"reward falls from {figure(start)} at {run.step_name} {figure(float(rewards.step[0]))} to "
        f"{figure(end)}, bit by bit, and is never above where it began",
        steps=(float(rewards.step[0]),),
        values={"start": start, "end": end},
    )


def explores_less(run: Run) -> bool:
    """Say whether an agent acts less and less at random, or may do so: one of whose policy nothing is logged."""
    if any(name in run and float(np.ptp(run[name].finite.value)) > 0 for name in EXPLORATION):
        return True
    return run.kind not in TEXT_POLICIES and not any(name in run for name in OF_A_POLICY)


def sinks(run: Run, rewards: Series) -> bool:
    """Say whether rewards, from the start of a run on, fall bit by bit and never were higher."""
    cut = blocks(rewards.value, 20)
    if len(cut.level) < 3 or explores_less(run) or monotone(cut.level) > STEADY:
        return False
    begin, end = float(cut.level[1]), end_level(rewards.value)  # the first block holds few episodes
    least = max(SHARE * abs(begin), SIGMAS * cut.wobble)
    return float(cut.level[2:].max()) <= begin and begin - end > least
