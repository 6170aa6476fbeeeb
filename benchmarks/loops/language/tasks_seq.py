"""Sequence to sequence: translate made-up words into another order and vocabulary."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.language import text
from benchmarks.loops.language.settings import Settings
from benchmarks.loops.language.task import Batch, Record, Task, token_loss

BOS, EOS, PAD, WORDS = 0, 1, 2, 40


class EncoderDecoder(nn.Module):
    """A GRU or transformer pair with attention from the decoder to the encoder."""

    def __init__(self, s: Settings, *, init_std: float = 0.0) -> None:
        super().__init__()
        width = s.n_embd
        self.tok, self.pos = nn.Embedding(WORDS, width), nn.Embedding(64, width)
        layer = {"d_model": width, "nhead": s.n_head, "dim_feedforward": 2 * width, "dropout": s.dropout}
        self.encoder = nn.TransformerEncoderLayer(**layer, batch_first=True, norm_first=True)  # type: ignore[arg-type]
        self.decoder = nn.TransformerDecoderLayer(**layer, batch_first=True, norm_first=True)  # type: ignore[arg-type]
        self.head = nn.Linear(width, WORDS)
        nn.init.normal_(self.tok.weight, std=0.3)
        nn.init.normal_(self.pos.weight, std=0.3)
        if init_std:
            nn.init.normal_(self.head.weight, std=init_std)

    def embed(self, ids: Tensor) -> Tensor:
        """Word and position."""
        out: Tensor = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        return out

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits for each target position: (batch, time, words)."""
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        memory = self.encoder(self.embed(source))
        out: Tensor = self.head(self.decoder(self.embed(target), memory, tgt_mask=mask, tgt_is_causal=True))
        return out


class Translate(Task):
    """Copy each word into the other half of the vocabulary, in reverse order, over variable lengths.

    Mistakes: `unshifted` gives the decoder the very labels, `twice` shifts them once more, `pad_loss` trains on
    padding, `other_words` translates the evaluation by another dictionary, `noise` is a share of wrong target words.
    """

    name = "seq2seq"

    def __init__(
        self, s: Settings, *, unshifted: bool = False, twice: bool = False, pad_loss: bool = False, noise: float = 0.0,
        other_words: bool = False, by_length: bool = False, smooth: float = 0.0, summed: bool = False,
        init_std: float = 0.0, zero_source: bool = False
    ) -> None:  # fmt: skip
        super().__init__(s, shuffle=not by_length)
        self.unshifted, self.twice, self.pad_loss, self.noise = unshifted, twice, pad_loss, noise
        self.other_words, self.by_length, self.smooth, self.summed = other_words, by_length, smooth, summed
        self.zero_source = zero_source
        self.model = EncoderDecoder(s, init_std=init_std)

    def sample(self, row: int, *, held_out: bool = False) -> tuple[Tensor, Tensor]:
        """Source and target ids, padded to 12 and 14."""
        draw = text.rng(row, 21 + held_out)
        longest = 4 + row * 8 // max(1, self.s.train_samples) if self.by_length and not held_out else 10
        words = draw.integers(3, 20, int(draw.integers(max(3, min(longest - 1, 9)), longest + 1)))
        other = (words - 3 + 5) % 17 + 3 if held_out and self.other_words else words
        target = other[::-1] + 18
        if self.noise and not held_out:
            hit = draw.random(len(target)) < self.noise
            target = target * ~hit + draw.integers(21, 38, len(target)) * hit
        source = torch.full((12,), PAD)
        source[: len(words)] = torch.as_tensor(words)
        row_ids = torch.full((14,), PAD)
        row_ids[: len(target) + 2] = torch.tensor([BOS, *target.tolist(), EOS])
        return source * 0 if self.zero_source else source, row_ids

    def batch(self, index: int) -> Batch:
        """Sources and targets."""
        pairs = [self.sample(int(row)) for row in self.rows(index)]
        return torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Cross-entropy in nats per target word."""
        source, target = batch
        inputs, labels = target[:, :-1], target[:, 1:]
        if self.unshifted:
            inputs = labels
        if self.twice:
            inputs, labels = target[:, :-2], target[:, 2:]
        logits = self.model(source, inputs)
        kept = labels != PAD
        shown = labels if self.pad_loss else labels.masked_fill(~kept, -100)
        loss = token_loss(logits, shown)
        if self.smooth:
            loss = (1 - self.smooth) * loss - self.smooth * logits.log_softmax(-1).mean()
        if self.summed:
            loss = functional.cross_entropy(logits.flatten(0, 1), shown.flatten(), ignore_index=-100, reduction="sum")
        return loss, {"token_acc": (logits.argmax(-1) == labels)[kept].float().mean().item()}

    def evaluate(self) -> Record:
        """Loss, token accuracy, and the share of exact greedy translations."""
        pairs = [self.sample(row, held_out=True) for row in range(48)]
        source, target = torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])
        loss, extra = self.loss((source, target))
        return {"loss": float(loss), **extra, "exact_match": self.exact(source, target)}

    def exact(self, source: Tensor, target: Tensor) -> float:
        """Share of rows whose greedy translation is the target."""
        ids = torch.full((len(source), 1), BOS)
        for _ in range(13):
            ids = torch.cat([ids, self.model(source, ids)[:, -1].argmax(-1, keepdim=True)], 1)
        kept = (target != PAD)[:, : ids.shape[1]]
        same = (ids[:, : target.shape[1]] == target) | ~kept
        return same.all(1).float().mean().item()
