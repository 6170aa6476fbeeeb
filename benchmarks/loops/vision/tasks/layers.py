"""Layers that several tasks share."""

from collections.abc import Callable

import torch
from torch import nn

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
}


def mlp(
    inputs: int, outputs: int, *, hidden: int = 64, depth: int = 2, act: str = "relu", dropout: float = 0.0
) -> nn.Sequential:
    """`depth` hidden layers of the same width."""
    layers: list[nn.Module] = []
    width = inputs
    for _ in range(depth):
        layers += [nn.Linear(width, hidden), ACTIVATIONS[act]()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, outputs))


def block(inputs: int, outputs: int, *, norm: bool = True) -> nn.Sequential:
    """3x3 convolution, BatchNorm if wanted, ReLU."""
    layers: list[nn.Module] = [nn.Conv2d(inputs, outputs, 3, padding=1)]
    if norm:
        layers.append(nn.BatchNorm2d(outputs))
    return nn.Sequential(*layers, nn.ReLU())


def cnn(outputs: int, *, width: int = 8, norm: bool = True, dropout: float = 0.0) -> nn.Sequential:
    """Two convolution blocks with pooling and a linear head over 16x16 pictures."""
    return nn.Sequential(
        block(1, width, norm=norm),
        nn.MaxPool2d(2),
        block(width, 2 * width, norm=norm),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(2 * width * 16, outputs),
    )


class Last(nn.Module):
    """The last output of a recurrent layer along time, through a linear head."""

    def __init__(self, core: nn.RNNBase, outputs: int) -> None:
        super().__init__()
        self.core, self.head = core, nn.Linear(core.hidden_size, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps (n, time, features) to (n, outputs)."""
        output: torch.Tensor = self.head(self.core(x)[0][:, -1])
        return output


class Each(nn.Module):
    """Embeds tokens (or takes frames), runs a core over time and gives an output at each place."""

    def __init__(self, embed: nn.Module, core: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.embed, self.core, self.head = embed, core, head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps (n, time[, features]) to (n, time, outputs)."""
        states = self.core(self.embed(x))
        output: torch.Tensor = self.head(states[0] if isinstance(states, tuple) else states)
        return output


class CausalTransformer(nn.Module):
    """A small stack of causal Transformer layers with learned positions; post-norm unless `pre_norm`."""

    def __init__(self, width: int, layers: int, *, pre_norm: bool = True, length: int = 64) -> None:
        super().__init__()
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=pre_norm)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps (n, time, width) to the same shape; no place sees a later one."""
        time = x.shape[1]
        mask = torch.full((time, time), float("-inf"), dtype=x.dtype).triu(1)
        output: torch.Tensor = self.layers(x + self.position[:time], mask=mask)
        return output
