"""Language modelling of characters: pretraining, mixture of experts, low-rank fine-tuning, distillation."""

from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.loops.language import nets, text
from benchmarks.loops.language.settings import Settings
from benchmarks.loops.language.task import Batch, Record, Task, token_loss

HELD_OUT = 60_000


class CharLM(Task):
    """Next-character prediction on the documentation of Python.

    Mistakes of the data path: `shift` of the labels (1 is right), a share of `pocket` windows of junk at one place of
    the epoch, an `evaluation` text in another encoding, evaluation windows taken from the training part.
    """

    name = "char_lm"

    def __init__(
        self, s: Settings, *, shift: int = 1, pocket: int = 0, remap_eval: bool = False, leak_eval: bool = False,
        shuffle: bool = True, eval_windows: int = 24, junk: float = 0.0, corpus: Tensor | None = None,
        scale: float = 1.0,
        log_scale: bool = False, fp8: bool = False, z_loss: float = 0.0, **model: float | str | bool
    ) -> None:  # fmt: skip
        super().__init__(s, shuffle=shuffle)
        self.corpus = text.documentation() if corpus is None else corpus
        self.shift, self.pocket, self.junk, self.scale = shift, pocket, junk, scale
        self.remap_eval, self.leak_eval, self.eval_windows, self.log_scale = (
            remap_eval,
            leak_eval,
            eval_windows,
            log_scale,
        )
        self.fp8, self.z_loss = fp8, z_loss
        self.tokens_per_sample = s.block_size
        self.model = nets.Transformer(text.VOCAB, s, **model)  # type: ignore[arg-type]

    def starts(self, rows: np.ndarray) -> np.ndarray:
        """Where the windows of the rows begin in the training part."""
        stop = len(self.corpus) - HELD_OUT - 2 * self.s.block_size
        return rows * 7919 % stop

    def batch(self, index: int) -> Batch:
        """Windows of block_size + 2 characters."""
        rows = self.rows(index)
        ids = text.windows(self.corpus, self.starts(rows), self.s.block_size + 2)
        ids[torch.as_tensor(text.rng(self.s.seed, index, 3).random(len(ids)) < self.junk)] = 0
        if self.pocket and self.epoch_batches:
            bad = torch.as_tensor(
                (rows >= self.s.train_samples // 2) & (rows < self.s.train_samples // 2 + self.pocket)
            )
            ids[bad] = self.spoil((ids,))[0][bad]
        return (ids,)

    def split(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and labels, with the label shift of this run."""
        size = self.s.block_size
        return ids[:, :size], ids[:, self.shift : self.shift + size]

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Cross-entropy in nats per character."""
        inputs, labels = self.split(batch[0])
        logits = self.model(inputs) * self.scale
        extra = {"logsumexp": float(logits.detach().logsumexp(-1).mean())} if self.log_scale else {}
        if self.fp8:
            logits, extra["fp8_amax_min"] = fp8_round_trip(logits * (inputs != 0)[..., None])
        loss = token_loss(logits, labels)
        if self.z_loss:
            loss = loss + self.z_loss * (logits.logsumexp(-1) ** 2).mean()
        return loss, extra

    def evaluate(self) -> Record:
        """Loss on the held-out end of the corpus."""
        size, first = self.s.block_size, 0 if self.leak_eval else len(self.corpus) - HELD_OUT
        starts = first + np.arange(self.eval_windows) * ((HELD_OUT - 2 * size) // self.eval_windows)
        if self.leak_eval:
            starts = self.starts(np.arange(self.eval_windows))
        ids = text.windows(self.corpus, starts, size + 2)
        if self.remap_eval:
            ids = (ids + 32) % text.VOCAB
        inputs, labels = self.split(ids)
        return {"loss": float(token_loss(self.model(inputs) * self.scale, labels))}


def fp8_round_trip(x: Tensor) -> tuple[Tensor, float]:
    """Quantise each sample to e4m3 by its largest value, and back: 0/0 for a sample that is all zero."""
    largest = x.detach().abs().amax((1, 2), keepdim=True)
    scale = largest / 448
    quantised = (x.detach() / scale).to(torch.float8_e4m3fn).to(x.dtype) * scale
    return x + (quantised - x.detach()), float(largest.min())


class MixtureLM(CharLM):
    """The same with a mixture of experts and a balance loss."""

    name = "moe_lm"

    def __init__(self, s: Settings, *, balance: float = 0.01, **rest: float | str | bool) -> None:
        super().__init__(s, experts=4, **rest)  # type: ignore[arg-type]
        self.balance = balance

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Cross-entropy plus the weighted balance loss of the routers."""
        loss, extra = super().loss(batch)
        routers = [part for part in self.model.modules() if isinstance(part, nets.Experts)]
        balance = torch.stack([part.balance for part in routers]).sum()
        share = max(float(part.shares.max()) for part in routers)
        extra |= {"lm_loss": loss.item(), "load_balancing_loss": balance.item(), "max_expert_load": share}
        return loss + self.balance * balance, extra


@cache
def pretrained(width: int, layers: int, steps: int = 250) -> dict[str, Tensor]:
    """Weights of a decoder that has read the documentation for a while."""
    s = Settings(n_embd=width, n_layer=layers, seed=11)
    torch.manual_seed(11)
    task = CharLM(s)
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=3e-3)
    for step in range(steps):
        loss, _ = task.loss(task.batch(step))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return {name: value.detach().clone() for name, value in task.model.state_dict().items()}


class LoraLM(CharLM):
    """Low-rank fine-tuning of the pretrained decoder on source code; `remap` gives it another tokenizer's ids."""

    name = "lora_code"

    def __init__(
        self, s: Settings, *, remap: bool = False, adapters: bool = True, detached: bool = False, **rest: float | bool
    ) -> None:
        corpus = text.source_code()
        super().__init__(s, corpus=(corpus * 37 + 11) % text.VOCAB if remap else corpus, **rest)  # type: ignore[arg-type]
        assert isinstance(self.model, nets.Transformer)
        self.model.load_state_dict(pretrained(s.n_embd, s.n_layer))
        if adapters:
            nets.add_adapters(self.model, int(s.extra.get("lora_r", 8)), float(s.extra.get("lora_alpha", 16)))
        self.detached = detached

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Cross-entropy; a detached one trains nothing."""
        loss, extra = super().loss(batch)
        if self.detached:
            loss = loss.detach() + 0 * sum(p.sum() for p in self.model.parameters() if p.requires_grad)
        return loss, extra


class Distil(CharLM):
    """A one-layer student learns the pretrained decoder's distribution at a temperature.

    Mistakes: `swap` feeds the student's probabilities as logits, `unscaled` forgets the mean over positions.
    """

    name = "distil"

    def __init__(self, s: Settings, *, swap: bool = False, unscaled: bool = False, **rest: float | bool) -> None:
        super().__init__(s, **rest)  # type: ignore[arg-type]
        self.teacher = nets.Transformer(text.VOCAB, Settings()).eval()
        self.teacher.load_state_dict(pretrained(48, 2))
        self.swap, self.unscaled = swap, unscaled

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """KL divergence from the teacher, times the squared temperature, in nats."""
        inputs, labels = self.split(batch[0])
        heat = float(self.s.extra.get("temperature", 2.0))
        logits = self.model(inputs)
        with torch.no_grad():
            target = (self.teacher(inputs) / heat).softmax(-1)
        student = logits.softmax(-1) if self.swap else logits / heat
        divergence = functional.kl_div(student.log_softmax(-1), target, reduction="none").sum(-1) * heat**2
        loss = divergence.sum() if self.unscaled else divergence.mean()
        return loss, {"ce_loss": token_loss(logits, labels).item(), "kd_loss": loss.item()}
