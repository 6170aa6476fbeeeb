"""A GAN on a ring of Gaussians, with the balance of the two networks as a knob."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.loops.studio import data
from benchmarks.loops.studio.core import Record
from benchmarks.loops.studio.generative import distance


def gan(
    seed: int,
    *,
    lr_g: float = 1e-3,
    lr_d: float = 1e-3,
    steps: int = 800,
    d_steps: int = 1,
    width_g: int = 48,
    width_d: int = 48,
    log_every: int = 25,
    saturating: bool = False,
    spectral: bool = False,
    noise: float = 0.15,
    freeze_g: bool = False,
) -> Record:
    """Alternate updates of both networks; logs both losses and the scores of the discriminator."""
    torch.manual_seed(seed)
    real = data.ring(4000, seed)
    gen = nn.Sequential(nn.Linear(4, width_g), nn.ReLU(), nn.Linear(width_g, width_g), nn.ReLU(), nn.Linear(width_g, 2))
    layers: list[nn.Module] = [nn.Linear(2, width_d), nn.Linear(width_d, width_d), nn.Linear(width_d, 1)]
    if spectral:
        layers = [nn.utils.parametrizations.spectral_norm(m) for m in layers]
    dis = nn.Sequential(layers[0], nn.LeakyReLU(0.2), layers[1], nn.LeakyReLU(0.2), layers[2])
    og = torch.optim.Adam(gen.parameters(), lr=lr_g, betas=(0.5, 0.999))
    od = torch.optim.Adam(dis.parameters(), lr=lr_d, betas=(0.5, 0.999))
    rec = Record(
        config={
            "model": "gan_mlp",
            "lr_g": lr_g,
            "lr_d": lr_d,
            "batch_size": 128,
            "n_critic": d_steps,
            "z_dim": 4,
            "iterations": steps,
            "seed": seed,
            "instance_noise": noise,
        }
    )
    rec.epochs, rec.per_epoch = 1, steps
    one, zero = torch.ones(128, 1), torch.zeros(128, 1)
    bce = functional.binary_cross_entropy_with_logits
    for step in range(1, steps + 1):
        for _ in range(d_steps):
            pick = real[torch.randint(4000, (128,))]
            pick = pick + noise * torch.randn_like(pick)
            fake = gen(torch.randn(128, 4)).detach()
            fake = fake + noise * torch.randn_like(fake)
            dr, df = dis(pick), dis(fake)
            loss_d = 0.5 * (bce(dr, one) + bce(df, zero))
            od.zero_grad()
            loss_d.backward()  # type: ignore[no-untyped-call]
            od.step()
        made = gen(torch.randn(128, 4))
        score = dis(made + noise * torch.randn_like(made))
        loss_g = -bce(score, zero) if saturating else bce(score, one)
        og.zero_grad()
        loss_g.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.get_total_norm([p.grad for p in gen.parameters() if p.grad is not None])
        if not freeze_g:
            og.step()
        rec.clock += 0.05
        if step % log_every == 0:
            rec.log(
                "train",
                step,
                step / steps,
                {
                    "loss_d": loss_d.item(),
                    "loss_g": loss_g.item(),
                    "d_real": dr.sigmoid().mean().item(),
                    "d_fake": df.sigmoid().mean().item(),
                    "grad_norm_g": float(norm),
                },
            )
        if step % (log_every * 8) == 0:
            with torch.no_grad():
                swd = distance(gen(torch.randn(1000, 4)), real[:1000])
            rec.log("val", step, step / steps, {"swd": swd})
    return rec
