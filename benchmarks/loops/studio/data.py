"""Small synthetic data sets."""

from __future__ import annotations

import torch
from torch import Tensor


def gen(seed: int) -> torch.Generator:
    """A seeded generator."""
    return torch.Generator().manual_seed(seed)


def images(count: int, classes: int, seed: int, noise: float = 0.8, *, channels: int = 1) -> tuple[Tensor, Tensor]:
    """Noisy, shifted smooth patterns, one pattern per class."""
    g = gen(1234 + classes)
    small = torch.randn(classes, channels, 5, 5, generator=g)
    proto = torch.nn.functional.interpolate(small, size=(12, 12), mode="bilinear")
    g = gen(seed)
    y = torch.randint(classes, (count,), generator=g)
    x = proto[y]
    gain = 0.7 + 0.6 * torch.rand(count, 1, 1, 1, generator=g)
    return x * gain + noise * torch.randn(x.shape, generator=g), y


def shapes(count: int, seed: int, size: int = 16, rare: float = 1.0) -> tuple[Tensor, Tensor]:
    """Images with a rectangle and a disc; the mask has background, rectangle and disc."""
    g = gen(seed)
    grid = torch.arange(size).float()
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    c = 3 + (size - 6) * torch.rand(count, 4, 1, 1, generator=g)
    r = (1.5 + 2.5 * torch.rand(count, 2, 1, 1, generator=g)) * rare
    box = ((xx - c[:, 0]).abs() < r[:, 0]) & ((yy - c[:, 1]).abs() < r[:, 0])
    disc = (xx - c[:, 2]) ** 2 + (yy - c[:, 3]) ** 2 < r[:, 1] ** 2
    mask = torch.zeros(count, size, size, dtype=torch.long)
    mask[box] = 1
    mask[disc] = 2
    x = torch.zeros(count, 1, size, size)
    x[:, 0] += (mask == 1) * 1.0 - (mask == 2) * 0.8
    return x + 0.45 * torch.randn(x.shape, generator=g), mask


def boxes(count: int, seed: int, size: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """Images with one square: a grid of objectness (4x4) and a box cx, cy, w, h in 0..1."""
    g = gen(seed)
    wh = 3 + 4 * torch.rand(count, 2, generator=g)
    cxy = wh / 2 + (size - wh) * torch.rand(count, 2, generator=g)
    grid = torch.arange(size).float() + 0.5
    inside = ((grid[None, None, :] - cxy[:, :1, None]).abs() < wh[:, :1, None] / 2) & (
        (grid[None, :, None] - cxy[:, 1:, None]).abs() < wh[:, 1:, None] / 2
    )
    x = inside.float()[:, None] + 0.25 * torch.randn(count, 1, size, size, generator=g)
    cell = (cxy / size * 4).long().clamp(0, 3)
    obj = torch.zeros(count, 4, 4)
    obj[torch.arange(count), cell[:, 1], cell[:, 0]] = 1
    return x, obj, torch.cat([cxy, wh], 1) / size


def series(count: int, seed: int, length: int = 24, noise: float = 0.15) -> Tensor:
    """Windows of a sum of two waves with a random walk of the level."""
    g = gen(seed)
    t = torch.arange(length).float()
    phase = 6.283 * torch.rand(count, 2, 1, generator=g)
    amp = 0.5 + torch.rand(count, 2, 1, generator=g)
    wave = (amp * torch.sin(torch.tensor([0.55, 0.21])[None, :, None] * t + phase)).sum(1)
    walk = 0.05 * torch.randn(count, length, generator=g).cumsum(1)
    return wave + walk + noise * torch.randn(count, length, generator=g)


def table(count: int, seed: int, positive: float = 0.4, width: int = 16) -> tuple[Tensor, Tensor]:
    """Columns with a non-linear rule and noise; a binary target with a given share of ones."""
    g = gen(seed)
    x = torch.randn(count, width, generator=g)
    score = x[:, 0] * x[:, 1] + torch.sin(2 * x[:, 2]) + 0.7 * x[:, 3] - 0.5 * x[:, 4].abs()
    score = score + 0.5 * torch.randn(count, generator=g)
    cut = torch.quantile(score, 1 - positive)
    return x, (score > cut).float()


def ratings(count: int, seed: int, users: int = 120, items: int = 80) -> Tensor:
    """Triples of user, liked item, other item, from latent factors."""
    g = gen(99)
    u, v = torch.randn(users, 4, generator=g), torch.randn(items, 4, generator=g)
    g = gen(seed)
    who = torch.randint(users, (count,), generator=g)
    two = torch.randint(items, (count, 2), generator=g)
    score = (u[who][:, None] * v[two]).sum(-1) + 0.3 * torch.randn(count, 2, generator=g)
    order = score.argsort(1, descending=True)
    return torch.cat([who[:, None], two.gather(1, order)], 1)


def community(seed: int, nodes: int = 240, classes: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    """Features, normalised adjacency and classes of a block graph."""
    g = gen(seed)
    y = torch.randint(classes, (nodes,), generator=g)
    same = (y[:, None] == y[None]).float()
    link = (torch.rand(nodes, nodes, generator=g) < same * 0.06 + 0.012).float().triu(1)
    a = link + link.T + torch.eye(nodes)
    d = a.sum(1).rsqrt()
    centre = torch.randn(classes, 12, generator=g)
    x = 0.45 * centre[y] + torch.randn(nodes, 12, generator=g)
    return x, a * d[:, None] * d[None], y


def speech(count: int, seed: int, symbols: int = 6, low: int = 3, high: int = 3) -> tuple[Tensor, ...]:
    """Frames (B,T,8), targets (B,high), frame counts and target lengths."""
    g = gen(7)
    voice = torch.randn(symbols + 1, 8, generator=g)
    g = gen(seed)
    hold = 4
    length = torch.randint(low, high + 1, (count,), generator=g)
    target = torch.randint(1, symbols + 1, (count, high), generator=g)
    frames = target.repeat_interleave(hold, 1)
    x = voice[frames] + 0.7 * torch.randn(count, high * hold, 8, generator=g)
    used = torch.arange(high * hold)[None] < (length * hold)[:, None]
    return x * used[..., None], target, length * hold, length


def ring(count: int, seed: int, modes: int = 8) -> Tensor:
    """Points of a ring of Gaussians."""
    g = gen(seed)
    angle = torch.randint(modes, (count,), generator=g) * (6.2832 / modes)
    centre = torch.stack([angle.cos(), angle.sin()], 1)
    return centre * 1.5 + 0.12 * torch.randn(count, 2, generator=g)
