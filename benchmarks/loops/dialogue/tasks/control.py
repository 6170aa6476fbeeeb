"""Actor and critic (PPO) on a point that shall stay at the origin, many copies side by side."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.loops.dialogue.core import Record


@dataclass
class ControlOptions:
    """Settings of PPO for control; all after `horizon` are faults or traps."""

    iters: int = 60
    lr: float = 2e-3
    critic_lr: float = 1e-2
    gamma: float = 0.9
    lam: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    epochs: int = 4
    envs: int = 32
    horizon: int = 16
    anneal: bool = False
    reward_scale: float = 0.1
    bootstrap_bug: bool = False
    max_norm: float = 1.0
    log_std: float = 0.0
    forget_at: int = 0
    obs_scale: float = 1.0
    obs_norm: bool = False
    stale: int = 0
    noise: float = 0.1


class _Agent(nn.Module):
    def __init__(self, o: ControlOptions) -> None:
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
        self.v = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((2,), o.log_std))

    def dist(self, obs: Tensor) -> torch.distributions.Normal:
        return torch.distributions.Normal(self.pi(obs), self.log_std.exp().clamp(1e-4, 20).expand(len(obs), 2))


class _Point:
    def __init__(self, count: int) -> None:
        self.x, self.age, self.total = torch.zeros(count, 4), torch.randint(0, 30, (count,)), torch.zeros(count)
        self.done_sums: list[float] = []
        self.x[:, :2] = torch.rand(count, 2) * 2 - 1

    def step(self, action: Tensor, noise: float) -> tuple[Tensor, Tensor]:
        a = action.clamp(-1, 1)
        self.x[:, 2:] = 0.8 * self.x[:, 2:] + 0.2 * a + noise * 0.05 * torch.randn_like(a)
        self.x[:, :2] = (self.x[:, :2] + self.x[:, 2:]).clamp(-3, 3)
        reward = -self.x[:, :2].norm(dim=1) - 0.05 * a.norm(dim=1)
        self.age += 1
        self.total += reward
        over = self.age >= 30
        self.done_sums += self.total[over].tolist()
        self.x[over] = 0
        self.x[over, :2] = torch.rand(int(over.sum()), 2) * 2 - 1
        self.age[over], self.total[over] = 0, 0
        return reward, over.float()


def train(o: ControlOptions, seed: int, rec: Record) -> None:
    """Train an agent by `o` and note everything in `rec`."""
    torch.manual_seed(seed)
    env, agent = _Point(o.envs), _Agent(o)
    groups = [
        {"params": [*agent.pi.parameters(), agent.log_std], "lr": o.lr},
        {"params": agent.v.parameters(), "lr": o.critic_lr or o.lr},
    ]
    opt = torch.optim.Adam(groups)
    mean, var = torch.zeros(4), torch.ones(4)
    old_data: list[tuple[Tensor, ...]] = []
    for it in range(o.iters):
        if o.forget_at and it == o.forget_at:
            rec.event(it, f"Loaded model from iteration {it}")
            mean, var = torch.zeros(4), torch.ones(4)
        if o.anneal:
            for group in opt.param_groups:
                group["lr"] = o.lr * (1 - it / o.iters)
        store: list[tuple[Tensor, ...]] = []
        for _ in range(o.horizon):
            raw = env.x.clone() * o.obs_scale
            if o.obs_norm:
                mean, var = 0.99 * mean + 0.01 * raw.mean(0), 0.99 * var + 0.01 * raw.var(0)
            obs = (raw - mean) / (var.sqrt() + 1e-6) if o.obs_norm else raw
            with torch.no_grad():
                dist = agent.dist(obs)
                action = dist.sample()  # type: ignore[no-untyped-call]
                reward, over = env.step(action, o.noise)
                logp = dist.log_prob(action).sum(1)  # type: ignore[no-untyped-call]
                store.append((obs, action, logp, reward * o.reward_scale, over, agent.v(obs)[:, 0]))
        data = _advantages(store, o)
        old_data = [*old_data, data][-(o.stale + 1) :]
        row = _update(agent, opt, old_data[0], o)
        sums = env.done_sums[-64:]
        row["ep_rew"] = sum(sums) / len(sums) if sums else float("nan")
        row["lr"] = opt.param_groups[0]["lr"]
        if sums:
            rec.train((it + 1) * o.envs * o.horizon, row)


def _advantages(store: list[tuple[Tensor, ...]], o: ControlOptions) -> tuple[Tensor, ...]:
    obs, action, logp, reward, over, value = (torch.stack(p) for p in zip(*store, strict=True))
    adv, last = torch.zeros_like(reward), torch.zeros(reward.shape[1])
    with torch.no_grad():
        following = value[-1]
        for t in range(o.horizon - 1, -1, -1):
            alive = 1 - over[t]
            delta = reward[t] + o.gamma * following * (1 if o.bootstrap_bug else alive) - value[t]
            last = delta + o.gamma * o.lam * last * alive
            adv[t], following = last, value[t]
    returns = adv + (2.0 * value if o.bootstrap_bug else value)
    return tuple(x.flatten(0, 1) for x in (obs, action, logp, adv, returns, value))


def _update(agent: _Agent, opt: torch.optim.Optimizer, data: tuple[Tensor, ...], o: ControlOptions) -> dict[str, float]:
    obs, action, logp, adv, returns, value = data
    ev = 1 - float((returns - value).var() / (returns.var() + 1e-8))
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    row: dict[str, float] = {}
    for _ in range(o.epochs):
        for part in torch.randperm(len(obs)).chunk(2):
            dist = agent.dist(obs[part])
            new = dist.log_prob(action[part]).sum(1)  # type: ignore[no-untyped-call]
            ratio = (new - logp[part]).exp()
            gain = torch.min(ratio * adv[part], ratio.clamp(1 - o.clip, 1 + o.clip) * adv[part]).mean()
            vloss = (agent.v(obs[part])[:, 0] - returns[part]).square().mean()
            entropy = dist.entropy().sum(1).mean()  # type: ignore[no-untyped-call]
            loss = -gain + 0.5 * vloss - o.entropy * entropy
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(agent.parameters(), o.max_norm or 1e9)
            opt.step()
            row = {
                "loss": float(loss.detach()),
                "ploss": float(-gain.detach()),
                "vloss": float(vloss.detach()),
                "entropy": float(entropy.detach()),
                "approx_kl": float((logp[part] - new.detach()).mean()),
                "clipfrac": float(((ratio - 1).abs() > o.clip).float().mean()),
                "ev": ev,
                "std": float(agent.log_std.detach().exp().mean()),
            }
    return row
