"""DQN on a grid, logged under the names of Stable-Baselines3."""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.faults.agents import CHAIN, GRID, Agent, Walkers, World, network
from benchmarks.faults.experiment import Record, Settings, Subject


@dataclass(slots=True, kw_only=True)
class Dqn(Agent):
    """A DQN run. A step is 48 steps of four environments and 24 updates.

    Args:
        explores: Share of the run during which the exploration rate falls from 1 to `least`.
        least: Exploration rate at last.
        copies: Updates from one copy of the target network to the next.
        clip: Of the gradient norm.
        huber: Whether errors beyond one count linearly, as in Stable-Baselines3.
        endless: Whether targets are bootstrapped across the ends of episodes.
    """

    telling = ("rollout/ep_rew_mean", "train/loss")

    explores: float = 0.4
    least: float = 0.05
    copies: int = 50
    clip: float = 10.0
    huber: bool = True
    endless: bool = False

    @classmethod
    def usual(cls, world: World, seed: int) -> Dqn:
        """Return the healthy run."""
        return cls(world=world, seed=seed, lr=2e-3, steps=60)

    def begin(self) -> DqnTraining:
        """Return the model before its first step."""
        return DqnTraining(self)

    def settings(self) -> Settings:
        """Return the settings under the names of Stable-Baselines3."""
        return {
            "learning_rate": self.lr, "gamma": self.gamma, "exploration_fraction": self.explores,
            "exploration_final_eps": self.least, "target_update_interval": self.copies, "max_grad_norm": self.clip,
            **self.config,
        }  # fmt: skip


class DqnTraining:
    """A network of action values on its way, with its buffer and its target network."""

    count, walks, updates, size = 4, 48, 24, 4000

    def __init__(self, run: Dqn) -> None:
        torch.manual_seed(run.seed)
        self.run = run
        self.generator = torch.Generator().manual_seed(run.seed)
        self.walkers = Walkers(run.world, self.count, self.generator, run.reward)
        self.values = network(run.world.states, run.world.actions)
        self.target = copy.deepcopy(self.values)
        self.optimizer = torch.optim.Adam(self.values.parameters(), lr=run.lr)
        self.buffer: deque[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]] = deque(maxlen=self.size // self.count)
        self.done = 0

    def step(self, step: int) -> Record:
        """Walk, update, and return the record."""
        run = self.run
        rate = max(run.least, 1 - (1 - run.least) * step / max(1.0, run.explores * run.steps))
        if run.explores == 0:
            rate = run.least
        for _ in range(self.walks):
            self._walk(rate)
        columns = [torch.cat(column) for column in zip(*self.buffer, strict=True)]
        losses = [self._update(columns) for _ in range(self.updates)]
        return {
            "step": (step + 1.0) * self.walks * self.count,
            **self.walkers.described(),
            "rollout/exploration_rate": rate,
            "train/learning_rate": run.lr,
            "train/loss": sum(losses) / len(losses),
            "train/n_updates": float(self.done),
        }

    @torch.no_grad()
    def _walk(self, rate: float) -> None:
        seen = self.walkers.see()
        best = self.values(seen).argmax(dim=1)
        random = torch.randint(0, self.run.world.actions, (self.count,), generator=self.generator)
        explores = torch.rand(self.count, generator=self.generator) < rate
        action = torch.where(explores, random, best)
        reward, over = self.walkers.step(action)
        self.buffer.append((seen, action, reward, over.float(), self.walkers.see()))

    def _update(self, columns: list[Tensor]) -> float:
        run = self.run
        rows = torch.randint(0, len(columns[0]), (32,), generator=self.generator)
        seen, action, reward, over, following = (column[rows] for column in columns)
        with torch.no_grad():
            goes_on = run.gamma * (1.0 if run.endless else 1 - over)
            aim = reward + goes_on * self.target(following).amax(dim=1)
        guess = self.values(seen).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = functional.smooth_l1_loss(guess, aim) if run.huber else functional.mse_loss(guess, aim)
        if not run.frozen:
            torch.autograd.backward(loss)
            if run.clip:
                nn.utils.clip_grad_norm_(self.values.parameters(), run.clip)
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.done += 1
        if self.done % run.copies == 0:
            self.target.load_state_dict(self.values.state_dict())
        return loss.item()


SUBJECTS = (
    Subject("dqn_grid", partial(Dqn.usual, GRID), tuning=True),
    Subject("dqn_chain", partial(Dqn.usual, CHAIN), tuning=False),
)
