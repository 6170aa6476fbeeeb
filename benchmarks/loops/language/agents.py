"""Tiny environments and a PPO agent in one file, in CleanRL's manner."""

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.loops.language.rl_writers import RlWriter
from benchmarks.loops.language.task import Record

Array = np.ndarray


class Corridor:
    """Walk right to the end of a corridor: reward 1 there, a small cost per step. Parallel copies."""

    actions, observation = 3, 2

    def __init__(self, copies: int, seed: int, *, length: int = 8, cost: float = 0.01, goal: float = 1.0) -> None:
        self.length, self.cost, self.goal = length, cost, goal
        self.place, self.age = np.zeros(copies), np.zeros(copies)
        self.draw = np.random.default_rng(seed)

    def observe(self) -> Array:
        """Place and age, both in [0, 1]: (copies, 2)."""
        return np.stack([self.place / self.length, self.age / 40], 1).astype(np.float32)

    def step(self, action: Array) -> tuple[Array, Array, Array]:
        """Reward, whether the episode ended, and its length; ended copies start again."""
        slip = self.draw.random(len(action)) < 0.1
        move = np.where(slip, self.draw.integers(0, 3, len(action)), action) - 1
        self.place, self.age = np.clip(self.place + move, 0, self.length), self.age + 1
        arrived = self.place >= self.length
        over = arrived | (self.age >= 40)
        length = self.age.copy()
        self.place[over], self.age[over] = 0, 0
        return (arrived * self.goal - self.cost).astype(np.float32), over, length


class Pole:
    """The cart and pole of Barto, Sutton and Anderson (1983) with Euler steps of 0.02 s. Parallel copies."""

    actions, observation = 2, 4

    def __init__(self, copies: int, seed: int, *, limit: int = 200, scale: float = 1.0) -> None:
        self.draw, self.limit, self.scale = np.random.default_rng(seed), limit, scale
        self.state, self.age = self.draw.uniform(-0.05, 0.05, (copies, 4)), np.zeros(copies)

    def observe(self) -> Array:
        """Position, velocity, angle, angular velocity: (copies, 4)."""
        return self.state.astype(np.float32)

    def step(self, action: Array) -> tuple[Array, Array, Array]:
        """Reward 1 (times a scale) per step while the pole stands."""
        x, v, angle, spin = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        push = (force + 0.05 * spin**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        speed = push - 0.05 * turn * np.cos(angle) / 1.1
        self.state = np.stack([x + 0.02 * v, v + 0.02 * speed, angle + 0.02 * spin, spin + 0.02 * turn], 1)
        self.age += 1
        over = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21) | (self.age >= self.limit)
        length = self.age.copy()
        self.state[over] = self.draw.uniform(-0.05, 0.05, (int(over.sum()), 4))
        self.age[over] = 0
        return np.full(len(action), self.scale, np.float32), over, length


@dataclass(frozen=True)
class PpoConfig:
    """What the author sets."""

    env_id: str = "Pole-v0"
    learning_rate: float = 4e-3
    num_envs: int = 8
    num_steps: int = 64
    updates: int = 28
    gamma: float = 0.98
    gae_lambda: float = 0.95
    update_epochs: int = 4
    num_minibatches: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    anneal_lr: bool = True
    seed: int = 1


@dataclass(frozen=True)
class PpoPlant:
    """What is wrong in the code."""

    reward_scale: float = 1.0
    reward_constant: bool = False
    length: int = 8
    stale: int = 0
    bootstrap_done: bool = False
    greedy_bias: float = 0.0


class ActorCritic(nn.Module):
    """Two small networks with tanh."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(inputs, 32), nn.Tanh(), nn.Linear(32, actions))
        self.critic = nn.Sequential(nn.Linear(inputs, 32), nn.Tanh(), nn.Linear(32, 1))
        last = self.actor[-1]
        assert isinstance(last, nn.Linear)
        nn.init.orthogonal_(last.weight, 0.01)


class Ppo:
    """Proximal policy optimisation with generalised advantages."""

    def __init__(self, c: PpoConfig, plant: PpoPlant) -> None:
        torch.manual_seed(c.seed)
        self.c, self.plant = c, plant
        self.env: Corridor | Pole = (
            Pole(c.num_envs, c.seed)
            if c.env_id.startswith("Pole")
            else Corridor(c.num_envs, c.seed, length=plant.length)
        )
        self.net = ActorCritic(self.env.observation, self.env.actions)
        last = self.net.actor[-1]
        with torch.no_grad():
            last.bias[0] += plant.greedy_bias  # type: ignore[index, operator]
        self.old = ActorCritic(self.env.observation, self.env.actions)
        self.old.load_state_dict(self.net.state_dict())
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=c.learning_rate, eps=1e-5)
        self.running = np.zeros(c.num_envs)
        self.returns: list[float] = []
        self.lengths: list[float] = []

    def collect(self) -> dict[str, Tensor]:
        """A rollout of num_steps: tensors (steps, envs, ...)."""
        rows: dict[str, list[Tensor]] = {name: [] for name in ("obs", "act", "logp", "rew", "over", "val")}
        for _ in range(self.c.num_steps):
            obs = torch.as_tensor(self.env.observe())
            with torch.no_grad():
                chance = torch.distributions.Categorical(logits=self.old.actor(obs))
                act, val = chance.sample(), self.net.critic(obs)[:, 0]  # type: ignore[no-untyped-call]
            reward, over, length = self.env.step(act.numpy())
            if self.plant.reward_constant:
                reward = reward * 0 + 0.1
            self.track(reward, over, length)
            fed = torch.as_tensor(reward * self.plant.reward_scale)
            values = (obs, act, chance.log_prob(act), fed, torch.as_tensor(over).float(), val)  # type: ignore[no-untyped-call]
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
        return {name: torch.stack(values) for name, values in rows.items()}

    def track(self, reward: Array, over: Array, length: Array) -> None:
        """Keep the returns of ended episodes."""
        self.running += reward
        self.returns += self.running[over].tolist()
        self.lengths += length[over].tolist()
        self.running[over] = 0

    def advantages(self, data: dict[str, Tensor]) -> Tensor:
        """Generalised advantage estimates (steps, envs)."""
        with torch.no_grad():
            after = self.net.critic(torch.as_tensor(self.env.observe()))[:, 0]
        out, gain = torch.zeros_like(data["rew"]), torch.zeros(self.c.num_envs)
        for t in reversed(range(self.c.num_steps)):
            live = 1.0 if self.plant.bootstrap_done else 1 - data["over"][t]
            delta = data["rew"][t] + self.c.gamma * after * live - data["val"][t]
            gain = delta + self.c.gamma * self.c.gae_lambda * live * gain
            out[t], after = gain, data["val"][t]
        return out

    def minibatch(self, data: dict[str, Tensor], pick: Tensor) -> Record:
        """One step of the optimizer."""
        c = self.c
        chance = torch.distributions.Categorical(logits=self.net.actor(data["obs"][pick]))
        gap = chance.log_prob(data["act"][pick]) - data["logp"][pick]  # type: ignore[no-untyped-call]
        ratio, gain = gap.exp(), data["adv"][pick]
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        policy = -torch.minimum(ratio * gain, ratio.clamp(1 - c.clip_coef, 1 + c.clip_coef) * gain).mean()
        value = 0.5 * ((self.net.critic(data["obs"][pick])[:, 0] - data["ret"][pick]) ** 2).mean()
        entropy = chance.entropy().mean()  # type: ignore[no-untyped-call]
        self.optimizer.zero_grad()
        (policy + c.vf_coef * value - c.ent_coef * entropy).backward()
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), c.max_grad_norm or float("inf"))
        self.optimizer.step()
        return {
            "losses/value_loss": value.item(), "losses/policy_loss": policy.item(), "losses/entropy": entropy.item(),
            "losses/approx_kl": ((ratio - 1) - gap).mean().item(), "losses/grad_norm": float(norm),
            "losses/clipfrac": ((ratio - 1).abs() > c.clip_coef).float().mean().item(),
        }  # fmt: skip

    def update(self) -> Record:
        """A rollout and the epochs over it."""
        data = self.collect()
        data["adv"] = self.advantages(data)
        data["ret"] = data["adv"] + data["val"]
        flat = {name: value.flatten(0, 1) for name, value in data.items()}
        record: Record = {}
        for _ in range(self.c.update_epochs):
            for pick in torch.randperm(len(flat["act"])).chunk(self.c.num_minibatches):
                record = self.minibatch(flat, pick)
        spread = flat["ret"].var()
        record["losses/explained_variance"] = float(1 - (flat["ret"] - flat["val"]).var() / (spread + 1e-8))
        return record

    def train(self, log: RlWriter) -> None:
        """All updates."""
        c = self.c
        log.start(vars(c))
        for number in range(c.updates):
            lr = c.learning_rate * (1 - number / c.updates if c.anneal_lr else 1.0)
            self.optimizer.param_groups[0]["lr"] = lr
            if not self.plant.stale or number % self.plant.stale == 0:
                self.old.load_state_dict(self.net.state_dict())
            begun = time.perf_counter()
            record = self.update() | {"charts/learning_rate": lr}
            recent, ages = self.returns[-30:], self.lengths[-30:]
            if recent:
                record |= {
                    "charts/episodic_return": float(np.mean(recent)),
                    "charts/episodic_length": float(np.mean(ages)),
                }
            record["charts/SPS"] = c.num_envs * c.num_steps / (time.perf_counter() - begun)
            log.row((number + 1) * c.num_envs * c.num_steps, record)
        log.close()
