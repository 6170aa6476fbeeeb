"""Churn and credit: customers as rows of numbers, few of them positive; and demand, as a network that forecasts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.fit import fit
from benchmarks.loops.industry.measure import auc, detection
from benchmarks.loops.industry.recipe import Batch, Job, Recipe
from benchmarks.loops.industry.trace import Row, Trace

_WIDTH = 20


def _customers(count: int, positive: float, seed: int, hard: float) -> Batch:
    world = torch.Generator().manual_seed(8)
    first = torch.randn(_WIDTH, 6, generator=world)
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, _WIDTH, generator=draw)
    score = torch.tanh(rows @ first * 0.6).prod(1) * 12 + (rows @ first).sum(1) * 0.35
    score = score + hard * torch.randn(count, generator=draw)
    cut = torch.quantile(score, 1 - positive)
    return rows, (score > cut).float()


def _network(width: int, depth: int, *, kind: type[nn.Module], dropout: float, init: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    last = _WIDTH
    for _ in range(depth):
        layers += [nn.Linear(last, width), kind()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        last = width
    network = nn.Sequential(*layers, nn.Linear(last, 1))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(init)
    return network


def _churn_loss(weight: float, kind: str) -> Callable[[nn.Module, Batch], Tensor]:
    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logit = model(batch[0]).squeeze(1)
        if kind == "sigmoid_twice":
            return functional.binary_cross_entropy_with_logits(logit.sigmoid(), batch[1])
        if kind == "sign":
            return -functional.binary_cross_entropy_with_logits(logit, batch[1])
        if kind == "sum":
            return functional.binary_cross_entropy_with_logits(logit, batch[1], reduction="sum")
        return functional.binary_cross_entropy_with_logits(logit, batch[1], pos_weight=torch.tensor(weight))

    return loss


def _churn_metrics(threshold: float) -> Callable[[nn.Module, Batch], Row]:
    def metrics(model: nn.Module, batch: Batch) -> Row:
        scores = model(batch[0]).squeeze(1).sigmoid()
        return {"val_auc": auc(scores, batch[1]), **detection(scores, batch[1], threshold)}

    return metrics


def churn(
    recipe: Recipe,
    *,
    rows: int = 16000,
    positive: float = 0.2,
    width: int = 48,
    depth: int = 2,
    dropout: float = 0.0,
    init: float = 1.0,
    weight: float = 1.0,
    kind: str = "",
    noise: float = 0.0,
    shuffled: bool = False,
    constant: bool = False,
    threshold: float = 0.5,
    freeze: bool = False,
    activation: type[nn.Module] = nn.ReLU,
    hard: float = 0.4,
    shared: bool = False,
    valid_scale: float = 1.0,
) -> Trace:
    """Train a classifier of customers."""
    torch.manual_seed(recipe.seed)
    train, valid = _customers(rows, positive, 21 + recipe.seed, hard), _customers(4000, positive, 77, hard)
    if noise:
        flip = torch.rand(rows) < noise
        train = (train[0], torch.where(flip, 1 - train[1], train[1]))
    if shuffled:
        train = (train[0], train[1][torch.randperm(rows)])
        valid = (valid[0], valid[1][torch.randperm(4000)])
    if constant:
        train, valid = (torch.zeros_like(train[0]), train[1]), (torch.zeros_like(valid[0]), valid[1])
    if shared:
        valid = (train[0][:4000], train[1][:4000])
    valid = (valid[0] * valid_scale, valid[1])
    model = _network(width, depth, kind=activation, dropout=dropout, init=init)
    if freeze:
        model.requires_grad_(requires_grad=False)
        model[-1].bias.requires_grad_()
    job = Job(
        model=model,
        train=train,
        valid=valid,
        loss=_churn_loss(weight, kind),
        metrics=_churn_metrics(threshold),
        settings={
            "model": f"mlp_{depth}x{width}",
            "loss": "bce_with_logits",
            "pos_weight": weight,
            "dropout": dropout,
            "train_rows": rows,
            "positive_share": positive,
        },
    )
    return fit(job, recipe)


def _sales(count: int, seed: int, scale: float) -> Batch:
    rows, _ = _customers(count, 0.5, seed, 0.0)
    world = torch.Generator().manual_seed(18)
    first, second = torch.randn(_WIDTH, 12, generator=world) * 0.4, torch.randn(12, generator=world)
    target = torch.relu(rows @ first) @ second + 0.1 * torch.randn(count, generator=torch.Generator().manual_seed(seed))
    return rows, scale * (target + 3)


def _demand_loss(kind: str) -> Callable[[nn.Module, Batch], Tensor]:
    def loss(model: nn.Module, batch: Batch) -> Tensor:
        out: Tensor = model(batch[0])
        if kind == "broadcast":
            return (out - batch[1][None, :]).pow(2).mean()
        if kind == "sqrt":
            return (out.squeeze(1) - batch[1]).abs().sub(0.02).sqrt().mean()
        return (out.squeeze(1) - batch[1]).pow(2).mean()

    return loss


def _demand_metrics(model: nn.Module, batch: Batch) -> Row:
    error = model(batch[0]).squeeze(1) - batch[1]
    return {"val_mae": float(error.abs().mean()), "val_r2": float(1 - error.pow(2).mean() / batch[1].var())}


def demand(
    recipe: Recipe,
    *,
    rows: int = 12000,
    scale: float = 300.0,
    width: int = 64,
    depth: int = 2,
    init: float = 1.0,
    kind: str = "",
    activation: type[nn.Module] = nn.ReLU,
    bad_step: int | None = None,
    shuffled: bool = False,
    dropout: float = 0.0,
) -> Trace:
    """Train a forecast of sold units, mean squared error on units as they are."""
    torch.manual_seed(recipe.seed)
    train, valid = _sales(rows, 31 + recipe.seed, scale), _sales(3000, 78, scale)
    if shuffled:
        train, valid = (train[0], train[1][torch.randperm(rows)]), (valid[0], valid[1][torch.randperm(3000)])

    def touch(step: int, _rows: Tensor, batch: Batch) -> Batch:
        return (batch[0] * 50, batch[1] * 50) if step == bad_step else batch

    job = Job(
        model=_network(width, depth, kind=activation, dropout=dropout, init=init),
        train=train,
        valid=valid,
        loss=_demand_loss(kind),
        metrics=_demand_metrics,
        touch=touch,
        settings={"model": f"mlp_{depth}x{width}", "loss": "mse", "target": "units_per_week", "dropout": dropout},
    )
    return fit(job, recipe)
