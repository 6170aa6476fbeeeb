"""Tabular regression, rare-class classification, learning by heart, and a graph network."""

from itertools import pairwise

import torch
from torch import nn

from benchmarks.loops.vision import data
from benchmarks.loops.vision.config import Config
from benchmarks.loops.vision.task import Batch, Task, accuracy, cross_entropy, first_input
from benchmarks.loops.vision.tasks.layers import mlp


def flat(model: nn.Module, batch: Batch) -> torch.Tensor:
    """The model's single output as a vector (n)."""
    output: torch.Tensor = model(batch[0]).squeeze(1)
    return output


def mse(output: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Mean square error against the last tensor of the batch."""
    return nn.functional.mse_loss(output, batch[-1])


def r_squared(output: torch.Tensor, batch: Batch) -> dict[str, float]:
    """Share of the target's variance that is explained."""
    target = batch[-1]
    return {"r2": (1 - (output - target).square().mean() / target.var()).item()}


def regression(config: Config) -> Task:
    """A smooth function of a dozen features."""
    options = dict(config.data)
    count = options.pop("n_train", 1600)
    train, val = (data.table(n, seed=config.seed + k, **options) for k, n in ((0, count), (1000, 400)))
    model = mlp(options.get("width", 12), 1, **config.model)
    return Task(model, list(train), list(val), flat, mse, r_squared)


def rare_scores(logits: torch.Tensor, batch: Batch) -> dict[str, float]:
    """Accuracy, recall and F1 of class 1, and area under the ROC curve (by ranks)."""
    target, found = batch[-1], logits.argmax(1)
    hits = ((found == 1) & (target == 1)).sum().item()
    ones = (target == 1).sum().item()
    rank = (logits[:, 1] - logits[:, 0]).argsort().argsort().float() + 1
    zeros = len(target) - ones
    auc = (rank[target == 1].sum().item() - ones * (ones + 1) / 2) / max(1, ones * zeros)
    f1 = 2 * hits / max(1, ones + (found == 1).sum().item())
    return {"acc": (found == target).float().mean().item(), "recall": hits / max(1, ones), "f1": f1, "auc": auc}


def fraud(config: Config) -> Task:
    """Two classes, one of them rare."""
    options = dict(config.data)
    count = options.pop("n_train", 2400)
    train, val = (data.rare_class(n, seed=config.seed + k, **options) for k, n in ((0, count), (1000, 800)))
    return Task(
        mlp(10, 2, **({"hidden": 32} | config.model)), list(train), list(val), first_input, cross_entropy, rare_scores
    )


def memory(config: Config) -> Task:
    """A wide table with little signal, which a wide network learns by heart."""
    count = config.data.get("n_train", 1600)
    train, val = (data.wide_table(n, seed=config.seed + k) for k, n in ((0, count), (1000, 400)))
    model = mlp(400, 2, **({"hidden": 256, "depth": 1} | config.model))
    return Task(model, list(train), list(val), first_input, cross_entropy, accuracy)


class GCN(nn.Module):
    """Graph convolutions (Kipf & Welling 2017) over one fixed graph."""

    adjacency: torch.Tensor

    def __init__(
        self, adjacency: torch.Tensor, outputs: int, *, hidden: int = 16, depth: int = 2, dropout: float = 0.3
    ) -> None:
        super().__init__()
        self.register_buffer("adjacency", adjacency)
        widths = [16] + [hidden] * (depth - 1) + [outputs]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps node features (1, nodes, width) to logits (1, nodes, outputs)."""
        for k, layer in enumerate(self.layers):
            x = self.adjacency @ layer(self.dropout(torch.relu(x) if k else x))
        return x


def graph(config: Config) -> Task:
    """The group of each node of one graph, of which a part is labelled; one batch is the whole graph."""
    nodes = config.data.get("nodes", 300)
    adjacency, x, group = data.communities(nodes, seed=config.seed)
    known = torch.arange(nodes) % 3 == 0
    train, val = (group.masked_fill(~part, -100)[None] for part in (known, ~known))
    model = GCN(adjacency, 4, **config.model)
    return Task(model, [x[None], train], [x[None], val], first_input, cross_entropy, accuracy)
