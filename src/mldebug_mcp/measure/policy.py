"""What questions of policies share: which runs have one at all, and its reward and entropy by whatever name."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rewards import TEXT_POLICIES, averaged, most_earned, rewards_of, seems_to_learn
from mldebug_mcp.measure.statistics import blocks, median, start_level
from mldebug_mcp.measure.unknown import CannotTell

REWARDS = (Quantity.REWARD,)
"""The reward, or its components where only they are logged."""
ENTROPIES = ("entropy", "entropy_loss", "loss_ent")
"""Policy entropy. What is called `entropy_loss` is minus the entropy where it is negative; PPO1 has `loss_ent`."""
NOT_POLICY = ("pretraining", "sft", "preference", "supervised", "diffusion")
"""Kinds of run without a policy. TRL's SFT logs a token entropy too: it means something else there."""

NEAR_BEST = 0.05
"""Of the way that the return has come: so near to its best it has come there. Chosen: by hand."""
NEARLY_THEN = 0.1
"""Below the most that can be earned: where the reward had come to when entropy was gone. Chosen: a wrong answer in
ten."""
ENTROPY_GONE = 0.1
"""Of the entropy at the start: below it a language model has all but stopped trying. Chosen: by hand."""


def reward(run: Run) -> Series:
    """Return the finite rewards: the total, or the sum of its components where each record has them all.

    Raises:
        CannotTell: neither is logged.
    """
    rewards = rewards_of(run)
    if rewards is None:
        raise CannotTell("not logged: the reward in training")
    return rewards


def entropy(run: Run) -> Series:
    """Return the finite policy entropies.

    Raises:
        CannotTell: the run is not known to train a policy.
    """
    require_policy(run)
    name = next(name for name in ENTROPIES if name in run)
    series = run[name].finite
    if name == "entropy_loss" and len(series) and median(series.value) < 0:
        return Series("entropy", series.step, -series.value)
    return series


def require_policy(run: Run) -> None:
    """Raise CannotTell unless the run trains a policy: entropy and KL mean other things elsewhere."""
    if run.kind == "unknown" and rewards_of(run) is None:
        raise CannotTell("it is not known whether this run trains a policy: no reward is logged")


def is_solved(run: Run) -> bool:
    """Say whether the agent of a game has come to its best return, and stays there."""
    rewards = rewards_of(run)
    if rewards is None:
        return False
    if run.kind in TEXT_POLICIES:
        return _earns_all_first(rewards, entropy(run))
    if not seems_to_learn(run):
        return False
    level = blocks(averaged(run, rewards).value, 10).level
    return float(level[-1]) >= float(level.max()) - NEAR_BEST * float(np.ptp(level))


def _earns_all_first(rewards: Series, chance: Series) -> bool:
    """Say whether the reward has come to a whole number, the most that it ever is, before entropy had gone.

    What a language model no longer tries is lost for other prompts: so only what was learnt before counts as solved.
    """
    most = most_earned(rewards)
    if most is None:
        return False
    gone = np.flatnonzero(chance.value < ENTROPY_GONE * start_level(chance.value))
    then = rewards.at(float(chance.step[gone[0]])) if len(gone) else None
    return then is not None and then >= (1 - NEARLY_THEN) * most > float(rewards.value[0])
