"""An actor-critic (PPO, or A2C with one epoch) that is to bring a cart to rest at a dock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from benchmarks.loops.science.journal import Journal
from benchmarks.loops.science.task import Setting, bug, settings_of
from benchmarks.loops.science.tasks.tables import mlp

ENVS = 16
HORIZON = 32


@dataclass
class Rollout:
    """States, actions, their log-probabilities, rewards; time first."""

    states: Tensor
    actions: Tensor
    logps: Tensor
    rewards: Tensor
    success: float


@dataclass
class Dock:
    """The experiment: settings of the algorithm, and the faults planted in it."""

    name: ClassVar[str] = "cart_docking"
    updates: int = 150
    lr: float = 3e-3
    gamma: float = 0.97
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    epochs: int = 3
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    hidden: int = 32
    sparse_reward: bool = False
    reward_scale: float = 1.0
    sync_every: int = 1
    log_every: int = 1
    seed: int = 0
    constant_reward: bool = bug(default=False)
    rewards_speed: bool = bug(default=False)
    flipped_returns: bool = bug(default=False)
    unclipped: bool = bug(default=False)

    def settings(self) -> dict[str, Setting]:
        """Return what its author would save."""
        return settings_of(self)

    def run(self, journal: Journal) -> None:
        """Train, one record an update."""
        torch.manual_seed(self.seed)
        self.actor, self.critic = (
            mlp(2, self.hidden, 2, 3, activation="tanh"),
            mlp(2, self.hidden, 2, 1, activation="tanh"),
        )
        self.nets = nn.ModuleList([self.actor, self.critic])
        optimizer = torch.optim.Adam(self.nets.parameters(), lr=self.lr)
        behaviour = mlp(2, self.hidden, 2, 3, activation="tanh")
        for update in range(1, self.updates + 1):
            if (update - 1) % self.sync_every == 0:
                behaviour.load_state_dict(self.actor.state_dict())
            rollout = self._roll(behaviour)
            values = self._improve(rollout, optimizer)
            if update % self.log_every == 0:
                journal.train(update * ENVS * HORIZON, update, values)

    def _roll(self, behaviour: nn.Module) -> Rollout:
        place = torch.stack([torch.rand(ENVS) * 4 - 2, torch.zeros(ENVS)], 1)
        states, actions, logps, rewards = [place], [], [], []
        with torch.no_grad():
            for _ in range(HORIZON):
                policy = Categorical(logits=behaviour(place), validate_args=False)
                action = policy.sample()  # type: ignore[no-untyped-call]
                speed = 0.92 * place[:, 1] + 0.12 * (action - 1)
                place = torch.stack([(place[:, 0] + speed).clamp(-4, 4), speed], 1)
                near = (place[:, 0].abs() < 0.25) & (speed.abs() < 0.2)
                dense = -0.1 * place[:, 0].abs() + near * 0.3
                rewards.append(self._reward(near.float() if self.sparse_reward else dense, speed))
                states.append(place)
                actions.append(action)
                logps.append(policy.log_prob(action))  # type: ignore[no-untyped-call]
        seen, done, told = torch.stack(states), torch.stack(actions), torch.stack(logps)
        return Rollout(seen, done, told, torch.stack(rewards), float(near.float().mean()))

    def _reward(self, real: Tensor, speed: Tensor) -> Tensor:
        if self.constant_reward:
            return torch.zeros_like(real)
        return (speed.abs() if self.rewards_speed else real) * self.reward_scale

    def _advantages(self, rollout: Rollout, values: Tensor) -> Tensor:
        advantages, carried = torch.zeros_like(rollout.rewards), torch.zeros(ENVS)
        for index in reversed(range(HORIZON)):
            delta = rollout.rewards[index] + self.gamma * values[index + 1] - values[index]
            carried = delta + self.gamma * self.gae_lambda * carried
            advantages[index] = carried
        return advantages

    def _improve(self, rollout: Rollout, optimizer: torch.optim.Optimizer) -> dict[str, float]:
        with torch.no_grad():
            values = self.critic(rollout.states)[..., 0]
        advantages = self._advantages(rollout, values)
        returns = advantages + values[:-1]
        advantages = -advantages if self.flipped_returns else advantages
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        record: dict[str, float] = {}
        for _ in range(self.epochs):
            record = self._epoch(rollout, advantages, returns, optimizer)
        spread = returns.var()
        explained = float(1 - (returns - values[:-1]).var() / spread) if spread > 1e-12 else float("nan")
        reward = float(rollout.rewards.sum(0).mean())
        return {
            "return": reward,
            "success": rollout.success,
            "explained_variance": explained,
            "value": float(values.mean()),
        } | record

    def _epoch(
        self, rollout: Rollout, advantages: Tensor, returns: Tensor, optimizer: torch.optim.Optimizer
    ) -> dict[str, float]:
        policy = Categorical(logits=self.actor(rollout.states[:-1]), validate_args=False)
        moved = policy.log_prob(rollout.actions) - rollout.logps  # type: ignore[no-untyped-call]
        ratio = moved.exp()
        limited = ratio if self.unclipped else ratio.clamp(1 - self.clip_range, 1 + self.clip_range)
        gain = torch.minimum(ratio * advantages, limited * advantages).mean()
        value_loss = (self.critic(rollout.states[:-1])[..., 0] - returns).square().mean()
        entropy = policy.entropy().mean()  # type: ignore[no-untyped-call]
        loss = -gain + self.vf_coef * value_loss - self.ent_coef * entropy
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.nets.parameters(), self.max_grad_norm)
        optimizer.step()
        far = ((ratio - 1).abs() > self.clip_range).float().mean()
        terms = {"loss": loss, "policy_loss": -gain, "value_loss": value_loss, "entropy": entropy, "grad_norm": norm}
        terms |= {"approx_kl": ((ratio - 1) - moved).mean(), "clip_fraction": far, "ratio_max": ratio.max()}
        return {name: float(term.detach()) for name, term in terms.items()}
