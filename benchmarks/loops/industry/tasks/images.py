"""Product images: kinds of defects by a small network with BatchNorm, and the position of a keypoint."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.industry.fit import fit
from benchmarks.loops.industry.measure import accuracy
from benchmarks.loops.industry.recipe import Batch, Job, Recipe
from benchmarks.loops.industry.trace import Row, Trace

_SIDE = 12
_KINDS = 5


def _pictures(count: int, seed: int, share: tuple[float, ...], noise: float) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    kind = torch.multinomial(torch.tensor(share, dtype=torch.float), count, replacement=True, generator=draw)
    image = noise * torch.randn(count, 1, _SIDE, _SIDE, generator=draw)
    for row in range(count):
        at = torch.randint(1, _SIDE - 4, (2,), generator=draw).tolist()
        spot = image[row, 0]
        if kind[row] == 1:
            spot[at[0], at[1] : at[1] + 4] += 1.6
        elif kind[row] == 2:
            spot[at[0] : at[0] + 4, at[1]] += 1.6
        elif kind[row] == 3:
            spot[at[0] : at[0] + 2, at[1] : at[1] + 2] += 1.6
        elif kind[row] == 4:
            spot[at[0] : at[0] + 3, at[1] : at[1] + 3].fill_diagonal_(2.0)
    return image * 0.5 + 0.6, kind


def _network(head: int, *, dropout: float, normed: bool, shift: float, momentum: float, deep: int = 0) -> nn.Sequential:
    def norm(width: int) -> nn.Module:
        return nn.BatchNorm2d(width, momentum=momentum) if normed else nn.Identity()

    more: list[nn.Module] = []
    for _ in range(deep):
        more += [nn.Conv2d(24, 24, 3, padding=1), nn.Sigmoid()]
    network = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), norm(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), norm(24), nn.ReLU(), nn.MaxPool2d(2),
        *more, nn.Flatten(), nn.Dropout(dropout), nn.Linear(24 * 9, head),
    )  # fmt: skip
    for layer in network:
        if isinstance(layer, nn.Conv2d) and shift:
            nn.init.constant_(layer.bias, -shift) if layer.bias is not None else None
    return network


def _metrics(model: nn.Module, batch: Batch) -> Row:
    logits = model(batch[0])
    said, rare = logits.argmax(-1), batch[1] > 0
    found = float((said[rare] == batch[1][rare]).float().mean())
    return {**accuracy(logits, batch[1]), "val_defect_recall": found}


def _loss(kind: str, smoothing: float) -> Callable[[nn.Module, Batch], Tensor]:
    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch[0])
        if kind == "softmax":
            logits = logits.softmax(-1)
        if kind == "rows":
            return functional.nll_loss(logits.log_softmax(0), batch[1])
        return functional.cross_entropy(logits, batch[1], label_smoothing=smoothing)

    return loss


def defects(
    recipe: Recipe,
    *,
    rows: int = 2400,
    share: tuple[float, ...] = (1, 1, 1, 1, 1),
    noise: float = 0.4,
    dropout: float = 0.0,
    head: int = _KINDS,
    normed: bool = True,
    momentum: float = 0.1,
    dead: float = 0.0,
    deep: int = 0,
    kind: str = "",
    smoothing: float = 0.0,
    wrong: float = 0.0,
    blank: bool = False,
    raw_valid: bool = False,
    pocket: tuple[int, int] | None = None,
    sort: bool = False,
    copies: int = 1,
    augment: float = 0.0,
) -> Trace:
    """Train a classifier of defects."""
    torch.manual_seed(recipe.seed)
    train, valid = _pictures(rows, 41 + recipe.seed, share, noise), _pictures(1000, 79, share, noise)
    if wrong:
        flip = torch.rand(rows) < wrong
        train = (train[0], torch.where(flip, torch.randint(0, _KINDS, (rows,)), train[1]))
    if blank:
        train, valid = (train[0] * 0, train[1]), (valid[0] * 0, valid[1])
    if raw_valid:
        valid = (valid[0] * 3 - 1.5, valid[1])
    if copies > 1:
        train = (train[0].repeat(copies, 1, 1, 1), train[1].repeat(copies))

    def touch(_step: int, at: Tensor, batch: Batch) -> Batch:
        image, label = batch
        if pocket:
            bad = (at >= pocket[0]) & (at < pocket[1])
            label = torch.where(bad, (label + 2) % _KINDS, label)
        return image + augment * torch.randn_like(image), label

    def order(_epoch: int, generator: torch.Generator) -> Tensor:
        if sort:
            return torch.argsort(train[1] + 0.5 * torch.rand(len(train[1]), generator=generator))
        if pocket:
            return torch.arange(len(train[1]))
        return torch.randperm(len(train[1]), generator=generator)

    job = Job(
        model=_network(head, dropout=dropout, normed=normed, shift=dead, momentum=momentum, deep=deep),
        train=train,
        valid=valid,
        loss=_loss(kind, smoothing),
        metrics=_metrics,
        touch=touch,
        order=order,
        settings={
            "model": "conv2_bn" if normed else "conv2",
            "num_classes": head,
            "dropout": dropout,
            "images": len(train[1]),
        },
    )
    return fit(job, recipe)


def _points(count: int, seed: int, scale: float) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    at = torch.rand(count, 2, generator=draw) * (_SIDE - 3) + 1
    grid = torch.stack(torch.meshgrid(torch.arange(_SIDE), torch.arange(_SIDE), indexing="ij"), -1).float()
    image = (-(grid[None] - at[:, None, None]).pow(2).sum(-1) / 2).exp()[:, None]
    image = image + 0.15 * torch.randn(count, 1, _SIDE, _SIDE, generator=draw)
    return image, at / _SIDE * scale


def keypoints(
    recipe: Recipe,
    *,
    rows: int = 2400,
    scale: float = 1.0,
    blank: bool = False,
    shuffled: bool = False,
    bad_step: int | None = None,
    kind: str = "",
    deep: int = 0,
    dead: float = 0.0,
    normed: bool = False,
) -> Trace:
    """Train a regression of a point's place."""
    torch.manual_seed(recipe.seed)
    train, valid = _points(rows, 51 + recipe.seed, scale), _points(800, 80, scale)
    if blank:
        train, valid = (train[0] * 0 + 0.1, train[1]), (valid[0] * 0 + 0.1, valid[1])
    if shuffled:
        train, valid = (train[0], train[1][torch.randperm(rows)]), (valid[0], valid[1][torch.randperm(800)])

    def touch(step: int, _at: Tensor, batch: Batch) -> Batch:
        return (batch[0], batch[1] * 224) if step == bad_step else batch

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        error: Tensor = model(batch[0]) - batch[1]
        if kind == "distance":
            return error.pow(2).sum(1).sub(1e-5).sqrt().mean()
        return error.pow(2).sum() if kind == "sum" else error.pow(2).mean()

    def metrics(model: nn.Module, batch: Batch) -> Row:
        error = (model(batch[0]) - batch[1]).norm(dim=1)
        return {"val_pck": float((error < 0.1 * scale).float().mean())}

    job = Job(
        model=_network(2, dropout=0.0, normed=normed, shift=dead, momentum=0.1, deep=deep),
        train=train,
        valid=valid,
        loss=loss,
        metrics=metrics,
        touch=touch,
        settings={"model": "conv2_regressor", "loss": "mse", "coordinates": "pixels" if scale > 1 else "relative"},
    )
    return fit(job, recipe)
