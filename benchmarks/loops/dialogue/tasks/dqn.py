"""Deep Q-learning on a small grid with a goal, many copies side by side."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.dialogue.core import Record


@dataclass
class DqnOptions:
    """Settings of Q-learning; all after `watch` are faults or traps."""

    steps: int = 800
    lr: float = 2e-3
    gamma: float = 0.95
    side: int = 5
    sync: int = 50
    eps_end: float = 0.05
    eps_steps: int = 400
    batch: int = 64
    limit: int = 30
    watch: tuple[str, ...] = ("q", "eps", "ep_len")
    log_every: int = 25
    eval_every: int = 100
    double: bool = True
    step_cost: float = 0.01
    fixed_start: bool = False
    reward_scale: float = 1.0
    no_reward: bool = False
    ignore_done: bool = False
    learn: bool = True
    forget_at: int = 0
    eps_start: float = 1.0
    bait: float = 0.0
    max_norm: float = 10.0


class Grid:
    """Copies of a grid; the goal is in one corner, a small bait may be in another."""

    def __init__(self, o: DqnOptions, count: int, rng: np.random.Generator) -> None:
        self.o, self.n, self.rng = o, count, rng
        self.at = np.zeros((count, 2), dtype=np.int64)
        self.age = np.zeros(count, dtype=np.int64)
        self.sum = np.zeros(count)
        self.finished: list[tuple[float, int, bool]] = []
        self.reset(np.ones(count, dtype=bool))

    def reset(self, which: np.ndarray) -> None:
        """Put the marked copies back to a start."""
        count = int(which.sum())
        self.at[which] = 0 if self.o.fixed_start else self.rng.integers(0, self.o.side - 1, size=(count, 2))
        self.age[which], self.sum[which] = 0, 0.0

    def state(self) -> Tensor:
        """One-hot rows and columns."""
        eye = torch.eye(self.o.side)
        return torch.cat([eye[torch.from_numpy(self.at[:, 0])], eye[torch.from_numpy(self.at[:, 1])]], 1)

    def step(self, action: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Move all copies; gives reward, end of episode, and the state before any reset."""
        move = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])[action]
        self.at = np.clip(self.at + move, 0, self.o.side - 1)
        self.age += 1
        goal = (self.at == self.o.side - 1).all(1)
        bait = (self.at[:, 0] == 0) & (self.at[:, 1] == 1) if self.o.bait else np.zeros(self.n, dtype=bool)
        reward = goal * 1.0 - self.o.step_cost + bait * self.o.bait
        reward = reward * 0 if self.o.no_reward else reward * self.o.reward_scale
        self.sum += reward
        after = self.state()
        over = goal | bait | (self.age >= self.o.limit)
        for i in np.flatnonzero(over):
            self.finished.append((float(self.sum[i]), int(self.age[i]), bool(goal[i])))
        self.reset(over)
        return torch.tensor(reward, dtype=torch.float32), torch.tensor((goal | bait).astype(np.float32)), after


def train(o: DqnOptions, seed: int, rec: Record) -> None:
    """Train a Q-network by `o` and note everything in `rec`."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    env, test = Grid(o, 16, rng), Grid(o, 16, rng)
    net = nn.Sequential(nn.Linear(2 * o.side, 64), nn.ReLU(), nn.Linear(64, 4))
    target = copy.deepcopy(net)
    opt = torch.optim.Adam(net.parameters(), lr=o.lr)
    memory: list[tuple[Tensor, ...]] = []
    for step in range(o.steps):
        if o.forget_at and step == o.forget_at:
            rec.event(step, f"restored from ckpt_{step}.pt")
            memory, opt = [], torch.optim.Adam(net.parameters(), lr=o.lr)
            target = nn.Sequential(nn.Linear(2 * o.side, 64), nn.ReLU(), nn.Linear(64, 4))
        begun = step - o.forget_at if o.forget_at and step >= o.forget_at else step
        eps = o.eps_end + (o.eps_start - o.eps_end) * max(0.0, 1 - begun / max(o.eps_steps, 1))
        state = env.state()
        with torch.no_grad():
            best = net(state).argmax(1).numpy()
        action = np.where(rng.random(16) < eps, rng.integers(0, 4, 16), best)
        reward, done, after = env.step(action)
        memory.append((state, torch.from_numpy(action), reward, done, after))
        memory = memory[-1000:]
        loss, q, norm = _learn(_Learner(net, target, opt, rng), memory, o)
        if o.sync and step % o.sync == 0:
            target.load_state_dict(net.state_dict())
        if step % o.log_every == 0 or step == o.steps - 1:
            last = env.finished[-40:] or [(0.0, 0, False)]
            row = {
                "loss": loss,
                "ep_rew": float(np.mean([x[0] for x in last])),
                "ep_len": float(np.mean([x[1] for x in last])),
                "q": q,
                "eps": eps,
                "buffer": len(memory) * 16,
                "gnorm": norm,
                "success": float(np.mean([x[2] for x in last])),
                "lr": o.lr,
            }
            rec.train(step, {k: v for k, v in row.items() if k in {"loss", "ep_rew", *o.watch}})
        if o.eval_every and (step + 1) % o.eval_every == 0:
            rec.eval(step + 1, _test(net, test, o))


def _test(net: nn.Module, env: Grid, o: DqnOptions) -> dict[str, float]:
    env.reset(np.ones(env.n, dtype=bool))
    env.finished = []
    for _ in range(o.limit):
        with torch.no_grad():
            env.step(net(env.state()).argmax(1).numpy())
    return {
        "ep_rew": float(np.mean([x[0] for x in env.finished])),
        "success": float(np.mean([x[2] for x in env.finished])),
    }


@dataclass
class _Learner:
    net: nn.Module
    target: nn.Module
    opt: torch.optim.Optimizer
    rng: np.random.Generator


def _learn(who: _Learner, memory: list[tuple[Tensor, ...]], o: DqnOptions) -> tuple[float, float, float]:
    picks = [memory[i] for i in who.rng.integers(0, len(memory), size=max(o.batch // 16, 1))]
    state, action, reward, done, after = (torch.cat(parts) for parts in zip(*picks, strict=True))
    with torch.no_grad():
        follow = who.target if o.sync else who.net
        choice = (who.net if o.double else follow)(after).argmax(1, keepdim=True)
        future = follow(after).gather(1, choice)[:, 0]
        wanted = reward + o.gamma * future * (1 if o.ignore_done else 1 - done)
    q = who.net(state).gather(1, action[:, None])[:, 0]
    loss = functional.mse_loss(q, wanted)
    who.opt.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    norm = float(torch.nn.utils.clip_grad_norm_(who.net.parameters(), o.max_norm))
    if o.learn:
        who.opt.step()
    return float(loss.detach()), float(q.detach().mean()), norm
