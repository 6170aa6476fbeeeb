"""PPO on a grid, logged under the names of Stable-Baselines3."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.faults.agents import CHAIN, GRID, Agent, Walkers, World, network
from benchmarks.faults.experiment import Record, Settings, Subject


@dataclass(slots=True, kw_only=True)
class Ppo(Agent):
    """A PPO run. A step is a rollout of 16 environments, 32 steps each, and the updates that follow it.

    Args:
        bonus: Weight of the entropy in what is maximised.
        epochs: Passes over each rollout.
        clip_range: How far ratios may leave one.
        value_lr: Multiple of the learning rate that the critic trains at.
    """

    bonus: float = 0.01
    epochs: int = 4
    clip_range: float = 0.2
    value_lr: float = 1.0
    clip: float = 0.5

    @classmethod
    def usual(cls, world: World, seed: int) -> Ppo:
        """Return the healthy run."""
        return cls(world=world, seed=seed, lr=3e-3, steps=60)

    def begin(self) -> PpoTraining:
        """Return the model before its first step."""
        return PpoTraining(self)

    def settings(self) -> Settings:
        """Return the settings under the names of Stable-Baselines3."""
        return {
            "learning_rate": self.lr, "gamma": self.gamma, "ent_coef": self.bonus, "n_epochs": self.epochs,
            "clip_range": self.clip_range, "max_grad_norm": self.clip, **self.config,
        }  # fmt: skip


@dataclass(frozen=True)
class Rollout:
    """What the agents saw and did, all (steps * environments, ...)."""

    seen: Tensor
    action: Tensor
    log: Tensor
    value: Tensor
    target: Tensor

    def __getitem__(self, rows: Tensor) -> Rollout:
        return Rollout(self.seen[rows], self.action[rows], self.log[rows], self.value[rows], self.target[rows])


class PpoTraining:
    """Actor and critic on their way."""

    count, long, batch = 16, 32, 256

    def __init__(self, run: Ppo) -> None:
        torch.manual_seed(run.seed)
        self.run = run
        self.generator = torch.Generator().manual_seed(run.seed)
        self.walkers = Walkers(run.world, self.count, self.generator, run.reward)
        self.actor = network(run.world.states, run.world.actions)
        self.critic = network(run.world.states, 1)
        with torch.no_grad():
            next(self.actor[2].parameters()).mul_(0.01)
        groups = [
            {"params": self.actor.parameters(), "lr": run.lr},
            {"params": self.critic.parameters(), "lr": run.lr * run.value_lr},
        ]
        self.optimizer = torch.optim.Adam(groups, eps=1e-5)

    def step(self, step: int) -> Record:
        """Walk, update, and return the record."""
        rollout = self._walk()
        spread = rollout.target.var().item()
        explained = 1 - (rollout.target - rollout.value).var().item() / spread if spread > 0 else float("nan")
        updates = [
            self._update(rollout[rows])
            for _ in range(self.run.epochs)
            for rows in torch.randperm(len(rollout.action), generator=self.generator).view(-1, self.batch)
        ]
        mean = {f"train/{name}": sum(one[name] for one in updates) / len(updates) for name in updates[0]}
        return {
            "step": (step + 1.0) * self.count * self.long,
            "time/iterations": step + 1.0,
            **self.walkers.described(),
            **mean,
            "train/explained_variance": explained,
            "train/learning_rate": self.run.lr,
            "train/n_updates": (step + 1.0) * self.run.epochs,
        }

    @torch.no_grad()
    def _walk(self) -> Rollout:
        seen, action, log, value, reward, over = [], [], [], [], [], []
        for _ in range(self.long):
            seen.append(self.walkers.see())
            logs = torch.nan_to_num(self.actor(seen[-1])).log_softmax(dim=1)
            action.append(torch.multinomial(logs.exp(), 1, generator=self.generator).squeeze(1))
            log.append(logs.gather(1, action[-1].unsqueeze(1)).squeeze(1))
            value.append(self.critic(seen[-1]).squeeze(1))
            rewards, ended = self.walkers.step(action[-1])
            reward.append(rewards)
            over.append(ended.float())
        following, advantage, targets = self.critic(self.walkers.see()).squeeze(1), torch.zeros(self.count), []
        for at in reversed(range(self.long)):
            goes_on = self.run.gamma * (1 - over[at])
            advantage = reward[at] + goes_on * following - value[at] + 0.95 * goes_on * advantage
            targets.append(advantage + value[at])
            following = value[at]
        columns = (seen, action, log, value, targets[::-1])
        return Rollout(*(torch.stack(column).flatten(0, 1) for column in columns))

    def _update(self, part: Rollout) -> Record:
        run = self.run
        advantage = part.target - part.value
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        logs = self.actor(part.seen).log_softmax(dim=1)
        change = logs.gather(1, part.action.unsqueeze(1)).squeeze(1) - part.log
        ratio = change.exp()
        gain = torch.min(ratio * advantage, ratio.clamp(1 - run.clip_range, 1 + run.clip_range) * advantage).mean()
        value_loss = functional.mse_loss(self.critic(part.seen).squeeze(1), part.target)
        entropy = -(logs.exp() * logs).sum(dim=1).mean()
        loss = -gain + 0.5 * value_loss - run.bonus * entropy
        if not run.frozen:
            torch.autograd.backward(loss)
            if run.clip:
                for side in (self.actor, self.critic):
                    nn.utils.clip_grad_norm_(side.parameters(), run.clip)
            self.optimizer.step()
            self.optimizer.zero_grad()
        return {
            "approx_kl": (ratio - 1 - change).mean().item(),
            "clip_fraction": ((ratio - 1).abs() > run.clip_range).float().mean().item(),
            "entropy_loss": -entropy.item(),
            "loss": loss.item(),
            "policy_gradient_loss": -gain.item(),
            "value_loss": value_loss.item(),
        }


SUBJECTS = (
    Subject("ppo_chain", partial(Ppo.usual, CHAIN), tuning=True),
    Subject("ppo_grid", partial(Ppo.usual, GRID), tuning=False),
)
