"""The course of the reward: whether it stands, swings, sinks or is as low as it can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.rewards import TEXT_POLICIES
from mldebug_mcp.measure.statistics import (
    aligned,
    blocks,
    drift,
    end_level,
    median,
    monotone,
    noise,
    sample,
    start_level,
)

SHARE_OF_LEVEL = 0.05
"""Of the level: a smaller move is no progress. Chosen: on simulated curves."""
SHARE_OF_SPREAD = 0.25
"""Of the spread within groups of completions: a smaller move is no progress. Chosen: on simulated curves."""
SWINGS = 1.25
"""A steady rise ends 2.9 standard deviations of the whole curve above its start. Chosen: by hand."""
MOSTLY_NOISE = 0.7
"""Share of the variance between neighbours that makes rewards those of single episodes. Chosen: on simulated rises
under noise."""
STEADY = -0.6
"""Rank correlation of block medians with time, at most, of rewards that sink. Chosen: by hand."""
SINKS_BY = 0.2
"""The fall, of the level at the start ... Chosen: by hand."""
SIGMAS = 6.0
"""... and above the noise of block medians. Chosen: by hand."""
OF_A_POLICY = ("entropy", "entropy_loss", "loss_ent", "policy_loss", "approx_kl", "clip_ratio")
"""What is logged of a policy that is a network; agents without one mostly begin at random, logged or not."""
EXPLORATION = ("exploration_rate", "rollout/exploration_rate", "epsilon", "Epsilon", "eps")
"""The share of actions taken at random in Q-learning."""
SAME = 0.01
"""Of the longest episode, and of the price per step: within it lengths, and prices, are one. Chosen: by hand."""
NEARLY_ALWAYS = 0.95
"""Share of the records in which all is the price of steps. Chosen: by hand."""

AT_ONCE, HALF, OFTEN = 3, 0.5, 3.0
"""First records within which a reward is lost, of which no later one brings half; where the spread of completions was
at most so many times their mean, it was more than luck. Chosen: of right and wrong answers, a tenth were right."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A stretch of rewards: its level, trend and noise, what counts as a move, and whether there was none.

    Args:
        level: Its median.
        change: Its trend over the stretch.
        move: What counts as a move: the noise between records, a share of the level, or of the spread within groups.
        around: The range of its levels.
        stands: Whether it did not move.
        hidden: Whether it is too noisy to tell.
    """

    level: float
    change: float
    move: float
    around: float
    stands: bool
    hidden: bool


def standing(value: Floats, spread: float) -> Standing:
    """Measure a stretch of rewards; `spread` is that within groups, 0 where there are none."""
    level, moved = median(sample(value)), drift(value)
    move = max(noise(value), SHARE_OF_LEVEL * abs(level), SHARE_OF_SPREAD * np.nan_to_num(spread))
    cut = blocks(value, 10)
    around = float(np.ptp(cut.level))
    still = abs(moved.change) <= move and around <= 1.5 * move + 4 * cut.wobble
    doubtful = abs(moved.change) + 2 * moved.error > move
    hidden = still and doubtful and abs(moved.change) <= 2 * moved.error
    return Standing(level, moved.change, move, around, still and not doubtful, hidden)


def swings(value: Floats) -> bool:
    """Say whether an agent's reward swings around where it began, and is at its best nowhere near the end."""
    level, spread, between = blocks(value, 10).level, float(value.var()), noise(value) ** 2
    # Of single episodes, which differ from one to the next about as much as over the whole log, only levels swing.
    swing = float(np.sqrt(spread if between < MOSTLY_NOISE * spread else max(float(level.var()), spread - between)))
    gained = median(sample(value[-(len(value) // 3) :])) - start_level(value)
    best, lately = float(level[:-3].max()), float(level[-3:].max())
    return abs(gained) <= SWINGS * swing and lately <= best + swing / 2


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
    begin, end = start_level(rewards.value), end_level(rewards.value)
    least = max(SINKS_BY * abs(begin), SIGMAS * cut.wobble)
    return float(cut.level[2:].max()) <= begin and begin - end > least


@dataclass(frozen=True, slots=True)
class Floor:
    """A reward that is a price per step of episodes that all end at one length.

    Args:
        price: Reward per step, below zero.
        length: The length of the episodes, in steps.
        share: The share of the records of which that holds.
    """

    price: float
    length: float
    share: float


def floor(run: Run, rewards: Series) -> Floor | None:
    """Return the price per step where rewards are nothing else: the worst that such an agent can earn.

    Where every step costs the same and every episode has the same length, the longest that there is, the goal that
    would end it was never reached.
    """
    if "episode_length" not in run:
        return None
    _, length, reward = aligned(run["episode_length"].finite, rewards)
    if not len(length) or (longest := float(length.max())) <= 1 or median(reward) >= 0:
        return None
    price = median(reward) / longest
    same = (length >= (1 - SAME) * longest) & (np.abs(reward / longest - price) <= SAME * abs(price))
    share = float(same.mean())
    return Floor(price, longest, share) if share >= NEARLY_ALWAYS else None


def lost_at_once(run: Run, rewards: Series) -> bool:
    """Say whether a policy never again earns half of what it earned before its first updates, by more than luck."""
    spread = run["reward_std"].finite.value if "reward_std" in run else np.empty(0)
    first, rest = float(rewards.value[0]), rewards.value[AT_ONCE:]
    lost = run.kind in TEXT_POLICIES and first > 0 and float(rest.max()) < HALF * first
    return lost and len(spread) > 0 and float(spread[0]) <= OFTEN * first
