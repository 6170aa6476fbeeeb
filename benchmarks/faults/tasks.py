"""What is learned: small tasks that train in a second on a CPU, each with model, data and usual settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

TEXT = Path(__file__).parent.parent.parent / "PLAYBOOK.md"


@dataclass(slots=True)
class Batch:
    """One batch.

    Args:
        inputs: Whatever the model takes.
        targets: Class numbers, (batch, ...), or values where the loss is a squared error.
        mask: Which targets count, of the shape of `targets`.
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor

    def __getitem__(self, rows: Tensor) -> Batch:
        return Batch(self.inputs[rows], self.targets[rows], self.mask[rows])


def joined(batches: Sequence[Batch]) -> Batch:
    """Return all rows of some batches as one."""
    columns = zip(*((batch.inputs, batch.targets, batch.mask) for batch in batches), strict=True)
    return Batch(*(torch.cat(column) for column in columns))


@dataclass(frozen=True)
class Task:
    """A task.

    Args:
        name: Its name.
        kind: Kind of run, in the words of the playbook.
        classes: How many there are to guess from; 0 where the loss is a squared error.
        model: Makes the model for a depth, a width and a nonlinearity that faults may change.
        sample: Draws a batch: (generator, batch size, evaluation?) -> Batch.
        lr: A learning rate that works.
        batch: Samples per batch.
        steps: Steps of a run.
        accuracy: Whether accuracy is logged at evaluation.
        tuning: Whether its runs belong to the tuning part.
    """

    name: str
    kind: str
    classes: int
    model: Callable[[Shape], nn.Module]
    sample: Callable[[torch.Generator, int, bool], Batch]
    lr: float
    batch: int = 32
    steps: int = 300
    accuracy: bool = True
    tuning: bool = True


@dataclass(slots=True)
class Shape:
    """What faults may change in a model."""

    width: int = 64
    depth: int = 2
    dropout: float = 0.0
    activation: Callable[[], nn.Module] = nn.GELU
    norm: bool = True
    extras: dict[str, float] = field(default_factory=dict)


def full(targets: Tensor) -> Tensor:
    """Return a mask that counts every target."""
    return torch.ones_like(targets, dtype=torch.bool)


class TinyGPT(nn.Module):
    """A causal transformer: (batch, time) to (batch, time, vocabulary)."""

    def __init__(self, vocabulary: int, context: int, shape: Shape) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, shape.width)
        self.place = nn.Parameter(0.02 * torch.randn(context, shape.width))
        layer = nn.TransformerEncoderLayer(
            shape.width, math.gcd(4, shape.width), 4 * shape.width, dropout=shape.dropout, batch_first=True,
            norm_first=True, activation=shape.activation(),
        )  # fmt: skip
        self.layers = nn.TransformerEncoder(layer, shape.depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, vocabulary)
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token at each position."""
        length = tokens.shape[1]
        mask = torch.triu(torch.full((length, length), -math.inf), diagonal=1)
        hidden = self.token(tokens) + self.place[:length]
        logits: Tensor = self.head(self.norm(self.layers(hidden, mask=mask, is_causal=True)))
        return logits


@lru_cache(maxsize=1)
def text() -> tuple[Tensor, int]:
    """Return a text as character numbers, and how many characters there are."""
    raw = TEXT.read_text(encoding="utf-8")[:120_000]
    characters = {character: number for number, character in enumerate(sorted(set(raw)))}
    return torch.tensor([characters[character] for character in raw]), len(characters)


def windows(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Windows of text; the last tenth is for evaluation."""
    return next_characters(text()[0], generator, size, evaluation, length=48, split=0.9)


def next_characters(
    characters: Tensor, generator: torch.Generator, size: int, evaluation: bool, *, length: int, split: float
) -> Batch:
    """Return windows of `length` characters and the one after each; what stands behind `split` is for evaluation."""
    border, window = int(split * len(characters)), length + 1
    low, high = (border, len(characters) - window) if evaluation else (0, border - window)
    starts = torch.randint(low, high, (size,), generator=generator)
    tokens = torch.stack([characters[start : start + window] for start in starts])
    return Batch(tokens[:, :-1], tokens[:, 1:], full(tokens[:, 1:]))


DIGITS = "0123456789+=. "


def sums(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Sums such as `7+45=52.`, of which only the answer counts, as in supervised fine-tuning."""
    rows, masks = [], []
    for _ in range(size):
        a, b = torch.randint(0, 50, (2,), generator=generator).tolist()
        if evaluation != ((a * 7 + b) % 10 == 0):
            a = (a + 1) % 50
        prompt, answer = f"{a}+{b}=", f"{a + b}."
        line = (prompt + answer).ljust(12)
        rows.append([DIGITS.index(character) for character in line])
        masks.append([len(prompt) <= place < len(prompt) + len(answer) for place in range(12)])
    tokens, mask = torch.tensor(rows), torch.tensor(masks)
    return Batch(tokens[:, :-1], tokens[:, 1:], mask[:, 1:])


LETTERS = "abcdefghijklmnopqrstuvwxyz> ."


def reversals(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Words such as `cbxa>axbc.`, of which only the reversed word counts, as in supervised fine-tuning.

    One letter in eight of the answers is a slip, as annotators make them.
    """
    del evaluation
    words, other = torch.randint(0, 26, (2, size, 4), generator=generator)
    slips = torch.rand(size, 4, generator=generator) < 0.125
    mark, end = (torch.full((size, 1), LETTERS.index(sign)) for sign in ">.")
    tokens = torch.cat([words, mark, torch.where(slips, other, words.flip(1)), end], dim=1)
    mask = (torch.arange(tokens.shape[1]) > words.shape[1]).expand(tokens.shape)
    return Batch(tokens[:, :-1], tokens[:, 1:], mask[:, 1:])


@lru_cache(maxsize=16)
def fixed(seed: int, *shape: int) -> Tensor:
    """Return random numbers that are the same in each run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tabular(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Four classes by a random two-layer teacher."""
    del evaluation
    inputs = torch.randn(size, 20, generator=generator)
    targets = (torch.tanh(inputs @ fixed(1, 20, 16)) @ fixed(2, 16, 4)).argmax(dim=1)
    return Batch(inputs, targets, full(targets))


def values(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """A number to predict, with a little noise."""
    del evaluation
    inputs = torch.randn(size, 12, generator=generator)
    targets = torch.tanh(inputs @ fixed(3, 12, 8)) @ fixed(4, 8, 1)
    targets = targets + 0.1 * torch.randn(targets.shape, generator=generator)
    return Batch(inputs, targets, full(targets))


def images(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Ten noisy patterns of 12 by 12 pixels."""
    del evaluation
    targets = torch.randint(0, 10, (size,), generator=generator)
    inputs = fixed(5, 10, 12, 12)[targets] + 1.5 * torch.randn(size, 12, 12, generator=generator)
    return Batch(inputs.unsqueeze(1), targets, full(targets))


def sequences(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Which of five tokens is most frequent in a sequence of 24?"""
    del evaluation
    targets = torch.randint(0, 5, (size,), generator=generator)
    tokens = torch.randint(0, 20, (size, 24), generator=generator)
    marked = torch.rand(size, 24, generator=generator) < 0.3
    tokens = torch.where(marked, targets.unsqueeze(1), tokens)
    return Batch(tokens, targets, full(targets))


def pixels(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Which of three textures does each pixel belong to?"""
    del evaluation
    coarse = torch.randint(0, 3, (size, 4, 4), generator=generator)
    targets = coarse.repeat_interleave(4, 1).repeat_interleave(4, 2)
    inputs = targets.float() - 1 + 1.2 * torch.randn(size, 16, 16, generator=generator)
    return Batch(inputs.unsqueeze(1), targets, full(targets))


def points(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Noise to be predicted from noised points on a ring, as a diffusion model does."""
    del evaluation
    angle = 2 * math.pi * torch.rand(size, 1, generator=generator)
    clean = torch.cat([angle.cos(), angle.sin()], dim=1)
    time = torch.rand(size, 1, generator=generator)
    noise = torch.randn(size, 2, generator=generator)
    return Batch(torch.cat([(1 - time).sqrt() * clean + time.sqrt() * noise, time], dim=1), noise, full(noise))


class TwoTower(nn.Module):
    """Two encoders; the logits say which of the batch's second views belongs to each first view."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.left, self.right = (perceptron(16, 16, shape) for _ in range(2))

    def forward(self, pair: Tensor) -> Tensor:
        """Return the similarities, (batch, batch)."""
        left = nn.functional.normalize(self.left(pair[:, 0]), dim=1)
        right = nn.functional.normalize(self.right(pair[:, 1]), dim=1)
        return 10 * left @ right.T


def pairs(generator: torch.Generator, size: int, evaluation: bool) -> Batch:
    """Two views of the same hidden thing."""
    del evaluation
    hidden = torch.randn(size, 8, generator=generator)
    views = [hidden @ fixed(seed, 8, 16) + 0.3 * torch.randn(size, 16, generator=generator) for seed in (6, 7)]
    targets = torch.arange(size)
    return Batch(torch.stack(views, dim=1), targets, full(targets))


def perceptron(inputs: int, outputs: int, shape: Shape) -> nn.Sequential:
    """Return a stack of linear layers."""
    layers: list[nn.Module] = []
    width = inputs
    for _ in range(shape.depth):
        layers += [nn.Linear(width, shape.width), shape.activation()]
        if shape.dropout:
            layers.append(nn.Dropout(shape.dropout))
        width = shape.width
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def convolutional(classes: int, dense: bool, shape: Shape) -> nn.Sequential:
    """Return a small network over images; `dense` predicts for each pixel."""
    channels = max(2, shape.width // 4)
    body: list[nn.Module] = [nn.Conv2d(1, channels, 3, padding=1)]
    for _ in range(shape.depth):
        body += [nn.BatchNorm2d(channels)] if shape.norm else []
        body += [shape.activation(), nn.Conv2d(channels, channels, 3, padding=1)]
    body.append(nn.Dropout(shape.dropout))
    if dense:
        return nn.Sequential(*body, nn.Conv2d(channels, classes, 1))
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(9 * channels, classes))


class Pooled(nn.Module):
    """Embeds tokens, averages them and classifies the mean."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.token = nn.Embedding(20, shape.width)
        self.body = perceptron(shape.width, 5, shape)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits, (batch, 5)."""
        logits: Tensor = self.body(self.token(tokens).mean(dim=1))
        return logits


TASKS = {
    task.name: task
    for task in (
        Task(
            "gpt", "pretraining", text()[1], lambda s: TinyGPT(text()[1], 48, s), windows, 3e-3, 16, 300, accuracy=False
        ),
        Task("sft", "sft", len(DIGITS), lambda s: TinyGPT(len(DIGITS), 12, s), sums, 2e-3, 32, 300, tuning=False),
        Task("reverse", "sft", len(LETTERS), lambda s: TinyGPT(len(LETTERS), 10, s), reversals, 3e-3, 32, 300),
        Task("tabular", "supervised", 4, lambda s: perceptron(20, 4, s), tabular, 2e-3, 32, 400),
        Task("regression", "supervised", 0, lambda s: perceptron(12, 1, s), values, 2e-3, 32, 400, accuracy=False),
        Task("images", "supervised", 10, lambda s: convolutional(10, False, s), images, 2e-3, 32, 250, tuning=False),
        Task("sequences", "supervised", 5, Pooled, sequences, 2e-3, 32, 300, tuning=False),
        Task("pixels", "supervised", 3, lambda s: convolutional(3, True, s), pixels, 2e-3, 8, 200, accuracy=True),
        Task("diffusion", "diffusion", 0, lambda s: perceptron(3, 2, s), points, 2e-3, 64, 500, accuracy=False),
        Task("two_tower", "supervised", 32, TwoTower, pairs, 2e-3, 32, 300, tuning=False),
    )
}  # fmt: skip
"""Every task by name. Those with `tuning=False` are the test part."""
