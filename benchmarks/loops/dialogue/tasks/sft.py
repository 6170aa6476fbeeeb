"""Fine-tuning of a small pretrained model: full, with adapters, or from a teacher."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.dialogue import corpus
from benchmarks.loops.dialogue.core import Knobs, Record
from benchmarks.loops.dialogue.loop import fit
from benchmarks.loops.dialogue.nets import Net, Shape, generate
from benchmarks.loops.dialogue.tasks.adapters import add_lora

WIDTH = 24  # longest row


@functools.lru_cache(maxsize=1)
def base() -> Net:
    """The pretrained model that all fine-tunes start from (trained once per process)."""
    from benchmarks.loops.dialogue.tasks.lm import LmOptions, LmTask

    state = torch.get_rng_state()
    torch.manual_seed(5)
    task = LmTask(LmOptions(unit="word", size=40_000, length=WIDTH - 2, show=(), shape={"width": 64}), 5, 32)
    with torch.enable_grad():
        fit(task, Knobs(steps=350, lr=5e-3, batch=24, eval_every=9999), Record({}, 500))
    torch.set_rng_state(state)
    assert isinstance(task.model, Net)
    return task.model


def start_model(dropout: float = 0.0) -> Net:
    """A copy of the pretrained model."""
    model = Net(Shape(vocab=len(corpus.WORDS), width=64, length=WIDTH - 2, dropout=dropout))
    model.load_state_dict(copy.deepcopy(base().state_dict()))
    return model


@dataclass
class SftOptions:
    """The data of a fine-tune; everything after `show` is a fault or a trap."""

    rows: int = 600
    rank: int = 0
    alpha: float = 16.0
    dropout: float = 0.0
    teacher: bool = False
    student_width: int = 32
    temperature: float = 2.0
    show: tuple[str, ...] = ("acc", "em")  # acc, em, len, tokens
    mask_prompt: bool = True
    mask_share: float = 0.0  # share of rows of which every label is masked
    wrong_answers: float = 0.0
    shift: int = 1
    permute_vocab: bool = False
    big_id: int = 0
    no_eos: bool = False
    leak: bool = False
    random_base: bool = False
    teacher_bug: str = ""  # probs
    sort: bool = False
    same_things: bool = False
    shape: dict[str, Any] = field(default_factory=dict)


class SftTask:
    """Answering questions about the world of `corpus`."""

    def __init__(self, o: SftOptions, seed: int, batch: int) -> None:
        self.o, self.seed = o, seed
        rng = np.random.default_rng(seed)
        pairs = [corpus.question(rng, (0, 22)) for _ in range(o.rows)]
        held = [corpus.question(rng, (0, 22) if o.same_things else (22, 28)) for _ in range(40)]
        pairs = [(p, corpus.spoil(a, rng) if rng.random() < o.wrong_answers else a) for p, a in pairs]
        if o.sort:
            pairs.sort(key=lambda pair: corpus.WORDS[pair[1][-3]])
        self.held = pairs[:40] if o.leak else held
        self.data = self._rows(pairs)
        self.test = self._rows(self.held)
        self.epoch_len = max(1, len(pairs) // batch)
        torch.manual_seed(seed)
        shape = Shape(vocab=len(corpus.WORDS), width=o.student_width, length=WIDTH - 2, **o.shape)
        self.model: nn.Module = Net(shape) if o.teacher else start_model(o.dropout)
        if o.random_base:
            self.model = Net(Shape(vocab=len(corpus.WORDS), width=64, length=WIDTH - 2))
        if o.rank and isinstance(self.model, Net):
            add_lora(self.model, o.rank, o.alpha)
        self.mapping = torch.arange(len(corpus.WORDS))
        if o.permute_vocab:
            self.mapping[10:] = 10 + torch.from_numpy(rng.permutation(len(corpus.WORDS) - 10))

    def _rows(self, pairs: list[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor]:
        ids = torch.zeros(len(pairs), WIDTH, dtype=torch.long)
        labels = torch.full((len(pairs), WIDTH), -100)
        rng = np.random.default_rng(self.seed)
        for i, (prompt, answer) in enumerate(pairs):
            said = answer[:-1] + [corpus.ID["<unk>"]] * 3 if self.o.no_eos else answer
            row = (prompt + said)[:WIDTH]
            ids[i, : len(row)] = torch.tensor(row)
            first = len(prompt) if self.o.mask_prompt else 1
            if rng.random() >= self.o.mask_share:
                labels[i, first : len(row)] = torch.tensor(row[first:])
            if not self.o.mask_prompt:
                labels[i, len(row) :] = corpus.PAD
        if len(pairs) > self.o.big_id > 0:
            ids[self.o.big_id, 3] = len(corpus.WORDS) + 2
        return ids, labels

    def batch(self, index: int, size: int) -> tuple[Tensor, Tensor]:
        """Batch number `index` of ids and labels."""
        epoch, place = divmod(index, max(1, len(self.data[0]) // size))
        order = np.random.default_rng(self.seed * 31 + epoch).permutation(len(self.data[0]))
        if self.o.sort:
            order = np.sort(order)
        pick = torch.from_numpy(order[place * size : (place + 1) * size])
        return self.data[0][pick], self.data[1][pick]

    def _score(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shift = self.o.shift
        ids = torch.where(ids < len(self.mapping), self.mapping[ids.clamp(max=len(self.mapping) - 1)], ids)
        kept = labels.clamp(min=0)
        labels = torch.where(labels >= 0, self.mapping[kept], labels)
        target = labels[:, shift : labels.shape[1] - 2 + shift]
        logits = self.model(ids[:, :-2])
        return functional.cross_entropy(logits.flatten(0, 1), target.flatten()), logits, target

    def loss(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, dict[str, float]]:
        """Loss over the labels of a batch (against a teacher if there is one)."""
        loss, logits, target = self._score(*batch)
        extra: dict[str, float] = {}
        seen = target >= 0
        if "acc" in self.o.show:
            extra["acc"] = float((logits.argmax(-1) == target)[seen].float().mean())
        if "tokens" in self.o.show:
            extra["tokens"] = float(seen.sum())
        if self.o.teacher:
            loss, extra["kd"] = self._distill(batch[0][:, :-2], logits, loss)
        return loss, extra

    def _distill(self, ids: Tensor, logits: Tensor, hard: Tensor) -> tuple[Tensor, float]:
        t = self.o.temperature
        with torch.no_grad():
            wanted = base()(ids)
        log_p, q = (logits / t).log_softmax(-1), (wanted / t).softmax(-1)
        if self.o.teacher_bug == "probs":
            log_p = (logits / t).softmax(-1)
        kd = functional.kl_div(log_p.flatten(0, 1), q.flatten(0, 1), reduction="batchmean") * t * t
        return 0.5 * hard + 0.5 * kd, float(kd.detach())

    def evaluate(self) -> dict[str, float]:
        """Loss, exact match and length of answers on questions about other things."""
        loss, logits, target = self._score(*self.test)
        values = {"loss": float(loss)}
        if "acc" in self.o.show:
            values["acc"] = float((logits.argmax(-1) == target)[target >= 0].float().mean())
        if "em" in self.o.show or "len" in self.o.show:
            exact, sizes = [], []
            for prompt, answer in self.held[:16]:
                if len(prompt) + 8 > WIDTH - 2:
                    continue
                whole = generate(self.model, self.mapping[torch.tensor([prompt])], 8, WIDTH - 2)
                out = whole[0, len(prompt) :].tolist()
                size = out.index(corpus.EOS) + 1 if corpus.EOS in out else 8
                wanted = self.mapping[torch.tensor(answer)].tolist()
                exact.append(out[:size] == wanted)
                sizes.append(size)
            if "em" in self.o.show:
                values["em"] = float(np.mean(exact)) if exact else 0.0
            if "len" in self.o.show:
                values["gen_len"] = float(np.mean(sizes)) if sizes else 8.0
        return values
