"""What questions of policies share: which runs have one at all, and its reward and entropy by whatever name."""

from __future__ import annotations

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.rewards import rewards_of
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.unknown import CannotTell

REWARDS = (Quantity.REWARD,)
"""The reward, or its components where only they are logged."""
ENTROPIES = ("entropy", "entropy_loss", "loss_ent")
"""Policy entropy. What is called `entropy_loss` is minus the entropy where it is negative; PPO1 has `loss_ent`."""
NOT_POLICY = ("pretraining", "sft", "preference", "supervised", "diffusion")
"""Kinds of run without a policy. TRL's SFT logs a token entropy too: it means something else there."""


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
