"""Tabular models, recommenders, graph networks and regression on physics."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import data
from benchmarks.loops.studio.core import Values
from benchmarks.loops.studio.loop import Batch, Bench, LossFn


def mlp(sizes: list[int], drop: float = 0.0, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """A plain network."""
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), act(), nn.Dropout(drop)]
    return nn.Sequential(*layers[:-2])


def auc(score: Tensor, y: Tensor) -> float:
    """Area under the ROC curve by ranks."""
    if not bool(torch.isfinite(score).all()):
        return float("nan")
    rank = torch.empty(len(score))
    rank[score.argsort()] = torch.arange(1, len(score) + 1).float()
    p = y.sum().item()
    n = len(y) - p
    return (rank[y > 0].sum().item() - p * (p + 1) / 2) / max(1.0, p * n)


def logloss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Binary cross-entropy from logits."""
    return {"loss": functional.binary_cross_entropy_with_logits(model(batch[0])[:, 0], batch[1])}


def binary(model: nn.Module, batch: Batch) -> Values:
    """Log-loss, AUC, recall and precision at a half."""
    z = model(batch[0])[:, 0]
    y = batch[1]
    hit = ((z > 0) & (y > 0)).sum().item()
    return {
        "loss": functional.binary_cross_entropy_with_logits(z, y).item(),
        "auc": auc(z, y),
        "recall": hit / max(1, int(y.sum())),
        "precision": hit / max(1, int((z > 0).sum())),
    }


def tabular(
    seed: int,
    count: int = 3000,
    *,
    positive: float = 0.4,
    width: int = 48,
    drop: float = 0.0,
    net: nn.Module | None = None,
    loss: LossFn = logloss,
) -> Bench:
    """A binary target from sixteen columns."""
    torch.manual_seed(seed)
    return Bench(
        net or mlp([16, width, width, 1], drop),
        data.table(count, seed, positive),
        {"val": data.table(1500, seed + 5000, positive)},
        loss,
        binary,
        {"model": "mlp", "n_features": 16, "hidden": width, "dropout": drop},
    )


class Taste(nn.Module):
    """Users and items as vectors."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.user = nn.Embedding(120, size)
        self.item = nn.Embedding(80, size)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, who: Tensor, what: Tensor) -> Tensor:
        """Scores."""
        score: Tensor = (self.user(who) * self.item(what)).sum(-1)
        return score


def preferred(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """BPR: the liked item above the other one."""
    t = batch[0]
    return {"loss": -functional.logsigmoid(model(t[:, 0], t[:, 1]) - model(t[:, 0], t[:, 2])).mean()}


def swapped(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """BPR with the two columns exchanged."""
    return preferred(model, (batch[0][:, [0, 2, 1]],))


def ranking(model: nn.Module, batch: Batch) -> Values:
    """Loss, share of pairs in order, and NDCG of the true items."""
    g = data.gen(99)
    u, v = torch.randn(120, 4, generator=g), torch.randn(80, 4, generator=g)
    gain = (u @ v.T > 2.5).float()
    score = model(torch.arange(120)[:, None], torch.arange(80)[None])
    top = score.topk(10, 1).indices
    weight = 1 / torch.log2(torch.arange(2, 12).float())
    best = gain.topk(10, 1).values
    ndcg = (gain.gather(1, top) * weight).sum(1) / (best * weight).sum(1).clamp(min=0.1)
    t = batch[0]
    order = (model(t[:, 0], t[:, 1]) > model(t[:, 0], t[:, 2])).float().mean()
    return {
        "loss": preferred(model, batch)["loss"].item(),
        "pair_auc": order.item(),
        "ndcg10": ndcg.mean().item(),
    }


def recommend(seed: int, count: int = 12000, loss: LossFn = preferred, size: int = 8) -> Bench:
    """Pairs of liked and other items."""
    torch.manual_seed(seed)
    return Bench(
        Taste(size),
        (data.ratings(count, seed),),
        {"val": (data.ratings(2000, seed + 5000),)},
        loss,
        ranking,
        {"model": "bpr_mf", "emb_dim": size, "n_users": 120, "n_items": 80},
    )


class Graph(nn.Module):
    """Graph convolutions on one fixed graph."""

    def __init__(self, a: Tensor, depth: int = 2, width: int = 24, classes: int = 4) -> None:
        super().__init__()
        self.a = a
        sizes = [12] + [width] * (depth - 1) + [classes]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of all nodes."""
        for i, layer in enumerate(self.layers):
            x = self.a @ layer(x)
            x = functional.relu(x) if i < len(self.layers) - 1 else x
        return x


def graph(seed: int, depth: int = 2, nodes: int = 240, shuffle: bool = False) -> Bench:
    """Nodes of a block graph, half of them with labels; full-batch."""
    torch.manual_seed(seed)
    x, a, y = data.community(seed, nodes)
    if shuffle:
        y = y[torch.randperm(nodes)]
    half = nodes // 2

    def loss(model: nn.Module, _batch: Batch) -> dict[str, Tensor]:
        return {"loss": functional.cross_entropy(model(x)[:half], y[:half])}

    def metrics(model: nn.Module, _batch: Batch) -> Values:
        z = model(x)
        hit = (z.argmax(1) == y).float()
        return {
            "loss": functional.cross_entropy(z[half:], y[half:]).item(),
            "train_acc": hit[:half].mean().item(),
            "acc": hit[half:].mean().item(),
        }

    return Bench(
        Graph(a, depth),
        (torch.zeros(1, 1),),
        {"val": (x,)},
        loss,
        metrics,
        {"model": "gcn", "num_layers": depth, "hidden_channels": 24},
    )
