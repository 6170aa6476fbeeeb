"""Sentence embeddings by contrast: two phrasings of a fact shall lie close together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.dialogue import corpus
from benchmarks.loops.dialogue.nets import Net, Shape

L = 10


@dataclass
class EmbedOptions:
    """The data of retrieval training; all after `scale` are faults or traps."""

    rows: int = 2000
    scale: float = 20.0
    kind: str = "infonce"  # infonce, triplet, cosine
    margin: float = 0.2
    broken_pairs: bool = False
    eval_other: bool = False
    leak: bool = False
    recall_bug: bool = False
    empty_row: int = 0
    dropout: float = 0.0
    shape: dict[str, Any] | None = None


class EmbedTask:
    """Retrieval of the statement that belongs to a note."""

    def __init__(self, o: EmbedOptions, seed: int, batch: int) -> None:
        self.o, self.seed = o, seed
        rng = np.random.default_rng(seed)
        self.train = self._pairs(rng, o.rows)
        if o.broken_pairs:
            self.train = (self.train[0], self.train[1][torch.from_numpy(rng.permutation(o.rows))])
        if o.empty_row:
            self.train[0][o.empty_row] = 0
        self.test = tuple(t[:128] for t in self.train) if o.leak else self._pairs(rng, 128)
        self.epoch_len = max(1, o.rows // batch)
        torch.manual_seed(seed)
        self.model: nn.Module = Net(
            Shape(
                vocab=len(corpus.WORDS),
                length=L,
                outputs=32,
                causal=False,
                dropout=o.dropout,
                **(o.shape or {"depth": 1}),
            )
        )

    def _pairs(self, rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
        left, right = torch.zeros(count, L, dtype=torch.long), torch.zeros(count, L, dtype=torch.long)
        for i in range(count):
            name, verb, noun = (
                str(rng.choice(corpus.NAMES)),
                str(rng.choice(corpus.VERBS)),
                str(rng.choice(corpus.NOUNS)),
            )
            one = f"{name} {verb} the {corpus.color_of(noun)} {noun} ."
            two = f"in {corpus.place_of(name)} , {name} {verb} a {noun} ."
            for row, text in ((left, one), (right, two)):
                ids = [corpus.ID[w] for w in text.split()]
                row[i, : len(ids)] = torch.tensor(ids)
        return left, right

    def batch(self, index: int, size: int) -> tuple[Tensor, Tensor]:
        """Batch number `index` of pairs."""
        epoch, place = divmod(index, self.epoch_len)
        order = torch.from_numpy(np.random.default_rng(self.seed + epoch).permutation(self.o.rows))
        pick = order[place * size : (place + 1) * size]
        return self.train[0][pick], self.train[1][pick]

    def embed(self, ids: Tensor) -> Tensor:
        """Unit vectors of rows of ids."""
        mask = (ids > 0).float()[..., None]
        out = self.model(ids)
        pooled = (out * mask).sum(1) / mask.sum(1)
        return functional.normalize(pooled, dim=-1)

    def loss(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, float]]:
        """Contrastive loss of a batch."""
        a, b = self.embed(batch[0]), self.embed(batch[1])
        sims = a @ b.T
        n = len(a)
        away = ~torch.eye(n, dtype=torch.bool)
        values = {
            "sim_pos": float(sims.detach().diagonal().mean()),
            "sim_neg": float(sims.detach()[away].mean()),
            "emb_std": float(a.detach().std(0).mean()),
        }
        if self.o.kind == "cosine":
            return -sims.diagonal().mean(), values
        if self.o.kind == "triplet":
            hardest = sims.masked_fill(~away, -2).max(1).values
            return functional.relu(hardest - sims.diagonal() + self.o.margin).mean(), values
        values["batch_acc"] = float((sims.argmax(1) == torch.arange(n)).float().mean())
        return functional.cross_entropy(sims * self.o.scale, torch.arange(n)), values

    def evaluate(self) -> dict[str, float]:
        """Recall among 128 statements."""
        left, right = self.test
        if self.o.eval_other:
            left = torch.cat([torch.full((len(left), 4), corpus.ID["user"]), left[:, : L - 4]], dim=1)
        a, b = self.embed(left), self.embed(right)
        sims = a @ b.T
        want = torch.arange(len(a))
        if self.o.recall_bug:
            want = want + 1
        rank = (sims > sims.diagonal()[:, None]).sum(1).float()
        top = sims.topk(10, dim=1).indices
        return {
            "recall1": float((top[:, 0] == want).float().mean()),
            "recall10": float((top == want[:, None]).any(1).float().mean()),
            "mrr": float((1 / (rank + 1)).mean()),
            "emb_std": float(a.std(0).mean()),
            "loss": float(functional.cross_entropy(sims * self.o.scale, torch.arange(len(a)))),
        }
