"""Tiny networks: a decoder, an encoder, a recurrent network, and low-rank adapters."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.language.settings import Settings


class Experts(nn.Module):
    """A mixture of experts with a top-1 router; it keeps the balance loss and the shares of its last call."""

    def __init__(self, width: int, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(experts)
        )
        self.balance = torch.zeros(())
        self.shares = torch.zeros(experts)

    def forward(self, x: Tensor) -> Tensor:
        """Send each position to its best expert."""
        gates = self.router(x).softmax(-1)
        best = gates.argmax(-1)
        chosen = functional.one_hot(best, len(self.experts)).to(x.dtype)
        self.shares = chosen.mean((0, 1)).detach()
        self.balance = len(self.experts) * (chosen.mean((0, 1)) * gates.mean((0, 1))).sum()
        outputs = torch.stack([expert(x) for expert in self.experts], -1)
        out: Tensor = (outputs * (chosen * gates)[..., None, :]).sum(-1)
        return out


class Block(nn.Module):
    """Attention and a feed-forward part; without residuals it is a plain deep stack."""

    def __init__(self, s: Settings, *, residual: bool, experts: int, act: str, causal: bool) -> None:
        super().__init__()
        width = s.n_embd
        self.heads, self.residual, self.causal, self.drop = s.n_head, residual, causal, s.dropout
        self.norm1 = nn.LayerNorm(width) if residual else nn.Identity()
        self.norm2 = nn.LayerNorm(width) if residual else nn.Identity()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        activation = {"gelu": nn.GELU, "relu": nn.ReLU, "sigmoid": nn.Sigmoid}[act]
        self.mlp: nn.Module = (
            Experts(width, experts)
            if experts
            else nn.Sequential(nn.Linear(width, 4 * width), activation(), nn.Linear(4 * width, width))
        )

    def attend(self, x: Tensor) -> Tensor:
        """Multi-head attention: (batch, time, width)."""
        batch, time, width = x.shape
        q, k, v = (part.view(batch, time, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, 2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        out: Tensor = self.proj(y.transpose(1, 2).reshape(batch, time, width))
        return functional.dropout(out, self.drop, self.training)

    def forward(self, x: Tensor) -> Tensor:
        """One block."""
        if not self.residual:
            out: Tensor = self.mlp(self.attend(x))
            return out
        x = x + self.attend(self.norm1(x))
        return x + functional.dropout(self.mlp(self.norm2(x)), self.drop, self.training)


class Transformer(nn.Module):
    """A small decoder (causal) or encoder over token ids; gives logits or features per position."""

    def __init__(
        self, vocab: int, s: Settings, *, outputs: int = 0, residual: bool = True, experts: int = 0, act: str = "gelu",
        causal: bool = True, init_std: float = 0.02, head_std: float = 0.02
    ) -> None:  # fmt: skip
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, s.n_embd), nn.Embedding(512, s.n_embd)
        self.blocks = nn.ModuleList(
            Block(s, residual=residual, experts=experts, act=act, causal=causal) for _ in range(s.n_layer)
        )
        self.norm = nn.LayerNorm(s.n_embd)
        self.head = nn.Linear(s.n_embd, outputs or vocab, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=init_std)
        nn.init.normal_(self.head.weight, std=head_std)

    def features(self, ids: Tensor) -> Tensor:
        """Hidden states before the head: (batch, time, width)."""
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.norm(x)
        return out

    def forward(self, ids: Tensor) -> Tensor:
        """Logits per position: (batch, time, outputs)."""
        out: Tensor = self.head(self.features(ids))
        return out


class Bag(nn.Module):
    """Mean of word embeddings through ReLU layers whose biases start at `bias`: (batch, time) to (batch, outputs)."""

    def __init__(self, width: int, outputs: int, *, bias: float = 0.0, layers: int = 3) -> None:
        super().__init__()
        self.tok = nn.Embedding(256, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, outputs)
        self.act = nn.ModuleList(nn.ReLU() for _ in range(layers))
        for layer in self.hidden:
            nn.init.constant_(layer.bias, bias)  # type: ignore[arg-type]

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of the classes."""
        x = self.tok(ids).mean(1)
        for layer, act in zip(self.hidden, self.act, strict=True):
            x = act(layer(x))
        out: Tensor = self.head(x)
        return out


class Recurrent(nn.Module):
    """A plain tanh or ReLU recurrent network with a head: (batch, time) ids to (batch, outputs)."""

    def __init__(self, vocab: int, width: int, outputs: int, *, act: str = "tanh", scale: float = 1.0) -> None:
        super().__init__()
        self.tok, self.head = nn.Embedding(vocab, width), nn.Linear(width, outputs)
        self.rnn = nn.RNN(width, width, nonlinearity=act, batch_first=True)
        with torch.no_grad():
            nn.init.orthogonal_(self.rnn.weight_hh_l0).mul_(scale)  # type: ignore[arg-type]

    def forward(self, ids: Tensor) -> Tensor:
        """Logits after the last token."""
        states, _ = self.rnn(self.tok(ids))
        out: Tensor = self.head(states[:, -1])
        return out


class Adapter(nn.Module):
    """A frozen linear layer with a trained low-rank difference (LoRA)."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """Base output plus the scaled low-rank one."""
        out: Tensor = self.base(x) + (x @ self.down.T) @ self.up.T * self.scale
        return out


def add_adapters(model: Transformer, rank: int, alpha: float) -> None:
    """Freeze the model and put adapters on its attention layers."""
    model.requires_grad_(requires_grad=False)
    for block in model.blocks:
        assert isinstance(block, Block)
        for name in ("qkv", "proj"):
            setattr(block, name, Adapter(getattr(block, name), rank, alpha))
