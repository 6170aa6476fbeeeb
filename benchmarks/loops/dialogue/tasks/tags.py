"""Token classification: names of persons, places and things in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.dialogue import corpus
from benchmarks.loops.dialogue.nets import Net, Shape

L, CLASSES = 14, 5  # O, PER, LOC, COLOR, THING


@dataclass
class TagOptions:
    """The data of a tagger; all after `show` are faults or traps."""

    rows: int = 1500
    hard: float = 0.3  # share of entity words replaced by <unk>
    show: tuple[str, ...] = ("acc", "f1")
    rare: float = 0.0  # share of sentences that keep their entities tagged
    noise: float = 0.0
    sort: bool = False
    from_one: bool = False
    mask_all: bool = False
    probs: bool = False
    metric: str = ""  # zero
    zero_input: bool = False
    leak: bool = False
    late_bad: int = 0
    dropout: float = 0.0
    rows_softmax: bool = False
    shape: dict[str, Any] | None = None


def tag(word: str) -> int:
    """The class of a word."""
    for index, pool in enumerate((corpus.NAMES, corpus.PLACES, corpus.COLORS, corpus.NOUNS)):
        if word in pool:
            return index + 1
    return 0


class TagTask:
    """A tagger of words."""

    def __init__(self, o: TagOptions, seed: int, batch: int) -> None:
        self.o, self.seed = o, seed
        rng = np.random.default_rng(seed)
        self.train = self._make(rng, o.rows, o.noise)
        if o.sort:
            order = torch.argsort((self.train[1] * (self.train[1] > 0)).sum(1))
            self.train = (self.train[0][order], self.train[1][order])
        self.test = tuple(t[:128] for t in self.train) if o.leak else self._make(rng, 128, 0.0)
        self.epoch_len = max(1, o.rows // batch)
        torch.manual_seed(seed)
        self.model: nn.Module = Net(
            Shape(
                vocab=len(corpus.WORDS),
                length=L,
                outputs=CLASSES,
                causal=False,
                width=32,
                dropout=o.dropout,
                **(o.shape or {"depth": 1}),
            )
        )

    def _make(self, rng: np.random.Generator, count: int, noise: float) -> tuple[Tensor, Tensor]:
        ids = torch.zeros(count, L, dtype=torch.long)
        tags = torch.full((count, L), -100)
        for i in range(count):
            words = corpus.sentence(rng).split()[:L]
            keep = not self.o.rare or rng.random() < self.o.rare
            for j, word in enumerate(words):
                label = tag(word) if keep else 0
                hidden = label > 0 and rng.random() < self.o.hard
                if self.o.rare and label == 0 and rng.random() < 0.9:
                    hidden = True
                ids[i, j] = corpus.ID["<unk>" if hidden else word]
                if noise and rng.random() < noise:
                    label = int(rng.integers(0, CLASSES))
                tags[i, j] = -100 if self.o.mask_all else label + int(self.o.from_one)
        if self.o.late_bad and count > self.o.late_bad:
            tags[self.o.late_bad, 1] = CLASSES + 3
        return ids, tags

    def batch(self, index: int, size: int) -> tuple[Tensor, Tensor]:
        """Batch number `index` of ids and tags."""
        epoch, place = divmod(index, self.epoch_len)
        order = np.random.default_rng(self.seed + epoch * 13).permutation(self.o.rows)
        if self.o.sort or self.o.late_bad:
            order = np.sort(order)
        pick = torch.from_numpy(order[place * size : (place + 1) * size])
        return self.train[0][pick], self.train[1][pick]

    def _logits(self, ids: Tensor) -> Tensor:
        if self.o.zero_input:
            ids = torch.zeros_like(ids)
        logits: Tensor = self.model(ids)
        if self.o.rows_softmax:
            return logits.softmax(0)
        return logits.softmax(-1) if self.o.probs else logits

    def _scores(self, logits: Tensor, tags: Tensor) -> dict[str, float]:
        predicted, seen = logits.argmax(-1), tags >= 0
        if self.o.metric == "zero":
            predicted = predicted + CLASSES
        values: dict[str, float] = {}
        if "acc" in self.o.show:
            values["acc"] = float((predicted == tags)[seen].float().mean())
        if "f1" in self.o.show:
            hit = float(((predicted == tags) & (tags > 0)).sum())
            found, real = float(((predicted > 0) & seen).sum()), float((tags > 0).sum())
            p, r = hit / max(found, 1.0), hit / max(real, 1.0)
            values.update(precision=p, recall=r, f1=2 * p * r / max(p + r, 1e-9))
        return values

    def loss(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, float]]:
        """Cross entropy over the tagged words of a batch."""
        ids, tags = batch
        logits = self._logits(ids)
        loss = functional.cross_entropy(logits.flatten(0, 1), tags.flatten())
        values = self._scores(logits.detach(), tags)
        return loss, {k: v for k, v in values.items() if k == "acc"}

    def evaluate(self) -> dict[str, float]:
        """Loss and scores on held-out sentences."""
        ids, tags = self.test
        logits = self._logits(ids)
        return {
            "loss": float(functional.cross_entropy(logits.flatten(0, 1), tags.flatten())),
            **self._scores(logits, tags),
        }
