"""Synthetic data: small, made from a seed, and learnable within seconds."""

import torch

Tensor = torch.Tensor


def generator(seed: int) -> torch.Generator:
    """A random generator of its own, so that data does not depend on what was drawn before."""
    return torch.Generator().manual_seed(seed)


def shapes(count: int, *, seed: int, classes: int = 5, size: int = 16, noise: float = 0.3) -> tuple[Tensor, ...]:
    """Noisy pictures of one shape each: images (n, 1, size, size), masks likewise, boxes (n, 4) in 0..1, labels (n)."""
    rng = generator(seed)
    label = torch.randint(0, classes, (count,), generator=rng)
    radius = (0.2 + 0.15 * torch.rand(count, generator=rng)) * size
    centre = radius[:, None] + torch.rand(count, 2, generator=rng) * (size - 1 - 2 * radius[:, None])
    axis = torch.arange(size, dtype=torch.float32)
    dx = (axis[None, None, :] - centre[:, 0, None, None]) / radius[:, None, None]
    dy = (axis[None, :, None] - centre[:, 1, None, None]) / radius[:, None, None]
    far, away = torch.hypot(dx, dy), torch.maximum(dx.abs(), dy.abs())
    kinds = [
        far < 1,
        away < 0.9,
        dx.abs() + dy.abs() < 1,
        (far < 1) & (far > 0.55),
        (away < 1) & ((dx.abs() < 0.35) | (dy.abs() < 0.35)),
        (away < 0.9) & (away > 0.5),
        (away < 0.9) & (dy > dx),
        (away < 0.9) & (dy.abs() < 0.5),
        (away < 0.9) & (dx.abs() < 0.5),
        (away < 1) & ((dx - dy).abs() < 0.5),
    ]
    masks = torch.stack(kinds)[label, torch.arange(count)].float()[:, None]
    images = masks + noise * torch.randn(masks.shape, generator=rng)
    boxes = torch.cat([centre, radius[:, None], radius[:, None]], dim=1) / size
    return images - 0.25, masks, boxes, label


def table(count: int, *, seed: int, width: int = 12, noise: float = 0.1) -> tuple[Tensor, Tensor]:
    """Standardised features (n, width) and a smooth non-linear target (n) of about unit variance."""
    rng = generator(seed)
    x = torch.randn(count, width, generator=rng)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] * 0.5 + 0.5 * x[:, 3] + 0.3 * (x[:, 4].abs() - 0.8)
    return x, y / 1.1 + noise * torch.randn(count, generator=rng)


def wide_table(count: int, *, seed: int, width: int = 400) -> tuple[Tensor, Tensor]:
    """Nearly orthogonal rows (n, width) with a weak linear signal on two classes: easy to learn by heart."""
    rng = generator(seed)
    x = torch.randn(count, width, generator=rng)
    return x, (x[:, :4].sum(1) + 2.5 * torch.randn(count, generator=rng) > 0).long()


def rare_class(count: int, *, seed: int, width: int = 10, share: float = 0.2) -> tuple[Tensor, Tensor]:
    """Two overlapping classes, of which class 1 has the given share: features (n, width), labels (n)."""
    rng = generator(seed)
    label = (torch.rand(count, generator=rng) < share).long()
    x = torch.randn(count, width, generator=rng)
    x[:, :3] += 0.8 * label[:, None]
    return x, label


def series(count: int, *, seed: int, past: int = 32, ahead: int = 4, noise: float = 0.1) -> tuple[Tensor, Tensor]:
    """Two sines of random phase and pace: windows (n, past, 1) and what follows (n, ahead)."""
    rng = generator(seed)
    time = torch.arange(past + ahead)[None, :]
    phase = 6.28 * torch.rand(count, 2, generator=rng)
    pace = 0.15 + 0.35 * torch.rand(count, 2, generator=rng)
    wave = torch.sin(pace[:, :1] * time + phase[:, :1]) + 0.5 * torch.sin(2 * pace[:, 1:] * time + phase[:, 1:])
    wave = wave + noise * torch.randn(wave.shape, generator=rng)
    return wave[:, :past, None], wave[:, past:]


def utterances(
    count: int, *, seed: int, symbols: int = 6, bands: int = 10, noise: float = 0.4
) -> tuple[Tensor, Tensor, Tensor]:
    """Speech-like frames (n, 24, bands), frame counts (n), and their symbols (n, 6) from 1, filled up with 0."""
    rng = generator(seed)
    voices = torch.randn(symbols, bands, generator=generator(7))
    frames = noise * torch.randn(count, 24, bands, generator=rng)
    lengths, target = torch.zeros(count, dtype=torch.long), torch.zeros(count, 6, dtype=torch.long)
    for row in range(count):
        spoken = torch.randint(0, symbols, (int(torch.randint(3, 7, (1,), generator=rng)),), generator=rng)
        parts = [voices[s].expand(int(torch.randint(2, 5, (1,), generator=rng)), -1) for s in spoken]
        voiced = torch.cat(parts)[:24]
        frames[row, : len(voiced)] += voiced
        lengths[row], target[row, : len(spoken)] = len(voiced), spoken + 1
    return frames, lengths, target


def tagged(count: int, *, seed: int, length: int = 24, words: int = 40, tags: int = 6) -> tuple[Tensor, Tensor]:
    """Word ids (n, length) from 1 with padding 0; tags likewise, of the word and its left neighbour, padding -100."""
    rng = generator(seed)
    tokens = torch.randint(1, words, (count, length), generator=rng)
    left = torch.nn.functional.pad(tokens[:, :-1], (1, 0))
    tag = (tokens * 7 + (left % 2) * 3) % tags
    used = torch.randint(4, length // 2, (count, 1), generator=rng)
    padding = torch.arange(length)[None, :] >= used
    return tokens.masked_fill(padding, 0), tag.masked_fill(padding, -100)


def characters(count: int, *, seed: int, length: int = 24, letters: int = 20, choices: int = 3) -> Tensor:
    """Texts (n, length + 1) of letter ids; any two letters allow `choices` next ones: the entropy is ln(choices)."""
    rng = generator(seed)
    allowed = torch.randint(0, letters, (letters, letters, choices), generator=generator(11))
    text = torch.zeros(count, length + 1, dtype=torch.long)
    text[:, :2] = torch.randint(0, letters, (count, 2), generator=rng)
    pick = torch.randint(0, choices, text.shape, generator=rng)
    for place in range(2, length + 1):
        text[:, place] = allowed[text[:, place - 2], text[:, place - 1], pick[:, place]]
    return text


def communities(nodes: int, *, seed: int, groups: int = 4, width: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """A stochastic block model: normalised adjacency (n, n), noisy features (n, width), group of each node (n)."""
    rng = generator(seed)
    group = torch.randint(0, groups, (nodes,), generator=rng)
    chance = torch.where(group[:, None] == group[None, :], 0.06, 0.01)
    edge = torch.triu(torch.rand(nodes, nodes, generator=rng) < chance, 1).float()
    adjacency = edge + edge.T + torch.eye(nodes)
    degree = adjacency.sum(1).rsqrt()
    features = torch.randn(nodes, width, generator=rng) + torch.nn.functional.one_hot(group, width) * 1.2
    return degree[:, None] * adjacency * degree[None, :], features, group


def moons(count: int, *, seed: int, noise: float = 0.08) -> Tensor:
    """Points (n, 2) on two interleaved half circles, about standardised."""
    rng = generator(seed)
    angle = 3.1416 * torch.rand(count, generator=rng)
    upper = (torch.rand(count, generator=rng) < 0.5).float()
    x = torch.cos(angle) * (2 * upper - 1) + (1 - upper)
    y = torch.sin(angle) * (2 * upper - 1) + 0.5 * (1 - upper)
    points = torch.stack([x - 0.5, y - 0.25], dim=1) / torch.tensor([0.87, 0.5])
    return points + noise * torch.randn(points.shape, generator=rng)
