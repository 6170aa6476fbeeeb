"""Prices by an actor and a critic: customers come, the actor picks a price level, the critic expects the revenue."""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from benchmarks.loops.industry.trace import Row, Trace

_CONTEXT = 8
_LEVELS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """The settings of a pricing run; `lag`, `ends` and `reward` are also what may be wrong with it."""

    updates: int = 400
    customers: int = 128
    lr: float = 3e-3
    critic_lr: float = 1e-2
    entropy_bonus: float = 0.01
    kl_coef: float = 0.0
    inner: int = 1
    clip: float = 0.2
    gamma: float = 0.0
    ends: bool = True
    lag: int = 0
    reward: str = "revenue"
    scale: float = 1.0
    greedy: float = 0.0
    every: int = 5
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """Return the settings as a configuration would hold them."""
        names = ("updates", "customers", "lr", "critic_lr", "entropy_bonus", "kl_coef", "gamma", "seed")
        shown: dict[str, object] = {"algorithm": "ppo", "ppo_epochs": self.inner, "clip_range": self.clip}
        return shown | {name: getattr(self, name) for name in names}


def _network(out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(_CONTEXT, 32), nn.Tanh(), nn.Linear(32, out))


def _revenue(shop: Shop, context: Tensor, level: Tensor, world: Tensor) -> Tensor:
    price = (level + 1) / _LEVELS
    afford = torch.sigmoid(context @ world)
    if shop.reward == "constant":
        return torch.zeros(len(level))
    if shop.reward == "rare":  # only one level of each pair of customer and price pays, and the first policy avoids it
        return ((level == _LEVELS - 1) & (afford > 0.9)).float() * 10
    bought = (torch.rand(len(level)) < torch.sigmoid(9 * (afford - price) + 1)).float()
    return price * bought * shop.scale


class _Pricing:
    """One run."""

    def __init__(self, shop: Shop) -> None:
        torch.manual_seed(shop.seed)
        self.shop, self.trace = shop, Trace(settings=shop.shown())
        self.actor, self.critic = _network(_LEVELS), _network(1)
        with torch.no_grad():
            self.actor[2].bias[0] += shop.greedy  # type: ignore[operator, index]
        self.first = copy.deepcopy(self.actor)
        self.past: deque[nn.Module] = deque([copy.deepcopy(self.actor)], maxlen=shop.lag + 1)
        self.world = torch.randn(_CONTEXT, generator=torch.Generator().manual_seed(12))
        self.optimizer = torch.optim.Adam(self.actor.parameters(), lr=shop.lr)
        self.critics = torch.optim.Adam(self.critic.parameters(), lr=shop.critic_lr)

    def run(self) -> Trace:
        """Train and log."""
        for update in range(1, self.shop.updates + 1):
            row = self._update()
            if update % self.shop.every == 0 or update == 1:
                self.trace.log(step=update, **row)
        return self.trace

    def _update(self) -> Row:
        context = torch.randn(self.shop.customers, _CONTEXT)
        with torch.no_grad():
            behind = Categorical(logits=self.past[0](context))
            level = behind.sample()  # type: ignore[no-untyped-call]
            before = behind.log_prob(level)  # type: ignore[no-untyped-call]
        reward = _revenue(self.shop, context, level, self.world)
        ahead = self.critic(torch.randn_like(context)).squeeze(1).detach()
        goes_on = (torch.rand(len(reward)) < 0.9).float() if self.shop.ends else torch.ones(len(reward))
        target = reward + self.shop.gamma * goes_on * ahead
        row: Row = {}
        for _ in range(self.shop.inner):
            row = self._learn(context, level, before, target)
        self.past.append(copy.deepcopy(self.actor))
        return {"reward": float(reward.mean()), "reward_std": float(reward.std()), **row}

    def _learn(self, context: Tensor, level: Tensor, before: Tensor, target: Tensor) -> Row:
        shop = self.shop
        value = self.critic(context).squeeze(1)
        value_loss = (value - target).pow(2).mean()
        self.critics.zero_grad()
        value_loss.backward()
        self.critics.step()
        gain = (target - value).detach()
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        policy = Categorical(logits=self.actor(context))
        ratio = (policy.log_prob(level) - before).exp()  # type: ignore[no-untyped-call]
        surrogate = -torch.minimum(ratio * gain, ratio.clamp(1 - shop.clip, 1 + shop.clip) * gain).mean()
        kl = torch.distributions.kl_divergence(policy, Categorical(logits=self.first(context).detach())).mean()
        entropy = policy.entropy().mean()  # type: ignore[no-untyped-call]
        loss = surrogate - shop.entropy_bonus * entropy + shop.kl_coef * kl
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.actor.parameters(), 1e9)
        self.optimizer.step()
        explained = 1 - (target - value).var() / (target.var() + 1e-8)
        drift = (before - policy.log_prob(level)).mean()  # type: ignore[no-untyped-call]
        return {
            "policy_loss": float(surrogate),
            "value_loss": float(value_loss),
            "value_mean": float(value.mean()),
            "explained_variance": float(explained),
            "entropy": float(entropy),
            "kl": float(kl),
            "approx_kl": float(drift),
            "ratio_max": float(ratio.max()),
            "clip_fraction": float(((ratio - 1).abs() > shop.clip).float().mean()),
            "gnorm": float(norm),
            "lr": shop.lr,
        }


def pricing(shop: Shop) -> Trace:
    """Train a pricing policy."""
    return _Pricing(shop).run()
