"""An actor-critic on a small grid world, with a loop of its own."""

from collections.abc import Callable

import torch
from torch import nn

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.loggers.base import Logger, Row
from benchmarks.loops.vision.tasks.layers import mlp

MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])
LIMIT = 30


class Gridworld:
    """Advantage actor-critic (Mnih et al. 2016) over `batch_size` walkers; an epoch is ten updates of 12 moves each.

    A walker starts at a corner region, gets 1 at the goal and -0.01 a move, and gives up after 30 moves.
    """

    def __init__(self, config: Config, log: Logger) -> None:
        self.config, self.log = config, log
        self.side = config.data.get("side", 5)
        self.gamma, self.entropy = config.data.get("gamma", 0.95), config.model.get("entropy_coef", 0.01)
        self.policy, self.critic = mlp(2, 4, hidden=32, act="tanh"), mlp(2, 1, hidden=32, act="tanh")
        self.reward: Callable[[torch.Tensor], torch.Tensor] = lambda arrived: arrived - 0.01
        self.value_scale = 1.0
        self.place = torch.zeros(config.batch_size, 2, dtype=torch.long)
        self.age = torch.zeros(config.batch_size)
        self.score = torch.zeros(config.batch_size)
        self.ended: list[tuple[float, float]] = [(-0.01 * LIMIT, LIMIT)]

    def seen(self) -> torch.Tensor:
        """What the networks see: the place, about standardised."""
        seen: torch.Tensor = self.place.float() / (self.side - 1) * 2 - 1
        return seen

    def move(self, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Moves all walkers; rewards and ends of episodes (n)."""
        self.place = (self.place + MOVES[action]).clamp(0, self.side - 1)
        arrived = (self.place == self.side - 1).all(1).float()
        reward = self.reward(arrived)
        self.age, self.score = self.age + 1, self.score + reward
        done = (arrived > 0) | (self.age >= LIMIT)
        self.ended = (self.ended + list(zip(self.score[done].tolist(), self.age[done].tolist(), strict=True)))[-64:]
        self.place[done] = torch.randint(0, max(1, self.side // 2), (int(done.sum()), 2))
        self.age[done], self.score[done] = 0, 0
        return reward, done.float()

    def rollout(self) -> tuple[torch.Tensor, ...]:
        """Log-probabilities, entropies, values and returns (12, n)."""
        parts: list[tuple[torch.Tensor, ...]] = []
        for _ in range(12):
            seen = self.seen()
            policy = torch.distributions.Categorical(logits=self.policy(seen))
            action = policy.sample()  # type: ignore[no-untyped-call]
            value = self.critic(seen).squeeze(1)
            log_prob, entropy = policy.log_prob(action), policy.entropy()  # type: ignore[no-untyped-call]
            parts.append((log_prob, entropy, value, *self.move(action)))
        log_prob, entropy, value, reward, done = (torch.stack(column) for column in zip(*parts, strict=True))
        returns, following = torch.zeros_like(reward), self.critic(self.seen()).squeeze(1).detach()
        for time in reversed(range(12)):
            following = reward[time] + self.gamma * following * (1 - done[time])
            returns[time] = following
        return log_prob, entropy, value, returns

    def fit(self) -> None:
        """Updates policy and critic together after each rollout."""
        config, step = self.config, 0
        weights = [*self.policy.parameters(), *self.critic.parameters()]
        optimizer = torch.optim.Adam(weights, config.lr)
        for epoch in range(config.epochs):
            for batch in range(10):
                log_prob, entropy, value, returns = self.rollout()
                advantage = (returns - value).detach()
                policy_loss, value_loss = (
                    -(log_prob * advantage).mean(),
                    self.value_scale * (returns - value).square().mean(),
                )
                optimizer.zero_grad()
                (policy_loss + 0.5 * value_loss - self.entropy * entropy.mean()).backward()
                norm = nn.utils.clip_grad_norm_(weights, config.grad_clip or float("inf"))
                optimizer.step()
                step += 1
                rewards, lengths = zip(*self.ended, strict=True)
                explained = 1 - (returns - value).var() / (returns.var() + 1e-8)
                row: Row = {
                    "epoch": epoch,
                    "batch": batch,
                    "step": step,
                    "time": 0.0,
                    "data": 0.0,
                    "mem": 0.0,
                    "lr": config.lr,
                }
                row |= {"loss": policy_loss.item(), "policy_loss": policy_loss.item(), "value_loss": value_loss.item()}
                row |= {
                    "entropy": entropy.mean().item(),
                    "ep_rew_mean": sum(rewards) / len(rewards),
                    "grad_norm": float(norm),
                }
                row |= {"ep_len_mean": sum(lengths) / len(lengths), "explained_variance": explained.item()}
                if step % config.log_every == 0:
                    self.log.step(row)
