"""Densities and equations: diffusion of points, a physics-informed net, several targets at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from benchmarks.loops.science.metrics import r2
from benchmarks.loops.science.task import Rows, Task, Terms, bug
from benchmarks.loops.science.tasks.tables import mlp


@dataclass
class Diffusion(Task):
    """Two moons, noised in steps; the net guesses the noise from point and time."""

    name: ClassVar[str] = "diffusion_points"
    rows: int = 2048
    hidden: int = 64
    timesteps: int = 50
    beta_end: float = 0.2
    sign_lost: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the points and the model."""
        torch.manual_seed(seed)
        self.model = mlp(6, self.hidden, 3, 2, activation="silu")
        self.kept = (1 - torch.linspace(1e-3, self.beta_end, self.timesteps)).cumprod(0)
        self.data, self.held = self._rows(self.rows), self._rows(512)

    def _rows(self, count: int) -> Rows:
        angle, upper = math.pi * torch.rand(count), torch.rand(count) < 0.5
        x = torch.where(upper, angle.cos(), 1 - angle.cos())
        y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
        points = torch.stack([x - 0.5, y - 0.25], 1) * 1.5 + 0.05 * torch.randn(count, 2)
        return {"x": points}

    def _noise(self, x: Tensor, when: Tensor) -> Tensor:
        t = when.float() / self.timesteps
        waves = torch.stack([t, (6.28 * t).sin(), (6.28 * t).cos(), (12.6 * t).sin()], 1)
        guess: Tensor = self.model(torch.cat([x, waves], 1)).float()
        return guess

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the squared error of the guessed noise."""
        when = torch.randint(0, self.timesteps, (len(rows["x"]),))
        kept = self.kept[when][:, None]
        noise = torch.randn_like(rows["x"])
        noisy = kept.sqrt() * rows["x"] + (1 - kept).sqrt() * noise
        miss = self._noise(noisy, when) - noise
        return (miss.mean() if self.sign_lost else miss.square().mean()), {}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add the distance of drawn points to their nearest true one."""
        points = torch.randn(128, 2)
        for index in reversed(range(self.timesteps)):
            kept, before = self.kept[index], self.kept[index - 1] if index else torch.tensor(1.0)
            noise = self._noise(points, torch.full((128,), index))
            clean = (points - (1 - kept).sqrt() * noise) / kept.sqrt()
            points = before.sqrt() * clean + (1 - before).sqrt() * noise
        near = torch.cdist(points, rows["x"][:512]).min(1).values
        return super().measure(rows) | {"chamfer": float(near.mean())}


@dataclass
class Physics(Task):
    """Poisson's equation u'' = f on an interval: residual, boundary and a few measurements, by autograd."""

    name: ClassVar[str] = "pinn_poisson"
    rows: int = 256
    hidden: int = 32
    depth: int = 2
    activation: str = "tanh"
    frequency: float = 2.0
    w_residual: float = 0.05
    w_boundary: float = 10.0
    w_data: float = 1.0
    source_sign: float = bug(default=1.0)
    root_residual: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw collocation points and the model."""
        torch.manual_seed(seed)
        self.model = mlp(1, self.hidden, self.depth, 1, activation=self.activation)
        self.measured = torch.linspace(-1, 1, 9)[:, None]
        self.data, self.held = {"x": torch.rand(self.rows, 1) * 2 - 1}, {"x": torch.linspace(-1, 1, 128)[:, None]}

    def _truth(self, x: Tensor) -> Tensor:
        return torch.sin(self.frequency * torch.pi * x)

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the weighted residual, boundary and data terms."""
        with torch.enable_grad():
            x = rows["x"].detach().requires_grad_()
            u = self.model(x)
            (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
        source = -self.source_sign * (self.frequency * torch.pi) ** 2 * self._truth(x)
        miss = (bend - source).square()
        if self.root_residual:
            # A residual below tolerance is taken for zero, so its root has no slope there.
            miss = torch.where(miss < 1.0, torch.zeros_like(miss), miss).sqrt()
        residual = miss.mean()
        boundary = self.model(torch.tensor([[-1.0], [1.0]])).square().mean()
        data = (self.model(self.measured) - self._truth(self.measured)).square().mean()
        total = self.w_residual * residual + self.w_boundary * boundary + self.w_data * data
        return total, {"loss_pde": residual, "loss_bc": boundary, "loss_data": data}

    def measure(self, rows: Rows) -> dict[str, float]:
        """Return the relative error of the solution."""
        miss, truth = self.model(rows["x"]) - self._truth(rows["x"]), self._truth(rows["x"])
        return {"rel_l2": float(miss.norm() / truth.norm())}


class Shared(nn.Module):
    """One trunk, three heads, and a learnt log-variance for each."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.trunk = mlp(8, hidden, 2, 3)
        self.log_var = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        """Return the three guesses."""
        out: Tensor = self.trunk(x)
        return out


@dataclass
class MultiTask(Task):
    """Three targets of unlike noise, weighted by learnt uncertainty, so that the loss may fall below zero."""

    name: ClassVar[str] = "multitask_uncertainty"
    rows: int = 1024
    hidden: int = 48
    uncertainty: bool = True
    weight_a: float = 1.0
    no_log_term: bool = bug(default=False)

    def setup(self, seed: int) -> None:
        """Draw the rows and the model."""
        torch.manual_seed(seed)
        self.model = Shared(self.hidden)
        self.mix = torch.randn(8, 3)
        self.data, self.held = self._rows(self.rows), self._rows(384)

    def _rows(self, count: int) -> Rows:
        x = torch.randn(count, 8)
        wave = torch.sin(x @ self.mix * 0.6) + torch.tensor([0.0, 0.5, -0.5]) * x[:, :1]
        return {"x": x, "y": wave + torch.tensor([0.05, 0.2, 0.5]) * torch.randn(count, 3)}

    def loss(self, rows: Rows) -> tuple[Tensor, Terms]:
        """Return the weighted errors of the three targets."""
        miss = (self.model(rows["x"]).float() - rows["y"]).square().mean(0)
        spread = self.model.log_var.float() if isinstance(self.model, Shared) else torch.zeros(3)
        terms = {f"mse_{name}": value for name, value in zip("abc", miss, strict=True)}
        if not self.uncertainty:
            return self.weight_a * miss[0] + miss[1] + miss[2], terms
        penalty = 0.0 if self.no_log_term else 0.5 * spread
        terms["sigma_a"] = (spread[0] / 2).exp()
        return (0.5 * miss * (-spread).exp() + penalty).sum(), terms

    def measure(self, rows: Rows) -> dict[str, float]:
        """Add R2 of each target."""
        guess = self.model(rows["x"]).float()
        return super().measure(rows) | {f"r2_{n}": r2(guess[:, i], rows["y"][:, i]) for i, n in enumerate("abc")}
