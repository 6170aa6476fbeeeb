"""Language modelling from scratch on characters or words, with the faults of its data and shift."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.dialogue import corpus
from benchmarks.loops.dialogue.nets import Net, Recurrent, Shape, generate


@dataclass
class LmOptions:
    """The data of a language model; everything after `show` is a fault or a trap."""

    unit: str = "char"
    domains: tuple[str, ...] = ("text",)
    size: int = 60_000
    length: int = 32
    cell: str = ""  # gru, relu, tanh for a recurrent model
    gain: float = 1.0
    show: tuple[str, ...] = ("ppl",)  # ppl, acc, gen, attn, fp8, dead, logit, bs1
    shift: int = 1
    shuffle: bool = True
    sort: bool = False
    curriculum: bool = False
    pocket: tuple[float, float] = (0.0, 0.0)  # where in the epoch, from and to
    bad: tuple[int, ...] = ()
    bad_scale: float = 1.0
    group_length: bool = False
    leak: bool = False
    eval_domain: str = ""
    probs: bool = False
    mask_all: bool = False
    metric: str = ""  # base2
    drift: float = 0.0
    sign: float = 1.0
    reduce_sum: bool = False
    rare_every: int = 0
    repeat: int = 1
    shape: dict[str, Any] = field(default_factory=dict)


class LmTask:
    """A causal language model on made-up text."""

    def __init__(self, o: LmOptions, seed: int, batch: int) -> None:
        self.o, self.seed, self.asked = o, seed, 0
        rng = np.random.default_rng(seed)
        parts = [self._ids(d, o.size // len(o.domains), seed) for d in o.domains]
        self.rows = np.concatenate([self._cut(p, o.length) for p in parts])
        if o.repeat > 1:
            self.rows = np.concatenate([self.rows[: len(self.rows) // o.repeat]] * o.repeat)
        if not (o.sort or o.curriculum):
            self.rows = rng.permutation(self.rows)
        if o.pocket[1] > o.pocket[0]:
            low, high = (int(x * len(self.rows)) for x in o.pocket)
            self.rows[low:high] = rng.integers(1, self.vocab, size=(high - low, o.length + 2))
        val = self._cut(self._ids(o.eval_domain or o.domains[-1], 64 * (o.length + 2), seed + 999), o.length)
        self.val = self.rows[:64] if o.leak else val[:64]
        self.epoch_len = max(1, len(self.rows) // batch)
        shape = Shape(vocab=self.vocab, length=o.length, **o.shape)
        self.model: nn.Module = Recurrent(shape, o.gain, o.cell) if o.cell else Net(shape)

    @property
    def vocab(self) -> int:
        """How many tokens there are."""
        return len(corpus.CHARS) if self.o.unit == "char" else len(corpus.WORDS)

    def _ids(self, domain: str, size: int, seed: int) -> np.ndarray:
        return corpus.characters(domain, size, seed) if self.o.unit == "char" else corpus.words(size, seed)

    def _cut(self, ids: np.ndarray, length: int) -> np.ndarray:
        width = length + 2
        return ids[: len(ids) // width * width].reshape(-1, width).copy()

    def batch(self, index: int, size: int) -> Tensor:
        """Batch number `index`; each epoch has an order of its own unless shuffling is off."""
        epoch, place = divmod(index, max(1, len(self.rows) // size))
        order = np.arange(len(self.rows))
        if self.o.shuffle:
            order = np.random.default_rng(self.seed * 7919 + epoch).permutation(len(self.rows))
        rows = self.rows[order[place * size : (place + 1) * size]]
        if index in self.o.bad:
            rows = np.random.default_rng(index).integers(1, self.vocab, size=rows.shape)
        if self.o.rare_every and index % self.o.rare_every == self.o.rare_every - 1:
            rows = self._cut(corpus.characters("sums", size * (self.o.length + 2), index), self.o.length)
        if self.o.group_length:
            rows = rows[:, : max(5, int((self.o.length + 2) * (1 - (index % 12) / 13)))]
        self.asked = index
        return torch.from_numpy(rows)

    def _nll(self, logits: Tensor, target: Tensor) -> Tensor:
        if self.o.probs:
            logits = logits.softmax(-1)
        if self.o.mask_all:
            target = torch.full_like(target, -100)
        reduction = "sum" if self.o.reduce_sum else "mean"
        return functional.cross_entropy(logits.float().flatten(0, 1), target.flatten(), reduction=reduction)

    def loss(self, rows: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Next-token loss of a batch and what is logged beside it."""
        shift = self.o.shift
        inputs, target = rows[:, :-2], rows[:, shift : rows.shape[1] - 2 + shift]
        logits = self.model(inputs)
        loss = self.o.sign * self._nll(logits, target)
        extra: dict[str, float] = {}
        show = self.o.show
        if "ppl" in show:
            extra["ppl"] = math.exp(min(float(loss.detach()), 50.0))
        if "acc" in show:
            extra["acc"] = float((logits.argmax(-1) == target).float().mean())
        if isinstance(self.model, Net):
            loss, more = self._inside(self.model, loss)
            extra |= more
        if "logit" in show:
            extra["logit_max"] = float(logits.detach().abs().max())
            extra["logit_mean"] = float(logits.detach().mean())
        if self.o.drift:
            push = self.o.drift * logits.logsumexp(-1).mean()
            loss = loss - (push - push.detach())
        if self.o.bad_scale != 1.0 and self.asked in self.o.bad:
            loss = loss * self.o.bad_scale
        return loss, extra

    def _inside(self, net: Net, loss: Tensor) -> tuple[Tensor, dict[str, float]]:
        names = {"attn": "attn_max", "fp8": "fp8_amax_min", "dead": "dead"}
        extra = {name: net.stat(name) for show, name in names.items() if show in self.o.show}
        if net.s.experts:
            aux = torch.stack([block.aux for block in net.layers()]).sum()
            loss = loss + 0.01 * aux
            extra |= {"load_max": net.stat("load_max"), "aux": float(aux.detach()) / len(net.blocks)}
        return loss, extra

    def evaluate(self) -> dict[str, float]:
        """Loss on held-out rows, and how many generated words exist."""
        rows = torch.from_numpy(self.val)
        shift = self.o.shift
        inputs, target = rows[:, :-2], rows[:, shift : rows.shape[1] - 2 + shift]
        logits = self.model(inputs).float()
        scores = logits.softmax(-1) if self.o.probs else logits
        loss = float(functional.cross_entropy(scores.flatten(0, 1), target.flatten()))
        values = {"loss": loss}
        if "bs1" in self.o.show:
            single = torch.cat([self.model(inputs[i : i + 1]) for i in range(24)]).float()
            values["loss_bs1"] = float(functional.cross_entropy(single.flatten(0, 1), target[:24].flatten()))
        if "ppl" in self.o.show:
            capped = min(loss, 50.0)
            values["ppl"] = 2**capped if self.o.metric == "base2" else math.exp(capped)
        if "acc" in self.o.show:
            values["acc"] = float((logits.argmax(-1) == target).float().mean())
        if "gen" in self.o.show:
            values["gen_ok"] = self._real_words()
        return values

    def _real_words(self) -> float:
        start = torch.from_numpy(self.val[:8, :12])
        out = generate(self.model, start, 24, self.o.length)[:, 12:]
        known = set(corpus.WORDS)
        found = [w for row in out for w in "".join(corpus.CHARS[int(c)] for c in row).split()[1:-1]]
        return float(np.mean([w in known for w in found])) if found else 0.0
