"""A variational autoencoder on pictures and a diffusion denoiser on points."""

import torch
from torch import nn

from benchmarks.loops.vision import data
from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.task import Batch, Task
from benchmarks.loops.vision.tasks.layers import mlp

Parts = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class VAE(nn.Module):
    """MLP encoder and decoder with a Gaussian code (Kingma & Welling 2014)."""

    def __init__(self, code: int = 8, hidden: int = 128) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(256, 2 * code, hidden=hidden, depth=1), mlp(code, 256, hidden=hidden, depth=1)

    def forward(self, x: torch.Tensor) -> Parts:
        """Reconstruction logits (n, 256), mean and log variance of the code."""
        mean, log_var = self.encoder(x.flatten(1)).chunk(2, dim=1)
        return self.decoder(mean + (0.5 * log_var).exp() * torch.randn_like(mean)), mean, log_var


def elbo_parts(parts: Parts, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Reconstruction cross-entropy and KL to the standard normal, both in nats per picture."""
    logits, mean, log_var = parts
    target = batch[-1].flatten(1)
    reconstruction = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(1).mean()
    kl = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(1).mean()
    return reconstruction, kl


def vae(config: Config) -> Task:
    """Codes for the shapes' masks; loss is the negative evidence lower bound."""
    options = dict(config.model)
    beta = options.pop("beta", 1.0)
    train, val = (data.shapes(n, seed=config.seed + k, noise=0.0)[1] for k, n in ((0, 960), (1000, 256)))

    def forward(model: nn.Module, batch: Batch) -> Parts:
        parts: Parts = model(batch[0])
        return parts

    def negative_elbo(parts: Parts, batch: Batch) -> torch.Tensor:
        reconstruction, kl = elbo_parts(parts, batch)
        loss: torch.Tensor = reconstruction + beta * kl
        return loss

    def score(parts: Parts, batch: Batch) -> dict[str, float]:
        reconstruction, kl = elbo_parts(parts, batch)
        return {"recon": reconstruction.item(), "kl": kl.item()}

    return Task(VAE(**options), [train], [val], forward, negative_elbo, score)


def noised(model: nn.Module, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The noise put on the points at a random time of a cosine schedule, as foreseen by the model and as it was."""
    x = batch[0]
    time, noise = torch.rand(len(x), 1), torch.randn_like(x)
    keep = torch.cos(0.5 * torch.pi * 0.98 * time + 0.01)
    mixed = keep * x + (1 - keep.square()).sqrt() * noise
    features = torch.cat([mixed, time, torch.sin(6.28 * time), torch.cos(6.28 * time)], dim=1)
    return model(features), noise


def denoiser(config: Config) -> Task:
    """Noise prediction (Ho et al. 2020) on two moons; the loss is a mean square of unit-variance noise."""
    train, val = (data.moons(n, seed=config.seed + k) for k, n in ((0, 2048), (1000, 512)))

    def mse(pair: tuple[torch.Tensor, torch.Tensor], _batch: Batch) -> torch.Tensor:
        return nn.functional.mse_loss(*pair)

    return Task(mlp(5, 2, **({"hidden": 64, "depth": 3} | config.model)), [train], [val], noised, mse, lambda *_: {})
