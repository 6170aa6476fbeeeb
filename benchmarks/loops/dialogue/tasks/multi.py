"""Two tasks on one trunk: next word and the class of the sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.dialogue import corpus
from benchmarks.loops.dialogue.nets import Net, Shape

L = 12


@dataclass
class MultiOptions:
    """The data of the two tasks; all after `rows` are faults or traps."""

    rows: int = 2000
    detach: bool = False
    sign: float = 1.0
    eval_noise: int = 128


class _Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net(Shape(vocab=len(corpus.WORDS), length=L))
        self.cls = nn.Linear(48, len(corpus.PLACES))


class MultiTask:
    """Language model and classifier of the place where a person lives."""

    def __init__(self, o: MultiOptions, seed: int, batch: int) -> None:
        self.o, self.seed = o, seed
        rng = np.random.default_rng(seed)
        self.train, self.test = self._make(rng, o.rows), self._make(rng, o.eval_noise)
        self.epoch_len = max(1, o.rows // batch)
        torch.manual_seed(seed)
        self.model: nn.Module = _Two()

    def _make(self, rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
        ids, places = torch.zeros(count, L + 1, dtype=torch.long), torch.zeros(count, dtype=torch.long)
        for i in range(count):
            name, noun = str(rng.choice(corpus.NAMES)), str(rng.choice(corpus.NOUNS))
            text = f"{name} {rng.choice(corpus.VERBS)} the {corpus.color_of(noun)} {noun} ."
            row = [corpus.BOS] + [corpus.ID[w] for w in text.split()] + [corpus.EOS]
            ids[i, : len(row)] = torch.tensor(row)
            places[i] = corpus.PLACES.index(corpus.place_of(name))
        return ids, places

    def batch(self, index: int, size: int) -> tuple[Tensor, Tensor]:
        """Batch number `index`."""
        epoch, place = divmod(index, self.epoch_len)
        order = torch.from_numpy(np.random.default_rng(self.seed + epoch).permutation(self.o.rows))
        pick = order[place * size : (place + 1) * size]
        return self.train[0][pick], self.train[1][pick]

    def _both(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, float]:
        ids, places = batch
        two = self.model
        assert isinstance(two, _Two)
        hidden = two.net.hidden(ids[:, :-1])
        target = ids[:, 1:].masked_fill(ids[:, 1:] == 0, -100)
        lm = functional.cross_entropy(two.net.head(hidden).flatten(0, 1), target.flatten())
        pooled = hidden.mean(1)
        logits = two.cls(pooled.detach() if self.o.detach else pooled)
        return lm, functional.cross_entropy(logits, places), float((logits.argmax(-1) == places).float().mean())

    def loss(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, float]]:
        """The sum of both losses."""
        lm, cls, acc = self._both(batch)
        values = {"lm_loss": float(lm.detach()), "cls_loss": float(cls.detach()), "cls_acc": acc}
        return lm + self.o.sign * cls, values

    def evaluate(self) -> dict[str, float]:
        """Both losses on held-out rows."""
        lm, cls, acc = self._both(self.test)
        return {"loss": float(lm + cls), "lm_loss": float(lm), "cls_loss": float(cls), "cls_acc": acc}
