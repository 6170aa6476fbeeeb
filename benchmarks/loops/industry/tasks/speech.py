"""Spoken commands as spectrograms, read by a recurrent network; two tasks at once in one of the set-ups."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.fit import fit
from benchmarks.loops.industry.measure import accuracy
from benchmarks.loops.industry.recipe import Batch, Job, Recipe
from benchmarks.loops.industry.trace import Row, Trace

_WORDS = 8
_BANDS = 10
_FRAMES = 20


class Listener(nn.Module):
    """A recurrent network by hand, with heads for the word and for the loudness."""

    def __init__(self, width: int, gain: float, kind: str, dropout: float) -> None:
        super().__init__()
        self.gru = nn.GRU(_BANDS, width, batch_first=True)
        self.inward, self.again = nn.Linear(_BANDS, width), nn.Linear(width, width, bias=False)
        self.word, self.loud = nn.Linear(width, _WORDS), nn.Linear(width, 1)
        nn.init.orthogonal_(self.again.weight, gain)
        self.kind, self.drop = kind, nn.Dropout(dropout)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of the words and the loudness."""
        if self.kind == "gru":
            hidden = self.gru(frames)[0][:, -1]
        else:
            hidden = torch.zeros(len(frames), self.again.in_features)
            for at in range(_FRAMES):
                mixed = self.inward(frames[:, at]) + self.again(hidden)
                hidden = torch.relu(mixed) if self.kind == "relu" else torch.sigmoid(mixed)
        hidden = self.drop(hidden)
        return self.word(hidden), self.loud(hidden).squeeze(1)


def _clips(count: int, seed: int, noise: float) -> Batch:
    world = torch.Generator().manual_seed(14)
    shape = torch.randn(_WORDS, _FRAMES, _BANDS, generator=world)
    draw = torch.Generator().manual_seed(seed)
    word = torch.randint(0, _WORDS, (count,), generator=draw)
    volume = 0.5 + torch.rand(count, generator=draw)
    frames = shape[word] * volume[:, None, None] + noise * torch.randn(count, _FRAMES, _BANDS, generator=draw)
    frames[:, 14:] *= 0.15
    return frames, word, volume * 60


def commands(
    recipe: Recipe,
    *,
    rows: int = 4000,
    width: int = 32,
    gain: float = 1.0,
    kind: str = "gru",
    noise: float = 3.0,
    dropout: float = 0.0,
    loudness: float = 0.0,
    fixed_head: bool = False,
    curriculum: bool = False,
    valid_level: float = 1.0,
    wrong: float = 0.0,
    smoothing: float = 0.0,
    copies: int = 1,
) -> Trace:
    """Train a recogniser of commands."""
    torch.manual_seed(recipe.seed)
    train, valid = _clips(rows, 101 + recipe.seed, noise), _clips(800, 84, noise)
    valid = (valid[0] * valid_level, valid[1], valid[2])
    if wrong:
        train = (train[0], torch.where(torch.rand(rows) < wrong, torch.randint(0, _WORDS, (rows,)), train[1]), train[2])
    if copies > 1:
        train = tuple(part[: rows // copies].repeat(copies, *[1] * (part.dim() - 1)) for part in train)
    model = Listener(width, gain, kind, dropout)
    if fixed_head:
        model.word.requires_grad_(requires_grad=False)
        model.gru.requires_grad_(requires_grad=False)

    def touch(step: int, _at: Tensor, batch: Batch) -> Batch:
        harder = 1 + step // max(1, recipe.steps // 4) if curriculum else 1
        return batch[0] + (harder - 1) * 1.4 * torch.randn_like(batch[0]), batch[1], batch[2]

    def loss(listener: nn.Module, batch: Batch) -> Tensor:
        logits, loud = listener(batch[0])
        main = functional.cross_entropy(logits, batch[1], label_smoothing=smoothing)
        return main + loudness * (loud - batch[2]).pow(2).mean() if loudness else main

    def metrics(listener: nn.Module, batch: Batch) -> Row:
        logits, loud = listener(batch[0])
        row = accuracy(logits, batch[1])
        if loudness:
            row["val_word_loss"] = float(functional.cross_entropy(logits, batch[1]))
            row["val_loudness_loss"] = float((loud - batch[2]).pow(2).mean())
        return row

    job = Job(
        model=model,
        train=train,
        valid=valid,
        loss=loss,
        metrics=metrics,
        touch=touch,
        settings={
            "model": kind,
            "hidden": width,
            "words": _WORDS,
            "frames": _FRAMES,
            "dropout": dropout,
            "loudness_weight": loudness,
            "curriculum": curriculum,
        },
    )
    return fit(job, recipe)
