"""The model that the workloads train: a small decoder as users write them, and the step of its training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the model and its batches are.

    Args:
        width: Of the model.
        layers: Of the model.
        vocabulary: Tokens.
        rows: Of a batch.
        length: Tokens of a row.
        recomputed: Whether layers are computed again in backward.
    """

    width: int = 1536
    layers: int = 2
    vocabulary: int = 8000
    rows: int = 4
    length: int = 512
    recomputed: bool = False


class Layer(nn.Module):
    """Attention and a feed-forward part, each behind a norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mixed, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, values: Tensor) -> Tensor:
        """Return values of (rows, length, width)."""
        rows, length, width = values.shape
        heads = self.mixed(self.norms[0](values)).view(rows, length, 3, width // 64, 64).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        values = values + self.joined(seen.transpose(1, 2).reshape(rows, length, width))
        grown: Tensor = functional.gelu(self.up(self.norms[1](values)))
        whole: Tensor = values + self.down(grown)
        return whole


class Decoder(nn.Module):
    """Tokens in, logits out."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.layers = nn.ModuleList(Layer(sizes.width) for _ in range(sizes.layers))
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits of (rows, length, vocabulary)."""
        values = self.embedding(ids)
        for layer in self.layers:
            values = checkpoint(layer, values, use_reentrant=False) if self.sizes.recomputed else layer(values)
        logits: Tensor = self.head(values)
        return logits


class Training:
    """A model with its optimizer and its data, on a device.

    Args:
        device: Where.
        sizes: How large.
        dtype: Of the parameters.
    """

    def __init__(self, device: torch.device, sizes: Sizes = Sizes(), dtype: torch.dtype = torch.bfloat16) -> None:
        self.device, self.sizes = device, sizes
        self.generator = torch.Generator().manual_seed(0)
        self.model = build_model(device, sizes, dtype)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4, foreach=True)

    def batch(self, length: int = 0) -> Tensor:
        """Return a batch of random tokens, (rows, length)."""
        shape = (self.sizes.rows, length or self.sizes.length)
        return torch.randint(0, self.sizes.vocabulary, shape, generator=self.generator).to(self.device, copy=True)

    def loss(self, ids: Tensor) -> Tensor:
        """Return the mean loss of the next tokens."""
        logits = self.model(ids)
        return functional.cross_entropy(logits.float().flatten(0, 1), ids.flatten())

    def step(self, length: int = 0) -> Tensor:
        """Make a step and return its loss, which holds no graph."""
        loss = self.loss(self.batch(length))
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def steps(self, count: int) -> Iterator[int]:
        """Make steps, and yield the number of each when it is over."""
        for number in range(count):
            self.step()
            yield number

    def train(self, count: int) -> None:
        """Make steps."""
        for _ in self.steps(count):
            pass


def build_model(device: torch.device, sizes: Sizes, dtype: torch.dtype = torch.bfloat16) -> Decoder:
    """Return a model, made on a device."""
    torch.manual_seed(0)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device:
            return Decoder(sizes)
    finally:
        torch.set_default_dtype(usual)
