"""Encoder tasks: topic classification, text embeddings, and sequence transduction."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.language import nets, text
from benchmarks.loops.language.settings import Settings
from benchmarks.loops.language.task import Batch, Record, Task


class Encoder(nn.Module):
    """Word ids to one vector of outputs: transformer, mean pooling, optional BatchNorm."""

    def __init__(self, s: Settings, outputs: int, *, norm: bool = False, **model: float | str | bool) -> None:
        super().__init__()
        self.body = nets.Transformer(256, s, causal=False, **model)  # type: ignore[arg-type]
        self.norm: nn.Module = nn.BatchNorm1d(s.n_embd, momentum=0.3) if norm else nn.Identity()
        self.score = nn.Linear(s.n_embd, outputs)

    def forward(self, ids: Tensor) -> Tensor:
        """(batch, time) to (batch, outputs)."""
        x = self.norm(functional.dropout(self.body.features(ids).mean(1), self.body.blocks[0].drop, self.training))  # type: ignore[arg-type]
        out: Tensor = self.score(x)
        return out


class Topics(Task):
    """Topics of made-up sentences.

    Mistakes: a share of `noise` labels, all labels `permuted`, `shares` of classes, data in the order of labels,
    softmax before the loss, evaluation words `remapped`, a constant metric, `log0` probabilities.
    """

    name = "text_classification"

    def __init__(
        self, s: Settings, *, classes: int = 4, noise: float = 0.0, permuted: bool = False,
        shares: list[float] | None = None, sort: bool = False, double_softmax: bool = False,
        remap_eval: bool = False, metric: str = "", log0: bool = False,
        summed: bool = False, overlap: float = 0.8, net: nn.Module | None = None, eval_rows: int = 256,
        blank: bool = False, leak_eval: bool = False, hooks: bool = False, **model: float | str | bool
    ) -> None:  # fmt: skip
        super().__init__(s, shuffle=not sort)
        self.classes, self.log0, self.double_softmax, self.summed = classes, log0, double_softmax, summed
        self.metric, count = metric, s.train_samples or 4096
        self.ids, self.labels = text.topic_sentences(count, classes, s.seed, overlap=overlap, shares=shares)
        self.eval_ids, self.eval_labels = text.topic_sentences(
            eval_rows, classes, s.seed + 1, overlap=overlap, shares=shares
        )
        if leak_eval:
            self.eval_ids, self.eval_labels = self.ids[:eval_rows].clone(), self.labels[:eval_rows].clone()
        draw = torch.Generator().manual_seed(s.seed)
        flip = torch.rand(count, generator=draw) < noise
        self.labels[flip] = torch.randint(0, classes, (int(flip.sum()),), generator=draw)
        if permuted:
            self.labels = self.labels[torch.randperm(count, generator=draw)]
        if sort:
            by = self.labels.argsort(stable=True)
            self.ids, self.labels = self.ids[by], self.labels[by]
        if remap_eval:
            self.eval_ids = self.eval_ids.flip(0) if metric == "rows" else (self.eval_ids * 3 + 5) % 200
        if blank:
            self.ids, self.eval_ids = self.ids * 0, self.eval_ids * 0
        self.model = net or Encoder(s, classes, **model)  # type: ignore[arg-type]
        self.dead = DeadCount(self.model) if hooks else None

    def batch(self, index: int) -> Batch:
        """Word ids and topics."""
        rows = torch.as_tensor(self.rows(index)) % len(self.ids)
        return self.ids[rows], self.labels[rows]

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Cross-entropy in nats, and the accuracy of the batch."""
        ids, labels = batch
        logits = self.model(ids)
        accuracy = (logits.argmax(-1) == labels).float().mean().item()
        if self.log0:
            picked = logits.softmax(-1).gather(1, labels[:, None])
            loss = -(torch.log(picked) * (1 - picked.round(decimals=4)) / (1 - picked.round(decimals=4))).mean()
        else:
            loss = functional.cross_entropy(
                logits.softmax(-1) if self.double_softmax else logits,
                labels,
                reduction="sum" if self.summed else "mean",
            )
        extra = {"accuracy": accuracy}
        if self.dead:
            extra["dead_fraction"] = self.dead.fraction()
        return loss, extra

    def evaluate(self) -> Record:
        """Loss, accuracy and the mean F1 over classes."""
        logits = self.model(self.eval_ids)
        shown = logits.softmax(-1) if self.double_softmax else logits
        loss = functional.cross_entropy(shown, self.eval_labels).item()
        guess = logits.argmax(-1)
        if self.metric == "constant":
            guess = (logits.softmax(-1) > 1.5).long().argmax(-1)
        if self.metric == "index":
            guess = logits.argmax(0)[torch.arange(len(logits)) % self.classes] % self.classes
        accuracy = (guess == self.eval_labels).float().mean().item()
        return {"loss": loss, "accuracy": accuracy, "f1_macro": self.f1(guess)}

    def f1(self, guess: Tensor) -> float:
        """Mean F1 over the classes."""
        scores = []
        for label in range(self.classes):
            hits = ((guess == label) & (self.eval_labels == label)).sum().item()
            scores.append(2 * hits / max(1, (guess == label).sum().item() + (self.eval_labels == label).sum().item()))
        return sum(scores) / self.classes


class DeadCount:
    """Counts units of ReLU layers that gave zero for a whole batch."""

    def __init__(self, model: nn.Module) -> None:
        self.last: dict[int, float] = {}
        for number, part in enumerate(part for part in model.modules() if isinstance(part, nn.ReLU)):
            part.register_forward_hook(lambda _m, _i, out, number=number: self.note(number, out))

    def note(self, number: int, out: Tensor) -> None:
        """Keep the share of units of this layer that are zero everywhere."""
        self.last[number] = (out.flatten(0, -2).amax(0) <= 0).float().mean().item()

    def fraction(self) -> float:
        """Mean share over layers."""
        return sum(self.last.values()) / max(1, len(self.last))


class Embeddings(Task):
    """Two views of a sentence must find each other in the batch (InfoNCE).

    Mistakes: `unpaired` views, the recall of a wrong `metric` axis.
    """

    name = "contrastive_text"

    def __init__(
        self, s: Settings, *, unpaired: bool = False, metric: str = "", sign: float = 1.0, **model: float | str
    ) -> None:
        super().__init__(s)
        self.unpaired, self.metric, self.sign = unpaired, metric, sign
        self.model = Encoder(s, 32, **model)  # type: ignore[arg-type]

    def views(self, seed: int, size: int) -> tuple[Tensor, Tensor]:
        """Two noisy views of `size` sentences."""
        draw = text.rng(self.s.seed, seed)
        words = draw.integers(0, 200, (size, 12))
        first, second = (torch.as_tensor(draw.permuted(words, axis=1)[:, :8]) for _ in range(2))
        return first, second.roll(1, 0) if self.unpaired else second

    def batch(self, index: int) -> Batch:
        """Both views."""
        return self.views(index, self.s.batch_size)

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Symmetric cross-entropy of cosine similarities over a temperature."""
        a, b = (functional.normalize(self.model(view), dim=-1) for view in batch)
        scores = a @ b.T / float(self.s.extra.get("temperature", 0.05))
        target = torch.arange(len(scores))
        loss = (functional.cross_entropy(scores, target) + functional.cross_entropy(scores.T, target)) / 2
        pos, neg = (a * b).sum(-1).mean().item(), (a @ b.roll(1, 0).T).diagonal().mean().item()
        return self.sign * loss, {"pos_sim": pos, "neg_sim": neg}

    def evaluate(self) -> Record:
        """Loss and recall at 1 among 64 held-out sentences."""
        first, second = self.views(10**6, 64)
        loss, _ = self.loss((first, second))
        scores = functional.normalize(self.model(first), dim=-1) @ functional.normalize(self.model(second), dim=-1).T
        found = scores.argmin(-1) if self.metric == "argmin" else scores.argmax(-1)
        return {"loss": float(loss), "recall@1": (found == torch.arange(64)).float().mean().item()}


class Recall(Task):
    """A recurrent network must name the first symbol of a long sequence."""

    name = "rnn_recall"

    def __init__(self, s: Settings, *, act: str = "tanh", scale: float = 1.0, length: int = 20) -> None:
        super().__init__(s)
        self.length = length
        self.model = nets.Recurrent(12, s.n_embd, 8, act=act, scale=scale)

    def batch(self, index: int) -> Batch:
        """Sequences whose first symbol is below 8, then distractors."""
        draw = text.rng(self.s.seed, index)
        first = draw.integers(0, 8, (self.s.batch_size, 1))
        ids = torch.as_tensor(draw.integers(8, 12, (self.s.batch_size, self.length)))
        ids[:, :1] = torch.as_tensor(first)
        return ids, ids[:, 0]

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Cross-entropy in nats."""
        logits = self.model(batch[0])
        return functional.cross_entropy(logits, batch[1]), {
            "accuracy": (logits.argmax(-1) == batch[1]).float().mean().item()
        }

    def evaluate(self) -> Record:
        """The same on other sequences."""
        loss, extra = self.loss(self.batch(10**7))
        return {"loss": float(loss), **extra}
