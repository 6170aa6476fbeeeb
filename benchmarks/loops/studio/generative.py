"""Diffusion on points, variational autoencoders on images, and a plain autoencoder."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import data
from benchmarks.loops.studio.core import Values
from benchmarks.loops.studio.loop import Batch, Bench

LEVELS = 50


def alphas() -> Tensor:
    """Cumulative signal shares of a cosine noise schedule."""
    t = torch.arange(LEVELS + 1).float() / LEVELS
    return torch.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2


class Denoiser(nn.Module):
    """Predicts the noise (or the velocity) from a noisy point and its level."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """The noise (or velocity) of points x (B,2) at levels t (B,)."""
        u = t.float()[:, None] / LEVELS
        feats = torch.cat([x, u, u * u, (6 * u).sin(), (6 * u).cos(), (12 * u).sin(), u * 0], 1)
        out: Tensor = self.net(feats)
        return out


def sample(model: nn.Module, count: int, kind: str) -> Tensor:
    """Deterministic sampling from noise."""
    a = alphas()
    x = torch.randn(count, 2)
    for t in range(LEVELS - 1, 0, -1):
        out = model(x, torch.full((count,), t))
        s, n = a[t].sqrt(), (1 - a[t]).sqrt()
        clean = (x - n * out) / s.clamp(min=0.05) if kind == "eps" else s * x - n * out
        clean = clean.clamp(-3, 3)
        eps = (x - s * clean) / n.clamp(min=0.05)
        x = a[t - 1].sqrt() * clean + (1 - a[t - 1]).sqrt() * eps
    return x


def distance(x: Tensor, y: Tensor) -> float:
    """Sliced distance of two point sets."""
    g = data.gen(3)
    way = functional.normalize(torch.randn(2, 16, generator=g), dim=0)
    return ((x @ way).sort(0).values - (y @ way).sort(0).values).abs().mean().item()


def diffusion(seed: int, kind: str = "eps", *, sample_kind: str | None = None) -> Bench:
    """A ring of Gaussians learned by denoising; samples are judged by a sliced distance."""
    torch.manual_seed(seed)
    a = alphas()

    def target(x: Tensor, noise: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        s, n = a[t].sqrt()[:, None], (1 - a[t]).sqrt()[:, None]
        return s * x + n * noise, noise if kind == "eps" else s * noise - n * x

    def loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        t = torch.randint(1, LEVELS, (len(batch[0]),))
        noisy, want = target(batch[0], torch.randn_like(batch[0]), t)
        return {"loss": functional.mse_loss(model(noisy, t), want)}

    def metrics(model: nn.Module, batch: Batch) -> Values:
        g = data.gen(11)
        t = torch.randint(1, LEVELS, (len(batch[0]),), generator=g)
        noisy, want = target(batch[0], torch.randn(batch[0].shape, generator=g), t)
        made = sample(model, 400, sample_kind or kind)
        return {"loss": functional.mse_loss(model(noisy, t), want).item(), "swd": distance(made, batch[0][:400])}

    return Bench(
        Denoiser(),
        (data.ring(2000, seed, 4),),
        {"val": (data.ring(400, seed + 9, 4),)},
        loss,
        metrics,
        {"model": "denoiser_mlp", "prediction_type": kind, "num_timesteps": LEVELS},
    )


class VAE(nn.Module):
    """A small VAE of 12x12 images."""

    def __init__(self, code: int = 6, width: int = 64) -> None:
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(144, width), nn.ReLU(), nn.Linear(width, 2 * code))
        self.dec = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, 144))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Reconstruction, mean and log-variance."""
        mu, logvar = self.enc(x.flatten(1)).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def vae(
    seed: int,
    *,
    beta: Callable[[int], float] = lambda _step: 1.0,
    show_beta: bool = False,
    variance: Callable[[Tensor], Tensor] = torch.exp,
) -> Bench:
    """A VAE on patterns; ``beta`` is the weight of the KL term by step."""
    torch.manual_seed(seed)
    clock = [0]

    def terms(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        x = batch[0].flatten(1)
        y, mu, logvar = model(batch[0])
        rec = ((y - x) ** 2).sum(1).mean() / (2 * 0.3)
        kl = (0.5 * (mu**2 + variance(logvar) - 1 - logvar)).sum(1).mean()
        return rec, kl

    def loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        rec, kl = terms(model, batch)
        weight = beta(clock[0])
        clock[0] += 1
        out = {"loss": rec + weight * kl, "recon": rec, "kl": kl}
        return out | {"beta": torch.tensor(weight)} if show_beta else out

    def metrics(model: nn.Module, batch: Batch) -> Values:
        rec, kl = terms(model, batch)
        return {"loss": (rec + beta(clock[0]) * kl).item(), "recon": rec.item(), "kl": kl.item()}

    x, _ = data.images(1000, 10, seed, 0.3)
    ex, _ = data.images(300, 10, seed + 5000, 0.3)
    return Bench(
        VAE(),
        (x,),
        {"val": (ex,)},
        loss,
        metrics,
        {"model": "vae", "latent_dim": 6, "hidden": 64},
    )
