"""Preference training of the pretrained model: DPO and a reward model."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.dialogue import corpus
from benchmarks.loops.dialogue.core import Knobs, Record
from benchmarks.loops.dialogue.loop import fit
from benchmarks.loops.dialogue.nets import Net
from benchmarks.loops.dialogue.tasks.sft import WIDTH, SftOptions, SftTask, start_model


@dataclass
class PreferOptions:
    """The data of preference training; all after `kind` are faults or traps."""

    kind: str = "dpo"  # dpo or rm
    rows: int = 320
    beta: float = 0.1
    swap: float = 0.0
    swap_train_only: bool = False
    same: float = 0.0
    truncate: int = 0
    sign: float = 1.0
    gold: bool = False
    leak: bool = False
    naive: bool = False


_SFT: dict[str, Net] = {}


def sft_model() -> Net:
    """The base model after a short fine-tune, trained once per process."""
    if "net" not in _SFT:
        task = SftTask(SftOptions(rows=200), 77, 16)
        with torch.enable_grad():
            fit(task, Knobs(steps=30, lr=1e-3, eval_every=9999), Record({}, 30))
        assert isinstance(task.model, Net)
        _SFT["net"] = task.model
    model = start_model()
    model.load_state_dict(copy.deepcopy(_SFT["net"].state_dict()))
    return model


class PreferTask:
    """Pairs of answers of which one is right."""

    def __init__(self, o: PreferOptions, seed: int, batch: int) -> None:
        self.o, self.seed = o, seed
        rng = np.random.default_rng(seed)
        self.train = self._pairs(rng, o.rows, o.swap)
        self.test = self.train_slice(64) if o.leak else self._pairs(rng, 64, 0.0 if o.swap_train_only else o.swap)
        self.epoch_len = max(1, o.rows // batch)
        self.model: nn.Module = sft_model()
        self.ref = sft_model().eval().requires_grad_(False)
        torch.manual_seed(seed)
        if o.kind == "rm":
            assert isinstance(self.model, Net)
            self.model.head = nn.Linear(64, 1)

    def train_slice(self, count: int) -> tuple[Tensor, ...]:
        """The first rows of the training pairs."""
        return tuple(t[:count] for t in self.train)

    def _pairs(self, rng: np.random.Generator, count: int, swap: float) -> tuple[Tensor, ...]:
        good, bad = torch.zeros(count, WIDTH, dtype=torch.long), torch.zeros(count, WIDTH, dtype=torch.long)
        mask = torch.zeros(count, WIDTH, dtype=torch.bool)
        true = torch.ones(count)
        for i in range(count):
            prompt, answer = corpus.question(rng, (0, 28))
            wrong = corpus.spoil(answer, rng)
            if rng.random() < self.o.same:
                wrong = answer
            if rng.random() < swap:
                answer, wrong, true[i] = wrong, answer, 0
            limit = self.o.truncate or WIDTH
            one, two = (prompt + answer)[:limit], (prompt + wrong)[:limit]
            good[i, : len(one)], bad[i, : len(two)] = torch.tensor(one), torch.tensor(two)
            mask[i, len(prompt) : max(len(one), len(two))] = True
        return good, bad, mask, true

    def batch(self, index: int, size: int) -> tuple[Tensor, ...]:
        """Batch number `index` of pairs."""
        epoch, place = divmod(index, self.epoch_len)
        order = torch.from_numpy(np.random.default_rng(self.seed + epoch * 97).permutation(self.o.rows))
        pick = order[place * size : (place + 1) * size]
        return tuple(t[pick] for t in self.train)

    def _logp(self, net: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
        logp = net(ids[:, :-2]).log_softmax(-1)
        target = ids[:, 1:-1]
        picked = logp.gather(-1, target[..., None]).squeeze(-1)
        summed: Tensor = (picked * mask[:, 1:-1]).sum(-1)
        return summed

    def _both(self, batch: tuple[Tensor, ...]) -> tuple[Tensor, dict[str, float]]:
        good, bad, mask, true = batch
        if self.o.kind == "rm":
            last = (good != 0).sum(1).clamp(max=WIDTH - 2) - 1
            rows = torch.arange(len(good))
            one, two = (self.model(x[:, :-2])[rows, last, 0] for x in (good, bad))
            gap = one - two
            values = {"score_good": float(one.detach().mean()), "score_bad": float(two.detach().mean())}
        else:
            one, two = self._logp(self.model, good, mask), self._logp(self.model, bad, mask)
            with torch.no_grad():
                ref_one, ref_two = self._logp(self.ref, good, mask), self._logp(self.ref, bad, mask)
            gap = self.o.beta * ((one - ref_one) - (two - ref_two))
            values = {
                "r_good": self.o.beta * float((one - ref_one).detach().mean()),
                "r_bad": self.o.beta * float((two - ref_two).detach().mean()),
                "lp_good": float(one.detach().mean()),
                "lp_bad": float(two.detach().mean()),
            }
        values["margin"] = float(gap.detach().mean())
        values["pref_acc"] = float((gap > 0).float().mean())
        if self.o.gold:
            values["gold_acc"] = float(((gap > 0).float() == true).float().mean())
        if self.o.naive:
            return -torch.sigmoid(gap).log().mean(), values
        return -functional.logsigmoid(self.o.sign * gap).mean(), values

    def loss(self, batch: tuple[Tensor, ...]) -> tuple[Tensor, dict[str, float]]:
        """Loss of a batch of pairs."""
        loss, values = self._both(batch)
        values.pop("gold_acc", None)
        return loss, values

    def evaluate(self) -> dict[str, float]:
        """The same on held-out pairs."""
        loss, values = self._both(self.test)
        return {"loss": float(loss), **values}
