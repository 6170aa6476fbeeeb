"""Agents that walk through a grid, and what their runs share; ppo.py and dqn.py train them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.faults.experiment import Record, Settings, Stepwise

GAMMA = 0.97
Reward = Callable[[Tensor, torch.Generator], Tensor]
"""Changes the rewards of a step, (environments,)."""


@dataclass(frozen=True)
class World:
    """A grid to walk through; a chain is a grid one row high.

    In every third column left and right are exchanged, so that no single action leads to the goal.

    Args:
        wide: Columns.
        high: Rows.
        longest: Steps after which an episode is cut off.
        goal: Reward at the far corner, where an episode ends; each step costs a hundredth.
    """

    wide: int
    high: int
    longest: int
    goal: float = 1.0

    @property
    def states(self) -> int:
        """Number of states."""
        return self.wide * self.high

    @property
    def actions(self) -> int:
        """Left and right, and in a grid up and down."""
        return 2 if self.high == 1 else 4


GRID = World(5, 5, 40)
CHAIN = World(7, 1, 40)


class Walkers:
    """Several agents at once in copies of a world."""

    def __init__(self, world: World, count: int, generator: torch.Generator, reward: Reward | None) -> None:
        self.world, self.generator, self.reward = world, generator, reward
        self.x, self.y = (torch.zeros(count, dtype=torch.long) for _ in range(2))
        self.age, self.earned = torch.zeros(count, dtype=torch.long), torch.zeros(count)
        self.returns: deque[float] = deque(maxlen=50)
        self.lengths: deque[float] = deque(maxlen=50)

    def see(self) -> Tensor:
        """Return the states, one-hot, (environments, states)."""
        return functional.one_hot(self.y * self.world.wide + self.x, self.world.states).float()

    def step(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """Walk; return the rewards and whether each episode ended, and start ended ones anew."""
        world = self.world
        across = (action == 1).long() - (action == 0).long()
        across = torch.where(self.x % 3 == 1, -across, across)
        self.x = (self.x + across).clamp(0, world.wide - 1)
        self.y = (self.y + (action == 3).long() - (action == 2).long()).clamp(0, world.high - 1)
        self.age += 1
        there = (self.x == world.wide - 1) & (self.y == world.high - 1)
        rewards = there * world.goal - 0.01
        if self.reward:
            rewards = self.reward(rewards, self.generator)
        self.earned += rewards
        over = there | (self.age >= world.longest)
        self.returns += self.earned[over].tolist()
        self.lengths += self.age[over].float().tolist()
        for kept in (self.x, self.y, self.age, self.earned):
            kept[over] = 0
        return rewards, over

    def described(self) -> Record:
        """Return what is logged of the last episodes."""
        if not self.returns:
            return {}
        return {
            "rollout/ep_len_mean": sum(self.lengths) / len(self.lengths),
            "rollout/ep_rew_mean": sum(self.returns) / len(self.returns),
        }


def network(states: int, outputs: int) -> nn.Sequential:
    """Return a network with one hidden layer."""
    return nn.Sequential(nn.Linear(states, 32), nn.Tanh(), nn.Linear(32, outputs))


@dataclass(slots=True, kw_only=True)
class Agent(Stepwise):
    """What runs of agents share.

    Args:
        world: Where they walk.
        reward: Changes the rewards.
        gamma: Discount.
        frozen: Whether nothing is trained.
    """

    formats = ("jsonl", "csv")
    intervals = (1,)
    left_out = ((), (), ("train/learning_rate",), ("train/n_updates", "time/iterations"))
    # An agent that earns what it earns without the fault, with a sound critic, is not harmed by it.
    telling = ("rollout/ep_rew_mean", "train/value_loss")
    columns = {"step": "time/total_timesteps"}  # noqa: RUF012

    world: World
    reward: Reward | None = None
    gamma: float = GAMMA
    frozen: bool = False

    def settings(self) -> Settings:
        """Return the settings of the agent."""
        return {"learning_rate": self.lr, "gamma": self.gamma, **self.config}
