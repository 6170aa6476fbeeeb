"""The small networks of all tasks: a Transformer with switches and a recurrent model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass
class Shape:
    """The form of a network; the second half are switches that faults use."""

    vocab: int = 50
    width: int = 48
    depth: int = 2
    heads: int = 4
    length: int = 48
    dropout: float = 0.0
    outputs: int = 0  # 0 means as many as the vocabulary
    causal: bool = True
    experts: int = 0
    norm: str = "pre"  # pre, post, none
    act: str = "gelu"  # gelu, relu, sigmoid, square
    init: float = 1.0
    head_init: float = 1.0
    residual: bool = True
    attn_scale: float = 1.0
    mix_rows: bool = False
    ff_bias: float = 0.0
    fp8: bool = False


def _fp8(x: Tensor) -> Tensor:
    """Send each row of positions through 8-bit floats with a scale of its own."""
    amax = x.detach().abs().amax(dim=-1, keepdim=True)
    scale = amax / 448.0
    low = (x / scale).to(torch.float8_e4m3fn).to(x.dtype) * scale
    return x + (low - x).detach()


class Block(nn.Module):
    """Attention and a feed-forward part (or a mixture of experts)."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s = s
        self.qkv: nn.Module = nn.Linear(s.width, 3 * s.width)
        self.out: nn.Module = nn.Linear(s.width, s.width)
        count = max(s.experts, 1)
        self.up = nn.ModuleList(nn.Linear(s.width, 2 * s.width) for _ in range(count))
        self.down = nn.ModuleList(nn.Linear(2 * s.width, s.width) for _ in range(count))
        self.router = nn.Linear(s.width, count, bias=False) if s.experts else None
        plain = s.norm == "none"
        self.n1 = nn.Identity() if plain else nn.LayerNorm(s.width)
        self.n2 = nn.Identity() if plain else nn.LayerNorm(s.width)
        self.drop = nn.Dropout(s.dropout)
        self.stats: dict[str, float] = {}
        self.aux = torch.zeros(())
        if s.ff_bias:
            for layer in self.up:
                assert isinstance(layer, nn.Linear)
                nn.init.constant_(layer.bias, s.ff_bias)

    def attend(self, x: Tensor) -> Tensor:
        """Self-attention over the positions (or, by fault, over the rows)."""
        if self.s.mix_rows:
            x = x.transpose(0, 1)
        b, t, d = x.shape
        h = self.s.heads
        q, k, v = (z.view(b, t, h, d // h).transpose(1, 2) for z in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) * (self.s.attn_scale / math.sqrt(d // h))
        self.stats["attn_max"] = float(scores.detach().abs().max())
        if self.s.causal and not self.s.mix_rows:
            mask = torch.ones(t, t, dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, float("-inf"))
        mixed: Tensor = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
        return mixed.transpose(0, 1) if self.s.mix_rows else mixed

    def act(self, x: Tensor) -> Tensor:
        """The activation that the shape names."""
        if self.s.act == "square":
            return functional.relu(x) ** 2
        if self.s.act == "gelu":
            return functional.gelu(x)
        return functional.relu(x) if self.s.act == "relu" else torch.sigmoid(x)

    def feed(self, x: Tensor) -> Tensor:
        """The feed-forward part."""
        if self.router is None:
            hidden = self.act(self.up[0](x))
            self.stats["dead"] = float((hidden.detach().amax(dim=(0, 1)) <= 0).float().mean())
            if self.s.fp8:
                self.stats["fp8_amax_min"] = float(hidden.detach().abs().amax(-1).min())
                hidden = _fp8(hidden)
            out: Tensor = self.down[0](hidden)
            return out
        logits = self.router(x)
        gates = logits.softmax(-1)
        best = gates.argmax(-1)
        load = functional.one_hot(best, gates.shape[-1]).float().mean(dim=(0, 1))
        self.aux = gates.shape[-1] * (load * gates.mean(dim=(0, 1))).sum()
        self.stats["load_max"] = float(load.max())
        result = torch.zeros_like(x)
        for index, (up, down) in enumerate(zip(self.up, self.down, strict=True)):
            weight = (gates[..., index] * (best == index)).unsqueeze(-1)
            result = result + weight * down(self.act(up(x)))
        return result

    def forward(self, x: Tensor) -> Tensor:
        """One layer."""
        for norm, part in ((self.n1, self.attend), (self.n2, self.feed)):
            if self.s.norm == "post":
                x = norm(x + self.drop(part(x)))
            elif self.s.residual:
                x = x + self.drop(part(norm(x)))
            else:
                x = self.drop(part(norm(x)))
        return x


class Net(nn.Module):
    """A small Transformer over token ids."""

    def __init__(self, s: Shape) -> None:
        super().__init__()
        self.s = s
        self.tok = nn.Embedding(s.vocab, s.width)
        self.pos = nn.Embedding(s.length, s.width)
        self.blocks = nn.ModuleList(Block(s) for _ in range(s.depth))
        self.norm = nn.Identity() if s.norm != "pre" else nn.LayerNorm(s.width)
        self.head = nn.Linear(s.width, s.outputs or s.vocab)
        nn.init.normal_(self.tok.weight, std=0.1 * s.init)
        nn.init.normal_(self.pos.weight, std=0.1 * s.init)
        nn.init.normal_(self.head.weight, std=0.05 * s.head_init)
        nn.init.zeros_(self.head.bias)
        if s.init != 1.0:
            for weight in self.blocks.parameters():
                if weight.dim() == 2:
                    weight.data.mul_(s.init)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden state of each position."""
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.norm(x)
        return out

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of each position."""
        logits: Tensor = self.head(self.hidden(ids))
        return logits

    def layers(self) -> list[Block]:
        """The blocks, from the first to the last."""
        return [block for block in self.blocks if isinstance(block, Block)]

    def stat(self, name: str) -> float:
        """The largest value that the blocks hold under `name` (the smallest for minima)."""
        if name.endswith("_min"):
            return min((b.stats.get(name, 0.0) for b in self.layers()), default=0.0)
        return max((b.stats.get(name, 0.0) for b in self.layers()), default=0.0)


class Recurrent(nn.Module):
    """A plain recurrent network over token ids, with a gain on its recurrent weights."""

    def __init__(self, s: Shape, gain: float = 1.0, cell: str = "relu") -> None:
        super().__init__()
        self.s = s
        self.tok = nn.Embedding(s.vocab, s.width)
        self.rnn: nn.Module = (
            nn.GRU(s.width, s.width, batch_first=True)
            if cell == "gru"
            else nn.RNN(s.width, s.width, num_layers=s.depth, nonlinearity=cell, batch_first=True)
        )
        self.head = nn.Linear(s.width, s.outputs or s.vocab)
        if cell != "gru":
            for name, weight in self.rnn.named_parameters():
                if "weight_hh" in name:
                    nn.init.orthogonal_(weight, gain=gain)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of each position."""
        logits: Tensor = self.head(self.rnn(self.tok(ids))[0])
        return logits


def generate(net: nn.Module, ids: Tensor, count: int, length: int) -> Tensor:
    """Continue `ids` by `count` greedy tokens."""
    with torch.no_grad():
        for _ in range(count):
            following = net(ids[:, -length:])[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, following], dim=1)
    return ids
