"""Image tasks: classification, segmentation and a small detection head."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import data
from benchmarks.loops.studio.core import Values
from benchmarks.loops.studio.loop import Batch, Bench, LossFn


def cnn(channels: int, width: int, classes: int, norm: bool = True, drop: float = 0.0) -> nn.Module:
    """Two convolutions, pooling and a linear head."""

    def block(i: int, o: int) -> list[nn.Module]:
        layers: list[nn.Module] = [nn.Conv2d(i, o, 3, 2, 1)]
        return [*layers, *([nn.BatchNorm2d(o)] if norm else []), nn.ReLU()]

    return nn.Sequential(
        *block(channels, width),
        *block(width, 2 * width),
        nn.Flatten(),
        nn.Dropout(drop),
        nn.Linear(2 * width * 9, classes),
    )


def deep(size: int, width: int, depth: int, classes: int, act: type[nn.Module]) -> nn.Module:
    """A deep plain network of one activation."""
    layers: list[nn.Module] = [nn.Flatten()]
    for _ in range(depth):
        layers += [nn.Linear(size, width), act()]
        size = width
    return nn.Sequential(*layers, nn.Linear(width, classes))


def cross_entropy(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Loss and accuracy of a classifier."""
    z = model(batch[0])
    return {"loss": functional.cross_entropy(z, batch[1]), "acc": (z.argmax(1) == batch[1]).float().mean()}


def accuracy(model: nn.Module, batch: Batch) -> Values:
    """Evaluation of a classifier."""
    z = model(batch[0])
    acc = (z.argmax(1) == batch[1]).float().mean()
    return {"loss": functional.cross_entropy(z, batch[1]).item(), "acc": acc.item()}


def recalls(model: nn.Module, batch: Batch) -> Values:
    """Evaluation of a classifier with the mean recall of the classes."""
    z = model(batch[0])
    y, hit = batch[1], (z.argmax(1) == batch[1]).float()
    each = torch.stack([hit[y == c].mean() for c in y.unique()])  # type: ignore[no-untyped-call]
    return accuracy(model, batch) | {"balanced_acc": each.mean().item()}


def classify(
    seed: int,
    count: int = 1200,
    *,
    classes: int = 10,
    noise: float = 1.3,
    channels: int = 1,
    net: nn.Module | None = None,
    width: int = 10,
    norm: bool = True,
    drop: float = 0.0,
    flip: float = 0.0,
    loss: LossFn = cross_entropy,
    holdout: int = 600,
    view: Callable[[Tensor], Tensor] | None = None,
    train_metric: bool = True,
) -> Bench:
    """Images of patterns; ``flip`` relabels a share at random, ``view`` changes evaluation input."""
    torch.manual_seed(seed)
    model = net or cnn(channels, width, classes, norm, drop)
    x, y = data.images(count, classes, seed, noise, channels=channels)
    ex, ey = data.images(holdout, classes, seed + 5000, noise, channels=channels)
    if flip:
        g = data.gen(seed)
        wrong = torch.rand(count, generator=g) < flip
        y = torch.where(wrong, torch.randint(classes, (count,), generator=g), y)
    ex = view(ex) if view else ex

    def lean(m: nn.Module, b: Batch) -> dict[str, Tensor]:
        return {"loss": loss(m, b)["loss"]}

    return Bench(
        model,
        (x, y),
        {"val": (ex, ey)},
        loss if train_metric else lean,
        accuracy,
        {"model": "smallcnn", "dataset": "glyphs", "num_classes": classes},
    )


def segnet(width: int = 8, classes: int = 3, norm: bool = True) -> nn.Module:
    """A plain convolutional net that keeps the resolution."""

    def block(i: int, o: int) -> list[nn.Module]:
        return [nn.Conv2d(i, o, 3, 1, 1), *([nn.BatchNorm2d(o)] if norm else []), nn.ReLU()]

    return nn.Sequential(*block(1, width), *block(width, width), nn.Conv2d(width, classes, 3, 1, 1))


def pixel_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Cross-entropy of every pixel."""
    return {"loss": functional.cross_entropy(model(batch[0]), batch[1], ignore_index=255)}


def ious(model: nn.Module, batch: Batch) -> Values:
    """Loss, pixel accuracy and IoU of the two foreground classes."""
    z = model(batch[0])
    p, y = z.argmax(1), batch[1]
    out = {"loss": functional.cross_entropy(z, y, ignore_index=255).item()}
    out["pixel_acc"] = (p == y).float().mean().item()
    for c, name in ((1, "rect"), (2, "disc")):
        union = ((p == c) | (y == c)).sum().item()
        out[f"iou_{name}"] = ((p == c) & (y == c)).sum().item() / max(1, union)
    out["miou"] = (out["iou_rect"] + out["iou_disc"]) / 2
    return out


def segment(
    seed: int,
    count: int = 256,
    *,
    rare: float = 1.0,
    loss: LossFn = pixel_loss,
    width: int = 8,
    norm: bool = True,
) -> Bench:
    """Rectangles and discs on a noisy ground."""
    torch.manual_seed(seed)
    train, val = data.shapes(count, seed, rare=rare), data.shapes(128, seed + 5000, rare=rare)
    return Bench(
        segnet(width, norm=norm),
        train,
        {"val": val},
        loss,
        ious,
        {"arch": "fcn_tiny", "data": "parts2", "n_classes": 3, "ignore_index": 255},
    )
