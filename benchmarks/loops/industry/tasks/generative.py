"""Baskets of customers by a variational autoencoder, and synthetic customers by a generator and a discriminator."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.trace import Trace

_ITEMS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Basket:
    """The settings of a run; a `ceiling` of 0 leaves the variance unbounded."""

    steps: int = 600
    batch: int = 64
    lr: float = 2e-3
    beta: float = 1.0
    anneal: int = 0
    latent: int = 6
    ceiling: float = 20.0
    every: int = 10
    eval_every: int = 50
    rows: int = 6000
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """Return the settings as a configuration would hold them."""
        names = ("steps", "lr", "beta", "latent", "seed")
        shown: dict[str, object] = {name: getattr(self, name) for name in names}
        return shown | {"model": "vae", "batch_size": self.batch, "kl_anneal_steps": self.anneal, "items": _ITEMS}


class Coder(nn.Module):
    """An encoder to a mean and a variance, and a decoder."""

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Linear(_ITEMS, 48), nn.ReLU(), nn.Linear(48, 2 * latent))
        self.up = nn.Sequential(nn.Linear(latent, 48), nn.ReLU(), nn.Linear(48, _ITEMS))

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the reconstruction, the means and the logarithms of the variances."""
        mean, spread = self.down(rows).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.up(code), mean, spread


def _baskets(count: int, seed: int, strength: float) -> Tensor:
    world = torch.Generator().manual_seed(19)
    mix = torch.randn(5, _ITEMS, generator=world) * strength
    draw = torch.Generator().manual_seed(seed)
    chance = torch.sigmoid(torch.randn(count, 5, generator=draw) @ mix - 1)
    return (torch.rand(count, _ITEMS, generator=draw) < chance).float()


def _parts(coder: Coder, rows: Tensor, ceiling: float) -> tuple[Tensor, Tensor]:
    out, mean, spread = coder(rows)
    if ceiling:
        spread = spread.clamp(max=ceiling)
    seen = functional.binary_cross_entropy_with_logits(out, rows, reduction="sum") / len(rows)
    return seen, 0.5 * (mean.pow(2) + spread.exp() - 1 - spread).sum(1).mean()


def baskets(basket: Basket, *, strength: float = 1.5, large: float = 1.0) -> Trace:
    """Train a variational autoencoder of baskets."""
    torch.manual_seed(basket.seed)
    trace = Trace(settings=basket.shown())
    train, valid = _baskets(basket.rows, 1 + basket.seed, strength) * large, _baskets(1000, 85, strength)
    coder = Coder(basket.latent)
    optimizer = torch.optim.Adam(coder.parameters(), lr=basket.lr)
    for step in range(1, basket.steps + 1):
        rows = train[torch.randint(0, basket.rows, (basket.batch,))]
        weight = basket.beta * min(1.0, step / basket.anneal) if basket.anneal else basket.beta
        seen, far = _parts(coder, rows.clamp(max=1) if large > 1 else rows, basket.ceiling)
        loss = seen + weight * far
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(coder.parameters(), 1e9)
        optimizer.step()
        if step % basket.every == 0 or step == 1:
            row = {"loss": float(loss), "recon": float(seen), "kl": float(far), "beta": weight, "gnorm": float(norm)}
            if step % basket.eval_every == 0:
                with torch.no_grad():
                    seen, far = _parts(coder, valid, basket.ceiling)
                row |= {"val_loss": float(seen + far), "val_recon": float(seen), "val_kl": float(far)}
            trace.log(step=step, lr=basket.lr, **row)
    return trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """The settings of a generator against a discriminator."""

    steps: int = 800
    batch: int = 64
    generator_lr: float = 1e-3
    discriminator_lr: float = 1e-3
    rounds: int = 1
    width: int = 32
    discriminator_width: int = 32
    far: float = 0.0
    every: int = 10
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """Return the settings as a configuration would hold them."""
        names = ("steps", "generator_lr", "discriminator_lr", "width", "discriminator_width", "seed")
        shown: dict[str, object] = {name: getattr(self, name) for name in names}
        return shown | {"model": "tabular_gan", "batch_size": self.batch, "d_steps": self.rounds}


def synthesis(duel: Duel) -> Trace:
    """Train a generator of synthetic customers."""
    torch.manual_seed(duel.seed)
    trace = Trace(settings=duel.shown())
    mix = torch.randn(8, 8, generator=torch.Generator().manual_seed(2)) * 0.6
    maker = nn.Sequential(nn.Linear(8, duel.width), nn.ReLU(), nn.Linear(duel.width, 8))
    judge = nn.Sequential(
        nn.Linear(8, duel.discriminator_width), nn.LeakyReLU(0.2), nn.Linear(duel.discriminator_width, 1)
    )
    makes = torch.optim.Adam(maker.parameters(), lr=duel.generator_lr, betas=(0.5, 0.999))
    judges = torch.optim.Adam(judge.parameters(), lr=duel.discriminator_lr, betas=(0.5, 0.999))
    for step in range(1, duel.steps + 1):
        row: dict[str, float] = {}
        for _ in range(duel.rounds):
            real = torch.tanh(torch.randn(duel.batch, 8) @ mix) + duel.far
            good, bad = judge(real), judge(maker(torch.randn(duel.batch, 8)).detach())
            loss = functional.softplus(-good).mean() + functional.softplus(bad).mean()
            judges.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            judges.step()
            row = {"d_loss": float(loss), "d_real": float(good.sigmoid().mean()), "d_fake": float(bad.sigmoid().mean())}
            row["d_acc"] = float(((good > 0).float().mean() + (bad < 0).float().mean()) / 2)
        out = judge(maker(torch.randn(duel.batch, 8)))
        cost = -functional.softplus(out).mean() if duel.far else functional.softplus(-out).mean()
        makes.zero_grad()
        cost.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(maker.parameters(), 1e9)
        makes.step()
        if step % duel.every == 0 or step == 1:
            trace.log(step=step, g_loss=float(cost), **row, g_grad_norm=float(norm))
    return trace
