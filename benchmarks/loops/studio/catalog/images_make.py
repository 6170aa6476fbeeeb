"""Makers of faulty image runs: data and labels."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from benchmarks.loops.studio import data, detection, vision
from benchmarks.loops.studio.catalog.tools import folds, in_order, kth, once, swap
from benchmarks.loops.studio.core import Plan, Record
from benchmarks.loops.studio.loop import Batch, Bench, Twist, go


def pocket(s: int) -> Record:
    """A stretch of the file has wrong labels; the file is read in order."""
    bench = vision.classify(s, noise=1.6)
    y = bench.data[1].clone()
    y[640:832] = (y[640:832] + 3) % 10
    return go(
        s,
        swap(bench, data=(bench.data[0], y)),
        Plan(epochs=8, batch=32, lr=1e-3, log_every=2),
        Twist(order=in_order(1200)),
        shuffle=False,
    )


def masks_off(s: int) -> Record:
    """One annotation file has its masks mirrored; shards are read one after the other."""
    bench = vision.segment(s, 320)
    y = bench.data[1].clone()
    y[192:256] = y[192:256].flip(2)
    return go(
        s,
        swap(bench, data=(bench.data[0], y)),
        Plan(epochs=10, batch=16, lr=4e-3, log_every=1, eval_every=2),
        Twist(order=in_order(320)),
        shards="a..e",
    )


def noisy(s: int, share: float, clean: bool) -> Record:
    """Random labels for a share; with ``clean`` a checked validation set is logged too."""
    bench = vision.classify(s, flip=share, noise=1.2, width=8)
    if clean:
        ex, ey = bench.evals["val"]
        wrong = torch.rand(len(ey), generator=data.gen(s)) < share
        mixed = torch.where(wrong, torch.randint(10, ey.shape, generator=data.gen(s + 1)), ey)
        bench.evals = {"val": (ex, mixed), "val_relabelled": (ex, ey)}
    return go(s, bench, Plan(epochs=12, lr=2e-3))


def skewed(s: int) -> Record:
    """One class makes up nearly all."""
    bench = vision.classify(s, 4000, noise=2.6, width=4)

    def thin(b: Batch) -> Batch:
        keep = (b[1] == 0) | (torch.rand(len(b[1]), generator=data.gen(s)) < 0.006)
        return tuple(t[keep] for t in b)

    big = data.images(6000, 10, s + 77, 2.6)
    return go(
        s,
        swap(
            bench,
            data=thin(big),
            evals={"val": thin(data.images(9000, 10, s + 78, 2.6))},
            metrics=vision.recalls,
        ),
        Plan(epochs=12, lr=1e-3),
    )


def repeated(s: int) -> Record:
    """The file holds the same few images many times."""
    x, y = data.images(300, 10, s, 3.0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(144, 512), nn.ReLU(), nn.Linear(512, 10))
    bench = vision.classify(s, net=net, noise=3.0)
    bench = swap(bench, data=(x.repeat(8, 1, 1, 1), y.repeat(8)), n_train=2400)
    return go(s, bench, Plan(epochs=1, batch=20, lr=1.5e-3, log_every=3), Twist(order=in_order(2400)))


def copied(s: int) -> Record:
    """Folds over a set in which each image is there five times with little noise."""
    x, y = data.images(120, 10, s, 3.2)
    x = x.repeat(5, 1, 1, 1)
    x, y = x + 0.1 * torch.randn(x.shape, generator=data.gen(s)), y.repeat(5)
    mix = torch.randperm(600, generator=data.gen(s))
    external = data.images(500, 10, s + 31, 3.2)

    def make(seed: int, k: int) -> Bench:
        train, val = kth((x[mix], y[mix]), k)
        return swap(vision.classify(seed, width=16), data=train, evals={"val": val, "external": external})

    return folds(s, make, Plan(epochs=12, lr=3e-3, eval_every=3), 4)


def empty_boxes(s: int) -> Record:
    """Annotations were not found, so there are no objects in training."""
    bench = detection.detect(s, 600)
    x, obj, box = bench.data
    return go(s, swap(bench, data=(x, obj * 0, box)), Plan(epochs=12, lr=3e-3, batch=32, log_every=6, eval_every=3))


def beyond(s: int, at: int) -> Record:
    """One label of eleven for ten outputs."""

    def change(b: Batch) -> Batch:
        y = b[1].clone()
        y[3] = 10
        return b[0], y

    return go(s, vision.classify(s), Plan(epochs=6, lr=2e-3, log_every=2), Twist(batch=once(at, change)))


def void(s: int) -> Record:
    """A void value in the mask that the loss does not ignore."""

    def loss(model: nn.Module, b: Batch) -> dict[str, torch.Tensor]:
        return {"loss": functional.cross_entropy(model(b[0]), b[1])}

    def change(b: Batch) -> Batch:
        y = b[1].clone()
        y[0, 0] = 255
        return b[0], y

    bench = vision.segment(s, loss=loss)
    bench.config.pop("ignore_index")
    return go(s, bench, Plan(epochs=8, lr=4e-3, batch=16, log_every=2), Twist(batch=once(21, change)))


def shuffled(s: int) -> Record:
    """Labels belong to other images."""
    bench = vision.classify(s, width=6)
    x, y = bench.data
    return go(s, swap(bench, data=(x, y[torch.randperm(len(y))])), Plan(epochs=10, lr=1e-3, weight_decay=1e-3))


def blank_input(s: int) -> Record:
    """The images never reach the model: all are zero."""
    bench = vision.classify(s)
    zero: dict[str, Batch] = {"val": (bench.evals["val"][0] * 0, bench.evals["val"][1])}
    return go(
        s,
        swap(bench, data=(bench.data[0] * 0, bench.data[1]), evals=zero),
        Plan(epochs=10, lr=2e-3, log_every=8),
    )


def sorted_classes(s: int, batch: int) -> Record:
    """Batches in the order of the folders."""
    bench = vision.classify(s, noise=1.6)
    order = bench.data[1].argsort(stable=True)
    return go(
        s,
        bench,
        Plan(epochs=8, lr=6e-3, batch=batch, log_every=2),
        Twist(order=lambda _epoch, _gen: order),
        shuffle=False,
    )
