"""A DQN agent and a soft actor-critic agent on tiny environments."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.language.agents import Corridor, Pole
from benchmarks.loops.language.rl_writers import RlWriter
from benchmarks.loops.language.task import Record


@dataclass(frozen=True)
class DqnConfig:
    """What the author of the DQN sets."""

    env_id: str = "Corridor-v0"
    learning_rate: float = 1e-3
    num_envs: int = 8
    total_iterations: int = 700
    buffer_size: int = 8000
    gamma: float = 0.97
    target_network_frequency: int = 50
    batch_size: int = 64
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.5
    learning_starts: int = 40
    seed: int = 1


@dataclass(frozen=True)
class DqnPlant:
    """What is wrong in the code."""

    no_target: bool = False
    length: int = 8
    reward_scale: float = 1.0
    no_terminal: bool = False
    reward_zero: bool = False


class Memory:
    """A ring of transitions."""

    def __init__(self, size: int) -> None:
        self.size, self.rows = size, list[tuple[Tensor, ...]]()
        self.next = 0

    def add(self, row: tuple[Tensor, ...]) -> None:
        """Store the transitions of all copies of the environment."""
        if len(self.rows) < self.size:
            self.rows.append(row)
        else:
            self.rows[self.next] = row
        self.next = (self.next + 1) % self.size

    def draw(self, count: int, draw: np.random.Generator) -> tuple[Tensor, ...]:
        """Random transitions: each part (count, ...)."""
        picks = [self.rows[i] for i in draw.integers(0, len(self.rows), count)]
        return tuple(torch.cat([row[part] for row in picks]) for part in range(len(picks[0])))


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    """Two hidden layers of 32."""
    return nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outputs))


class Dqn:
    """Q-learning with a replay buffer."""

    def __init__(self, c: DqnConfig, plant: DqnPlant) -> None:
        torch.manual_seed(c.seed)
        self.c, self.plant, self.rng = c, plant, np.random.default_rng(c.seed)
        self.env: Corridor | Pole = (
            Corridor(c.num_envs, c.seed, length=plant.length)
            if c.env_id.startswith("Corridor")
            else Pole(c.num_envs, c.seed)
        )
        self.net = mlp(self.env.observation, self.env.actions)
        self.target = self.net if plant.no_target else copy.deepcopy(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=c.learning_rate)
        self.memory = Memory(c.buffer_size // c.num_envs)
        self.running, self.returns = np.zeros(c.num_envs), list[float]()

    def epsilon(self, step: int) -> float:
        """Linear fall over the exploration part."""
        part = min(1.0, step / max(1.0, self.c.exploration_fraction * self.c.total_iterations))
        return self.c.start_e + part * (self.c.end_e - self.c.start_e)

    def act(self, step: int) -> None:
        """One step of all copies, stored."""
        before = torch.as_tensor(self.env.observe())
        with torch.no_grad():
            action = self.net(before).argmax(-1).numpy()
        chance = self.rng.random(len(action)) < self.epsilon(step)
        action = np.where(chance, self.rng.integers(0, self.env.actions, len(action)), action)
        reward, over, _ = self.env.step(action)
        if self.plant.reward_zero:
            reward = reward * 0
        self.running += reward
        self.returns += self.running[over].tolist()
        self.running[over] = 0
        after, scaled = torch.as_tensor(self.env.observe()), torch.as_tensor(reward * self.plant.reward_scale)
        self.memory.add((before, torch.as_tensor(action), scaled, torch.as_tensor(over).float(), after))

    def learn(self) -> Record:
        """One step of the optimizer."""
        before, action, reward, over, after = self.memory.draw(self.c.batch_size // self.c.num_envs, self.rng)
        with torch.no_grad():
            best = self.target(after).amax(-1)
            goal = reward + self.c.gamma * best * (1.0 if self.plant.no_terminal else 1 - over)
        value = self.net(before).gather(1, action[:, None])[:, 0]
        loss = functional.mse_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return {"losses/td_loss": loss.item(), "losses/q_values": value.mean().item()}

    def train(self, log: RlWriter) -> None:
        """All iterations, logged every 15."""
        log.start(vars(self.c))
        for step in range(self.c.total_iterations):
            self.act(step)
            if step < self.c.learning_starts:
                continue
            record = self.learn()
            if step % self.c.target_network_frequency == 0 and not self.plant.no_target:
                self.target.load_state_dict(self.net.state_dict())
            if step % 15 == 0:
                record["charts/epsilon"] = self.epsilon(step)
                if self.returns:
                    record["charts/episodic_return"] = float(np.mean(self.returns[-20:]))
                log.row(step * self.c.num_envs, record)
        log.close()


@dataclass(frozen=True)
class SacConfig:
    """What the author of the soft actor-critic sets."""

    env_id: str = "PointMass-v0"
    policy_lr: float = 1e-3
    q_lr: float = 1e-3
    alpha: float = 0.05
    autotune: bool = False
    tau: float = 0.02
    gamma: float = 0.97
    batch_size: int = 64
    total_iterations: int = 450
    seed: int = 1


@dataclass(frozen=True)
class SacPlant:
    """What is wrong in the code."""

    single_critic: bool = False
    reward_scale: float = 1.0
    no_detach: bool = False
    entropy_sign: float = 1.0
    no_terminal: bool = False


class Sac:
    """Soft actor-critic for a point that must go to the origin of a line by pushes in [-1, 1]."""

    def __init__(self, c: SacConfig, plant: SacPlant) -> None:
        torch.manual_seed(c.seed)
        self.c, self.plant, self.rng = c, plant, np.random.default_rng(c.seed)
        self.actor, self.q1, self.q2 = mlp(2, 2), mlp(3, 1), mlp(3, 1)
        self.t1, self.t2 = copy.deepcopy(self.q1), copy.deepcopy(self.q2)
        self.q_opt = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()], lr=c.q_lr)
        self.a_opt = torch.optim.Adam(self.actor.parameters(), lr=c.policy_lr)
        self.memory, self.state, self.age = Memory(1000), self.start(8), np.zeros(8)
        self.running, self.returns = np.zeros(8), list[float]()

    def start(self, count: int) -> np.ndarray:
        """Places in [-2, 2] at rest: (count, 2)."""
        return np.stack([self.rng.uniform(-2, 2, count), np.zeros(count)], 1).astype(np.float32)

    def sample(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Squashed Gaussian actions (rows, 1) and their log-probabilities (rows,)."""
        mean, log_std = self.actor(obs).chunk(2, -1)
        chance = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = chance.rsample()
        action = raw.tanh()
        return action, (chance.log_prob(raw) - torch.log(1 - action**2 + 1e-6))[:, 0]  # type: ignore[no-untyped-call]

    def act(self) -> None:
        """One step of the eight points."""
        before = torch.as_tensor(self.state.copy())
        with torch.no_grad():
            action = self.sample(before)[0]
        push = action[:, 0].numpy()
        self.state[:, 1] = 0.8 * self.state[:, 1] + 0.3 * push
        self.state[:, 0] = np.clip(self.state[:, 0] + 0.3 * self.state[:, 1], -3, 3)
        reward = -(self.state[:, 0] ** 2) - 0.05 * push**2
        self.age += 1
        over = self.age >= 25 + np.arange(8)
        self.running += reward
        self.returns += self.running[over].tolist()
        after = torch.as_tensor(self.state.copy())
        self.state[over] = self.start(int(over.sum()))
        self.age[over] = self.running[over] = 0
        self.memory.add((before, action, torch.as_tensor(reward.astype(np.float32)) * self.plant.reward_scale, after))

    def critics(self, batch: tuple[Tensor, ...]) -> Record:
        """One step of both critics."""
        before, action, reward, after = batch
        with torch.no_grad():
            follow, logp = self.sample(after)
            pair = torch.cat([after, follow], 1)
            value = self.t1(pair) if self.plant.single_critic else torch.minimum(self.t1(pair), self.t2(pair))
            goal = reward + self.c.gamma * (value[:, 0] - self.plant.entropy_sign * self.c.alpha * logp)
        pair = torch.cat([before, action], 1)
        one, two = self.q1(pair)[:, 0], self.q2(pair)[:, 0]
        loss = functional.mse_loss(one, goal) + functional.mse_loss(two, goal)
        self.q_opt.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.q_opt.step()
        return {"losses/qf_loss": loss.item(), "losses/qf1_values": one.mean().item()}

    def policy(self, before: Tensor) -> Record:
        """One step of the actor."""
        action, logp = self.sample(before)
        pair = torch.cat([before, action], 1)
        best = torch.minimum(self.q1(pair), self.q2(pair))[:, 0]
        loss = (self.plant.entropy_sign * self.c.alpha * logp - best).mean()
        self.a_opt.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.a_opt.step()
        return {"losses/actor_loss": loss.item(), "losses/entropy": -logp.mean().item(), "losses/alpha": self.c.alpha}

    def train(self, log: RlWriter) -> None:
        """All iterations, logged every 15."""
        log.start(vars(self.c))
        for step in range(self.c.total_iterations):
            self.act()
            if step < 30:
                continue
            batch = self.memory.draw(self.c.batch_size // 8, self.rng)
            record = self.critics(batch) | self.policy(batch[0])
            with torch.no_grad():
                for slow, fast in ((self.t1, self.q1), (self.t2, self.q2)):
                    for a, b in zip(slow.parameters(), fast.parameters(), strict=True):
                        a.lerp_(b, self.c.tau)
            if step % 15 == 0:
                if self.returns:
                    record["charts/episodic_return"] = float(np.mean(self.returns[-16:]))
                log.row(step * 8, record)
        log.close()
