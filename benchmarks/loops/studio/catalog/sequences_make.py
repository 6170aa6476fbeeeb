"""Makers of faulty runs on sequences."""

from __future__ import annotations

import torch

from benchmarks.loops.studio import sequence
from benchmarks.loops.studio.catalog.tools import resume, swap
from benchmarks.loops.studio.core import Plan, Record
from benchmarks.loops.studio.loop import Twist, go
from benchmarks.loops.studio.sequence import Recurrent


def bucketed(s: int) -> Record:
    """Batches of like length, in an order by length within each bucket group."""
    bench = sequence.ctc(s, 512, low=1, high=8)
    length = bench.data[3]

    def order(_epoch: int, gen: torch.Generator) -> torch.Tensor:
        parts = torch.randperm(512, generator=gen).split(256)  # type: ignore[no-untyped-call]
        return torch.cat([p[length[p].argsort()] for p in parts])

    return go(
        s,
        bench,
        Plan(epochs=10, lr=5e-3, batch=32, log_every=1, eval_every=2, clip=5.0),
        Twist(order=order),
        bucket_by="length",
    )


def growing(gain: float, s: int, lr: float) -> Record:
    """A recurrent net whose gradient grows through time."""
    torch.manual_seed(s)
    return go(
        s,
        sequence.forecast(s, Recurrent(24, "rnn", gain), length=60, horizon=False),
        Plan(epochs=10, lr=lr, optim="sgd", log_every=1, log_gnorm=True),
    )


def replayed(s: int) -> Record:
    """Shards of four epochs each; after the resume the first two come again."""
    bench = sequence.forecast(s, count=360, noise=0.1)
    bench = swap(bench, model=Recurrent(64), shard_passes=6, shards=4)
    say = "restored model and optimizer from epoch {at}"
    base = torch.arange(90)

    def order(epoch: int, gen: torch.Generator) -> torch.Tensor:
        shard = epoch // 6
        part = base + 90 * [0, 1, 2, 0, 1, 3][min(shard, 5)]
        return part[torch.randperm(90, generator=gen)]

    x = bench.data[0]
    bench.data = (
        x + 0.9 * torch.randn(4, 1, 24, generator=torch.Generator().manual_seed(s)).expand(4, 90, 24).reshape(360, 24),
    )
    return go(
        s,
        bench,
        Plan(epochs=36, lr=6e-3, batch=30),
        Twist(order=order, at_epoch=resume(18, cold=False, say=say)),
    )
