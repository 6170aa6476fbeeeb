"""Sequence to sequence: each word has its partner in a made-up language, in turned order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.dialogue.nets import Net, Shape

V, N = 20, 5  # words of a language, words of a sentence
SRC, TGT, BOS, EOS = 4, 4 + V, 1, 2
VOCAB = 4 + 2 * V
L = 2 * N + 3


@dataclass
class TransOptions:
    """The data of a translator; all after `show` are faults or traps."""

    rows: int = 3000
    smooth: float = 0.0
    show: tuple[str, ...] = ("acc", "ppl", "bleu")
    shift: int = 1
    causal: bool = True
    noise: float = 0.0
    no_source: bool = False
    bleu_bug: bool = False
    eval_reorder: bool = False
    leak: bool = False
    group_length: bool = False
    big_batch: int = 0
    reduce_sum: bool = False
    pocket: tuple[float, float] = (0.0, 0.0)
    shape: dict[str, Any] | None = None


class TransTask:
    """A translator that reads source and target as one row; only the target is scored."""

    def __init__(self, o: TransOptions, seed: int, batch: int) -> None:
        self.o, self.seed = o, seed
        rng = np.random.default_rng(seed)
        self.rows = self._make(rng, o.rows)
        low, high = (int(x * o.rows) for x in o.pocket)
        if high > low:
            self.rows[low:high, N + 2 : -1] = torch.from_numpy(rng.integers(TGT, TGT + V, size=(high - low, N)))
        if o.noise:
            hit = torch.from_numpy(rng.random(len(self.rows)) < o.noise)
            self.rows[hit, N + 2 : -1] = torch.from_numpy(rng.integers(TGT, TGT + V, size=(int(hit.sum()), N)))
        self.test = self.rows[:96] if o.leak else self._make(rng, 96)
        self.epoch_len = max(1, len(self.rows) // batch)
        torch.manual_seed(seed)
        self.model: nn.Module = Net(Shape(vocab=VOCAB, length=L - 1, causal=o.causal, width=64, **(o.shape or {})))

    def _make(self, rng: np.random.Generator, count: int) -> Tensor:
        source = rng.integers(0, V, size=(count, N))
        target = (source[:, ::-1] * 7 + 3) % V
        one = np.ones((count, 1), dtype=np.int64)
        row = np.concatenate([BOS * one, source + SRC, 3 * one, target + TGT, EOS * one], axis=1)
        return torch.from_numpy(row.astype(np.int64))

    def batch(self, index: int, size: int) -> Tensor:
        """Batch number `index` of rows."""
        epoch, place = divmod(index, self.epoch_len)
        order = np.random.default_rng(self.seed + epoch * 11).permutation(len(self.rows))
        if self.o.pocket[1] > 0:
            order = np.sort(order)
        rows = self.rows[torch.from_numpy(order[place * size : (place + 1) * size])]
        if self.o.big_batch and index == self.o.big_batch:
            rows = torch.from_numpy(np.random.default_rng(3).integers(0, VOCAB, size=tuple(rows.shape)))
        return rows

    def _score(self, rows: Tensor, smooth: float) -> tuple[Tensor, Tensor, Tensor]:
        inputs = rows[:, :-1].clone()
        if self.o.no_source:
            inputs[:, 1 : N + 1] = 0
        logits = self.model(inputs)[:, N + 1 :]
        target = rows[:, N + 1 + self.o.shift :]
        logits = logits[:, : target.shape[1]]
        target = target[:, : logits.shape[1]]
        loss = functional.cross_entropy(
            logits.flatten(0, 1),
            target.flatten(),
            label_smoothing=smooth,
            reduction="sum" if self.o.reduce_sum else "mean",
        )
        return loss, logits, target

    def loss(self, rows: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Loss over the target words."""
        loss, logits, target = self._score(rows, self.o.smooth)
        values: dict[str, float] = {}
        if "ppl" in self.o.show:
            values["ppl"] = math.exp(min(float(loss.detach()), 30))
        if "acc" in self.o.show:
            values["acc"] = float((logits.argmax(-1) == target).float().mean())
        return loss, values

    def evaluate(self) -> dict[str, float]:
        """Loss, and a BLEU-like score (words in place) of free translations."""
        rows = self.test
        if self.o.eval_reorder:
            rows = torch.cat([rows[:, :1], rows[:, 1 : N + 1].flip(1), rows[:, N + 1 :]], dim=1)
        loss, logits, target = self._score(rows, 0.0)
        values = {"loss": float(loss)}
        if "acc" in self.o.show:
            values["acc"] = float((logits.argmax(-1) == target).float().mean())
        if "bleu" in self.o.show:
            ids = rows[:, : N + 2].clone()
            if self.o.no_source:
                ids[:, 1 : N + 1] = 0
            for _ in range(N):
                ids = torch.cat([ids, self.model(ids)[:, -1].argmax(-1, keepdim=True)], dim=1)
            want = rows[:, N + 2 : 2 * N + 2]
            if self.o.bleu_bug:
                want = want.roll(1, dims=0) - V
            values["bleu"] = 100 * float((ids[:, N + 2 :] == want).float().mean())
        return values
