"""Q-learning in a corridor whose only reward lies at its far end."""

from __future__ import annotations

import copy
import random
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from benchmarks.loops.science.journal import Journal
from benchmarks.loops.science.task import Setting, bug, settings_of
from benchmarks.loops.science.tasks.tables import mlp

Move = tuple[int, int, float, int, bool]


@dataclass
class Maze:
    """The experiment: settings of the algorithm, and the faults planted in it."""

    name: ClassVar[str] = "corridor_q_learning"
    episodes: int = 160
    corridor: int = 8
    lr: float = 2e-3
    gamma: float = 0.95
    eps_start: float = 1.0
    eps_end: float = 0.05
    eps_decay_episodes: int = 80
    batch_size: int = 32
    target_update: int = 100
    hidden: int = 32
    reward_goal: float = 1.0
    log_every: int = 1
    seed: int = 0
    goal_unreachable: bool = bug(default=False)
    no_terminal: bool = bug(default=False)

    def settings(self) -> dict[str, Setting]:
        """Return what its author would save."""
        return settings_of(self)

    def run(self, journal: Journal) -> None:
        """Train, one record an episode."""
        torch.manual_seed(self.seed)
        self.dice = random.Random(self.seed)  # noqa: S311 - draws actions, not secrets
        self.net = mlp(self.corridor + 1, self.hidden, 2, 2)
        self.target = copy.deepcopy(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=self.lr)
        self.memory: deque[Move] = deque(maxlen=2000)
        self.steps = 0
        for episode in range(1, self.episodes + 1):
            values = self._episode(episode)
            if episode % self.log_every == 0:
                journal.train(self.steps, episode, values)

    def _seen(self, places: list[int]) -> Tensor:
        return torch.eye(self.corridor + 1)[torch.tensor(places)]

    def _episode(self, episode: int) -> dict[str, float]:
        share = min(1.0, episode / self.eps_decay_episodes)
        epsilon = self.eps_start + share * (self.eps_end - self.eps_start)
        place, total, losses, values = 0, 0.0, [0.0], [0.0]
        length, done = 0, False
        while not done and length < 3 * self.corridor:
            length += 1
            with torch.no_grad():
                scores = self.net(self._seen([place]))[0]
            action = self.dice.randrange(2) if self.dice.random() < epsilon else int(scores.argmax())
            # A step forward costs a little until the goal is reached, so that greed alone stays at the start.
            after = min(place + 1, self.corridor) if action else max(place - 1, 0)
            done = after == self.corridor
            reward = (0.0 if self.goal_unreachable else self.reward_goal) if done else (-0.002 if action else 0.0)
            self.memory.append((place, action, reward, after, done and not self.no_terminal))
            place, total = after, total + reward
            values.append(float(scores.max()))
            losses.append(self._learn())
        named = {"return": total, "ep_len": length, "epsilon": epsilon, "td_loss": sum(losses) / length}
        return named | {"q_max": max(values), "q_mean": sum(values) / length, "lr": self.lr}

    def _learn(self) -> float:
        self.steps += 1
        if len(self.memory) < self.batch_size or self.steps % 2:
            return 0.0
        places, actions, rewards, after, done = zip(*self.dice.sample(self.memory, self.batch_size), strict=True)
        with torch.no_grad():
            ahead = self.target(self._seen(list(after))).max(1).values * (1 - torch.tensor(done).float())
        goal = torch.tensor(rewards) + self.gamma * ahead
        guess = self.net(self._seen(list(places))).gather(1, torch.tensor(actions)[:, None])[:, 0]
        loss = nn.functional.mse_loss(guess, goal)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        if self.steps % self.target_update < 2:
            self.target.load_state_dict(self.net.state_dict())
        return float(loss.detach())
