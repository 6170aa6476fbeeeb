"""Tasks that nothing was fitted on and no symptom was written for: how well does the diagnosis carry over?

Other architectures (GRU, LSTM, vision transformer, graph network, 1-D convolution, embedding tables), other data, and
tasks whose best possible loss lies far above zero.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.faults.tasks import Batch, Shape, Task, TinyGPT, fixed, full, next_characters, perceptron

PAGES = ("README.md", "CHANGELOG.md", "docs/trust.md")
WORDS = 400
SLIPS = 0.1
"""Share of wrong labels in training, where there are some."""


@lru_cache(maxsize=1)
def pages() -> tuple[Tensor, int]:
    """Return some pages in small letters, as character numbers, and how many characters there are."""
    root = Path(__file__).parent.parent.parent
    raw = "".join((root / page).read_text(encoding="utf-8") for page in PAGES).lower()
    characters = {character: number for number, character in enumerate(sorted(set(raw)))}
    return torch.tensor([characters[character] for character in raw]), len(characters)


def letters(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Windows of the pages; the last part is for evaluation."""
    return next_characters(pages()[0], generator, size, evaluation, length=64, split=0.85)


class Recurrent(nn.Module):
    """A GRU: (batch, time) to (batch, time, vocabulary)."""

    def __init__(self, vocabulary: int, shape: Shape) -> None:
        super().__init__()
        width = 2 * shape.width
        self.token = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, max(1, shape.depth - 1), batch_first=True)
        self.drop = nn.Dropout(shape.dropout)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token at each position."""
        logits: Tensor = self.head(self.drop(self.rnn(self.token(tokens))[0]))
        return logits


def words(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Chains of words that are as rare as words are; one in four is drawn at random, so that much stays unknown."""
    del evaluation
    rarity = 1 / torch.arange(1, WORDS + 1).float()
    follow = torch.multinomial(rarity.expand(WORDS, WORDS), 8, True, generator=torch.Generator().manual_seed(99))
    tokens = torch.zeros(size, 33, dtype=torch.long)
    tokens[:, 0] = torch.multinomial(rarity, size, True, generator=generator)
    for place in range(1, 33):
        choice = torch.randint(0, 8, (size,), generator=generator)
        following = follow[tokens[:, place - 1], choice]
        anything = torch.multinomial(rarity, size, True, generator=generator)
        tokens[:, place] = torch.where(torch.rand(size, generator=generator) < 0.25, anything, following)
    return Batch(tokens[:, :-1], tokens[:, 1:], full(tokens[:, 1:]))


class VisionTransformer(nn.Module):
    """A transformer over patches of 4 by 4 pixels."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.patch = nn.Conv2d(1, width, 4, 4)
        self.place = nn.Parameter(0.02 * torch.randn(16, width))
        layer = nn.TransformerEncoderLayer(
            width, math.gcd(4, width), 2 * width, dropout=shape.dropout, batch_first=True,
            activation=shape.activation(), norm_first=True,
        )  # fmt: skip
        self.body = nn.TransformerEncoder(layer, shape.depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width) if shape.norm else nn.Identity()
        self.head = nn.Linear(width, 8)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (batch, 8)."""
        patches = self.patch(images).flatten(2).transpose(1, 2) + self.place
        logits: Tensor = self.head(self.norm(self.body(patches)).mean(1))
        return logits


def shapes(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Eight patterns under heavy noise; in training some labels are wrong, as in most data sets."""
    targets = torch.randint(0, 8, (size,), generator=generator)
    inputs = 0.8 * fixed(21, 8, 16, 16)[targets] + 1.6 * torch.randn(size, 16, 16, generator=generator)
    if not evaluation:
        wrong = torch.rand(size, generator=generator) < SLIPS
        targets = torch.where(wrong, torch.randint(0, 8, (size,), generator=generator), targets)
    return Batch(inputs.unsqueeze(1), targets, full(targets))


class Forecaster(nn.Module):
    """A convolution over time: (batch, 24) past values to (batch, 4) coming ones."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        channels = shape.width // 2
        body: list[nn.Module] = [nn.Conv1d(1, channels, 5, padding=2)]
        for _ in range(shape.depth):
            body += [shape.activation(), nn.Conv1d(channels, channels, 5, padding=2)]
        self.body = nn.Sequential(*body, nn.Dropout(shape.dropout))
        self.head = nn.Linear(channels * 24, 4)

    def forward(self, past: Tensor) -> Tensor:
        """Return what comes, (batch, 4)."""
        coming: Tensor = self.head(self.body(past.unsqueeze(1)).flatten(1))
        return coming


def waves(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Noisy waves with a drift, of which the last four values are to be predicted."""
    del evaluation
    rate = 0.1 + 0.5 * torch.rand(size, 1, generator=generator)
    phase = 6.28 * torch.rand(size, 1, generator=generator)
    height = 0.5 + torch.rand(size, 1, generator=generator)
    time = torch.arange(28).float()
    drift = 0.02 * time * torch.randn(size, 1, generator=generator)
    values = height * torch.sin(rate * time + phase) + drift + 0.15 * torch.randn(size, 28, generator=generator)
    return Batch(values[:, :24], values[:, 24:], full(values[:, 24:]))


class GraphNetwork(nn.Module):
    """Passes messages between the 12 nodes of a graph: (batch, 12, 8 features + 12 edges) to (batch, 3)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.node = nn.Linear(8, shape.width)
        self.layers = nn.ModuleList(nn.Linear(shape.width, shape.width) for _ in range(shape.depth))
        self.activation = shape.activation()
        self.drop = nn.Dropout(shape.dropout)
        self.head = nn.Linear(shape.width, 3)

    def forward(self, graphs: Tensor) -> Tensor:
        """Return the logits, (batch, 3)."""
        features, edges = graphs[..., :8], graphs[..., 8:]
        edges = edges / edges.sum(-1, keepdim=True).clamp(min=1)
        hidden = self.node(features)
        for layer in self.layers:
            hidden = hidden + self.activation(layer(edges @ hidden))
        logits: Tensor = self.head(self.drop(hidden).mean(1))
        return logits


def networks(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Graphs of three densities; a feature of each node tells its degree, noisily."""
    del evaluation
    targets = torch.randint(0, 3, (size,), generator=generator)
    features = torch.randn(size, 12, 8, generator=generator)
    edges = (torch.rand(size, 12, 12, generator=generator) < 0.12 + 0.13 * targets.view(-1, 1, 1)).float()
    edges = ((edges + edges.transpose(1, 2)) > 0).float()
    features[..., 0] = edges.sum(-1) / 6 + 0.3 * torch.randn(size, 12, generator=generator)
    return Batch(torch.cat([features, edges], -1), targets, full(targets))


class Tagger(nn.Module):
    """A bidirectional LSTM: (batch, 20) tokens to (batch, 20, 6) tags."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.token = nn.Embedding(40, shape.width)
        self.rnn = nn.LSTM(shape.width, shape.width // 2, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(shape.dropout)
        head = Shape(width=shape.width, depth=max(0, shape.depth - 1), activation=shape.activation)
        self.head = perceptron(shape.width, 6, head)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the tag at each position."""
        logits: Tensor = self.head(self.drop(self.rnn(self.token(tokens))[0]))
        return logits


def tags(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Tags that depend on a token and the one before it, in sentences of several lengths; some tags are slips."""
    del evaluation
    tokens = torch.randint(1, 40, (size, 20), generator=generator)
    before = torch.cat([tokens[:, :1], tokens[:, :-1]], 1)
    targets = (tokens + 2 * (before % 3)) % 6
    slips = torch.rand(size, 20, generator=generator) < 0.06
    targets = torch.where(slips, torch.randint(0, 6, (size, 20), generator=generator), targets)
    length = torch.randint(8, 21, (size, 1), generator=generator)
    mask = torch.arange(20) < length
    return Batch(torch.where(mask, tokens, 0), targets, mask)


class ClickModel(nn.Module):
    """Tables of users and items, and a perceptron: (batch, user + item + 4 numbers) to (batch, 2)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.user, self.item = nn.Embedding(50, 8), nn.Embedding(80, 8)
        self.body = perceptron(20, 2, shape)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the logits, (batch, 2)."""
        user, item = rows[:, 0].long().clamp(0, 49), rows[:, 1].long().clamp(0, 79)
        logits: Tensor = self.body(torch.cat([self.user(user), self.item(item), rows[:, 2:]], 1))
        return logits


def clicks(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Does a user click on an item? Mostly chance: the best possible loss is not far below ln 2."""
    del evaluation
    user = torch.randint(0, 50, (size,), generator=generator)
    item = torch.randint(0, 80, (size,), generator=generator)
    numbers = torch.randn(size, 4, generator=generator)
    taste = (fixed(31, 50, 3)[user] * fixed(32, 80, 3)[item]).sum(1) + numbers[:, 0] - 0.8
    targets = (torch.rand(size, generator=generator) < torch.sigmoid(taste)).long()
    rows = torch.cat([user.view(-1, 1).float(), item.view(-1, 1).float(), numbers], 1)
    return Batch(rows, targets, full(targets))


OTHER_TASKS = {
    task.name: task
    for task in (
        Task(
            "gru_lm", "pretraining", pages()[1], lambda s: Recurrent(pages()[1], s), letters, 4e-3, 16, 300,
            accuracy=False, tuning=False,
        ),
        Task(
            "zipf_lm", "pretraining", WORDS, lambda s: TinyGPT(WORDS, 32, s), words, 3e-3, 16, 250,
            accuracy=False, tuning=False,
        ),
        Task("vit", "supervised", 8, VisionTransformer, shapes, 1.5e-3, 32, 250, tuning=False),
        Task("forecast", "supervised", 0, Forecaster, waves, 2e-3, 32, 300, accuracy=False, tuning=False),
        Task("graph", "supervised", 3, GraphNetwork, networks, 2e-3, 32, 300, tuning=False),
        Task("tagger", "supervised", 6, Tagger, tags, 4e-3, 16, 300, tuning=False),
        Task("ctr", "supervised", 2, ClickModel, clicks, 3e-3, 64, 400, tuning=False),
    )
}  # fmt: skip
"""Every task by name."""
LIKE = {
    "gru_lm": "gpt", "zipf_lm": "gpt", "vit": "images", "forecast": "regression", "graph": "sequences",
    "tagger": "pixels", "ctr": "tabular",
}  # fmt: skip
"""The task whose faults each gets."""
