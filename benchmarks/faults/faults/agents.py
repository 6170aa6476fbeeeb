"""Faults of agents: of their reward, their exploration, their critic, their step size."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.faults.agents import Agent, World
from benchmarks.faults.dqn import Dqn
from benchmarks.faults.faults.fault import Fault
from benchmarks.faults.ppo import Ppo

PPO = ("ppo_chain", "ppo_grid")
DQN = ("dqn_grid", "dqn_chain")
BOTH = (*PPO, *DQN)


def reward_constant(run: Agent, severity: float) -> None:
    """Reward every step alike: with nothing, or with a hundredth."""
    value = 0.0 if severity == 1 else 0.01
    # What an episode earns is then its length; in a world whose goal ends nothing that is constant too.
    run.world = World(run.world.wide, run.world.high, run.world.longest) if severity == 1 else run.world
    run.reward = lambda rewards, _: torch.full_like(rewards, value)


def reward_random(run: Agent, _: float) -> None:
    """Reward by a coin, whatever the agent does."""

    def coin(rewards: Tensor, generator: torch.Generator) -> Tensor:
        return (torch.rand(rewards.shape, generator=generator) < 0.05).float() - 0.05

    run.reward = coin


def far_away(run: Agent, severity: float) -> None:
    """Put the goal where chance does not lead."""
    high = 1 if run.world.high == 1 else int(severity)
    run.world = World(int(severity) * (3 if high == 1 else 1), high, 60)


def no_exploration(run: Dqn, severity: float) -> None:
    """Explore hardly ever, from the first step."""
    run.explores, run.least = 0.0, severity


def entropy_pressed_down(run: Ppo, severity: float) -> None:
    """Take the entropy bonus with the wrong sign."""
    run.bonus = -severity


def loose_steps(run: Ppo, severity: float) -> None:
    """Make far too many unclipped passes over each rollout."""
    run.epochs, run.clip_range, run.clip, run.lr = int(severity), 10.0, 0.0, run.lr * 3


def rate_times(run: Agent, severity: float) -> None:
    """Multiply the learning rate."""
    run.lr *= severity


def frozen(run: Agent, _: float) -> None:
    """Train nothing."""
    run.frozen = True


def critic_diverges(run: Ppo, severity: float) -> None:
    """Discount by more than one, so that values feed on themselves."""
    run.gamma, run.value_lr, run.clip = severity, 5.0, 0.0


def values_diverge(run: Dqn, severity: float) -> None:
    """Bootstrap across the ends of episodes, without discount, from a target that is copied at each update."""
    run.endless, run.gamma, run.copies, run.huber, run.clip = True, severity, 1, False, 0.0


def as_usual(run: Agent, _: float) -> None:
    """Change nothing."""
    del run


def large_returns(run: Agent, severity: float) -> None:
    """Count rewards in another unit."""
    run.reward = lambda rewards, _: severity * rewards


def noisy_reward(run: Agent, severity: float) -> None:
    """Add noise to the reward, so that the critic never settles."""

    def noisy(rewards: Tensor, generator: torch.Generator) -> Tensor:
        return rewards + severity * torch.randn(rewards.shape, generator=generator)

    run.reward = noisy


FAULTS = (
    Fault(
        "agent_reward_constant", "reward_broken", reward_constant, (1,), BOTH, ("exploration_failure",)
    ),
    Fault(
        "agent_reward_random", "reward_broken", reward_random, (1,), BOTH,
        ("exploration_failure", "lr_too_low"),
    ),
    Fault("far_away", "exploration_failure", far_away, (20,), BOTH, ("reward_broken", "lr_too_low")),
    Fault(
        "no_exploration", "exploration_failure", no_exploration, (0.0,), DQN, ("reward_broken", "lr_too_low")
    ),
    Fault(
        "agent_entropy_pressed_down", "entropy_collapse", entropy_pressed_down, (0.3, 1.0), PPO,
        ("exploration_failure",),
    ),
    Fault("loose_steps", "kl_blowup", loose_steps, (15, 40), PPO, ("lr_too_high", "entropy_collapse")),
    Fault(
        "agent_rate_high", "lr_too_high", rate_times, (30, 100), BOTH,
        ("kl_blowup", "entropy_collapse", "value_instability", "exploration_failure"),
    ),
    Fault(
        "agent_rate_low", "lr_too_low", rate_times, (0.001,), BOTH,
        ("exploration_failure", "params_not_training", "reward_broken"),
    ),
    Fault(
        "agent_frozen", "params_not_training", frozen, (1,), BOTH,
        ("lr_too_low", "exploration_failure", "reward_broken"),
    ),
    Fault("critic_diverges", "value_instability", critic_diverges, (1.2, 1.5), PPO),
    Fault("values_diverge", "value_instability", values_diverge, (1.05, 1.2), DQN),
)  # fmt: skip
HEALTHY = (
    Fault("agent_as_usual", "healthy", as_usual, (1,), BOTH),
    Fault("large_returns", "healthy", large_returns, (10, 100), BOTH),
    Fault("agent_noisy_reward", "healthy", noisy_reward, (0.05,), BOTH),
)
