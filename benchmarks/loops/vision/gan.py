"""A generative adversarial network on a ring of Gaussians, with a loop of its own."""

from collections.abc import Callable

import torch
from torch import nn

from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.loggers.base import Logger, Row
from benchmarks.loops.vision.tasks.layers import mlp
from benchmarks.loops.vision.trainer import schedule_factor

STEPS = 50
Loss = Callable[[torch.Tensor, float], torch.Tensor]


def bce(logits: torch.Tensor, target: float) -> torch.Tensor:
    """Binary cross-entropy of logits against one target for all."""
    return nn.functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))


def ring(count: int) -> torch.Tensor:
    """Points (n, 2) of eight narrow Gaussians on a circle."""
    angle = torch.randint(0, 8, (count,)) * 0.785
    return torch.stack([angle.cos(), angle.sin()], dim=1) * 1.5 + 0.08 * torch.randn(count, 2)


class Gan:
    """Non-saturating GAN (Goodfellow et al. 2014); an epoch is 50 steps."""

    def __init__(self, config: Config, log: Logger) -> None:
        self.config, self.log = config, log
        hidden = config.model.get("hidden", 48)
        self.generator, self.discriminator = mlp(4, 2, hidden=hidden), mlp(2, 1, hidden=hidden)
        self.loss: Loss = bce
        self.trained_by_g: nn.Module = self.generator
        self.zero_grad: Callable[[torch.optim.Optimizer], None] = lambda optimizer: optimizer.zero_grad()
        self.wanted = 1.0

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Adam with the configured betas."""
        return torch.optim.Adam(model.parameters(), self.config.lr, betas=self.config.betas)

    def update(self, optimizer: torch.optim.Optimizer, loss: torch.Tensor, model: nn.Module) -> float:
        """One update; returns the model's gradient norm."""
        self.zero_grad(optimizer)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(model.parameters(), self.config.grad_clip or float("inf"))
        optimizer.step()
        return float(norm)

    def covered(self) -> float:
        """How many of the eight Gaussians hold at least 2% of the generated points."""
        with torch.no_grad():
            points = self.generator(torch.randn(400, 4))
        mode = (torch.atan2(points[:, 1], points[:, 0]) / 0.785).round().long() % 8
        near = (points.norm(dim=1) - 1.5).abs() < 0.3
        return float((torch.bincount(mode[near], minlength=8) >= 8).sum())

    def fit(self) -> None:
        """Alternates one discriminator and one generator step."""
        config, step, total = self.config, 0, self.config.epochs * STEPS
        opt_g, opt_d = self.optimizer(self.trained_by_g), self.optimizer(self.discriminator)
        for epoch in range(config.epochs):
            sums = {"d_loss": 0.0, "g_loss": 0.0}
            for batch in range(STEPS):
                for optimizer in (opt_g, opt_d):
                    optimizer.param_groups[0]["lr"] = config.lr * schedule_factor(config, step, total)
                fake, real = self.generator(torch.randn(config.batch_size, 4)), ring(config.batch_size)
                d_loss = self.loss(self.discriminator(real), 1.0) + self.loss(self.discriminator(fake.detach()), 0.0)
                d_norm = self.update(opt_d, d_loss, self.discriminator)
                g_loss = self.loss(self.discriminator(fake), self.wanted)
                g_norm = self.update(opt_g, g_loss, self.generator)
                step += 1
                row: Row = {
                    "epoch": epoch,
                    "batch": batch,
                    "step": step,
                    "lr": opt_g.param_groups[0]["lr"],
                    "time": 0.0,
                }
                row |= {"d_loss": d_loss.item(), "g_loss": g_loss.item(), "d_grad_norm": d_norm, "g_grad_norm": g_norm}
                sums = {name: total + row[name] / STEPS for name, total in sums.items()}
                if step % config.log_every == 0:
                    self.log.step(row | {"loss": row["g_loss"], "data": 0.0, "mem": 0.0})
            means = {f"train_{name}": value for name, value in sums.items()}
            self.log.epoch(
                {"epoch": epoch, "step": step}
                | means
                | {"val_modes": self.covered(), "lr": config.lr, "epoch_time": 0.5}
            )
