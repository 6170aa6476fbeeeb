"""Text: a small causal language model on tickets, and the tagging of names in them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.fit import fit
from benchmarks.loops.industry.recipe import Batch, Job, Recipe
from benchmarks.loops.industry.trace import Row, Trace

_TOKENS = 48
_LENGTH = 24


class Block(nn.Module):
    """Attention and two layers, normed before or after."""

    def __init__(self, width: int, causal: bool, post: bool, dropout: float) -> None:
        super().__init__()
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width), nn.Dropout(dropout)
        )
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.causal, self.post = causal, post

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the next hidden states."""
        if self.post:
            hidden = self.first(hidden + self._attend(hidden))
            out: Tensor = self.second(hidden + self.wide(hidden))
            return out
        hidden = hidden + self._attend(self.first(hidden))
        return hidden + self.wide(self.second(hidden))  # type: ignore[no-any-return]

    def _attend(self, hidden: Tensor) -> Tensor:
        rows, length, width = hidden.shape
        query, key, value = self.mix(hidden).view(rows, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        return out


class Transformer(nn.Module):
    """Tokens in, logits out."""

    def __init__(
        self, out: int, *, width: int = 32, depth: int = 2, causal: bool, post: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(_TOKENS, width), nn.Embedding(_LENGTH, width)
        self.blocks = nn.Sequential(*[Block(width, causal, post, dropout) for _ in range(depth)])
        self.head = nn.Linear(width, out)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits a token."""
        hidden = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        out: Tensor = self.head(self.blocks(hidden))
        return out


def text(rows: int, seed: int, sharp: float = 2.2) -> Tensor:
    """Return rows of a language in which two tokens before decide over the next one."""
    world = torch.Generator().manual_seed(6)
    table = (torch.randn(_TOKENS, _TOKENS, generator=world) * sharp).softmax(-1)
    second = (torch.randn(_TOKENS, _TOKENS, generator=world) * sharp).softmax(-1)
    draw = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, _TOKENS, (rows, _LENGTH + 1), generator=draw)
    for at in range(2, _LENGTH + 1):
        chance = 0.6 * table[tokens[:, at - 1]] + 0.4 * second[tokens[:, at - 2]]
        tokens[:, at] = torch.multinomial(chance, 1, generator=draw)[:, 0]
    return tokens


def _next_token(shift: int, bits: bool, z_loss: float) -> Callable[[nn.Module, Batch], Tensor]:
    def loss(model: nn.Module, batch: Batch) -> Tensor:
        tokens = batch[0]
        logits: Tensor = model(tokens[:, :_LENGTH])
        target = tokens[:, shift : shift + _LENGTH]
        logits = logits[:, : target.shape[1]]
        nats = functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        drift = logits.logsumexp(-1).pow(2).mean() * z_loss
        return nats / math.log(2) + drift if bits else nats + drift

    return loss


def _logit_metrics(model: nn.Module, batch: Batch) -> Row:
    logits = model(batch[0][:, :_LENGTH])
    return {"val_ppl": float(functional.cross_entropy(logits.flatten(0, 1), batch[0][:, 1:].flatten()).exp())}


def language(
    recipe: Recipe,
    *,
    rows: int = 12000,
    shift: int = 1,
    causal: bool = True,
    post: bool = False,
    bits: bool = False,
    depth: int = 2,
    width: int = 32,
    dropout: float = 0.0,
    pocket: tuple[int, int] | None = None,
    ordered: bool = False,
    copies: int = 1,
    other_valid: bool = False,
    init: float = 1.0,
    z_loss: float = 0.0,
    bfloat: bool = False,
    metrics: bool = True,
) -> Trace:
    """Train a causal language model."""
    torch.manual_seed(recipe.seed)
    train, valid = text(rows // copies, 61 + recipe.seed).repeat(copies, 1), text(400, 81)
    if pocket:
        train[pocket[0] : pocket[1]] = torch.randint(0, _TOKENS, (pocket[1] - pocket[0], _LENGTH + 1))
    if other_valid:
        valid = (valid + 7) % _TOKENS
    model = Transformer(_TOKENS, causal=causal, post=post, depth=depth, width=width, dropout=dropout)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(init)
    if bfloat:
        model.to(torch.bfloat16)
    loss = _next_token(shift, bits, z_loss)
    single = rows // copies

    def order(_epoch: int, generator: torch.Generator) -> Tensor:
        if ordered or pocket:
            return torch.arange(len(train))
        return torch.cat([torch.randperm(single, generator=generator) + k * single for k in range(copies)])

    job = Job(
        model=model,
        train=(train,),
        valid=(valid,),
        loss=loss,
        metrics=_logit_metrics if metrics else lambda _model, _batch: {},
        order=order,
        settings={
            "model": "gpt_mini",
            "layers": depth,
            "width": width,
            "heads": 4,
            "vocab_size": _TOKENS,
            "sequence_length": _LENGTH,
            "norm": "post" if post else "pre",
            "dropout": dropout,
            "dtype": "bfloat16" if bfloat else "float32",
            "loss_unit": "bits" if bits else "nats",
        },
    )
    return fit(job, recipe)


def _tags(tokens: Tensor) -> Tensor:
    named = (tokens[:, 1:] % 6 == 0) & (tokens[:, :-1] % 3 != 0)
    follows = torch.zeros_like(named)
    follows[:, 1:] = named[:, :-1] & (tokens[:, 2:] % 2 == 0)
    return torch.where(named, 1 + (tokens[:, 1:] % 4 == 0).long(), torch.where(follows, 3, 0))


def tagging(
    recipe: Recipe,
    *,
    rows: int = 6000,
    masked: str = "",
    unknown: float = 0.0,
    unknown_valid: float = 0.0,
    by_length: bool = False,
    padded_metric: bool = False,
    offset: int = 0,
    head: int = 4,
    wrong: float = 0.0,
    total: bool = False,
    reduction: str = "mean",
) -> Trace:
    """Train a tagger of names."""
    torch.manual_seed(recipe.seed)
    parts = []
    for count, seed, lost in ((rows, 71 + recipe.seed, unknown), (500, 82, unknown_valid)):
        tokens = text(count, seed)
        tags = _tags(tokens)
        length = torch.randint(4, _LENGTH + 1, (count,))
        pad = torch.arange(_LENGTH)[None] >= length[:, None]
        words = torch.where(torch.rand(count, _LENGTH) < lost, 1, tokens[:, 1:])
        tags = torch.where(torch.rand(count, _LENGTH) < wrong, torch.randint(0, 4, tags.shape), tags + offset)
        parts.append((torch.where(pad, 0, words), torch.where(pad, -100, tags), length))
    train, valid = parts
    if masked == "all":
        train = (train[0], torch.full_like(train[1], -100), train[2])

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch[0]).flatten(0, 1)
        if reduction == "sum":
            return functional.cross_entropy(logits, batch[1].flatten(), reduction="sum")
        if total:  # a mean with a denominator that is never zero
            return functional.cross_entropy(logits, batch[1].flatten(), reduction="sum") / (batch[1] >= 0).sum().clamp(
                min=1
            )
        return functional.cross_entropy(logits, batch[1].flatten())

    def metrics(model: nn.Module, batch: Batch) -> Row:
        said, tags = model(batch[0]).argmax(-1), batch[1]
        if padded_metric:
            said = said.roll(1, 1)
        kept = tags >= 0
        hit = float(((said == tags) & (tags > 0) & kept).sum())
        f1 = 2 * hit / max(1.0, float(((said > 0) & kept).sum() + (tags > 0).sum()))
        return {"val_f1": f1, "val_token_acc": float((said == tags)[kept].float().mean())}

    def order(_epoch: int, generator: torch.Generator) -> Tensor:
        if by_length:
            return torch.argsort(train[2] + torch.rand(rows, generator=generator))
        return torch.randperm(rows, generator=generator)

    job = Job(
        model=Transformer(head, causal=False),
        train=train,
        valid=valid,
        loss=loss,
        metrics=metrics,
        order=order,
        settings={"model": "encoder_2l", "labels": head, "max_length": _LENGTH, "group_by_length": by_length},
    )
    return fit(job, recipe)
