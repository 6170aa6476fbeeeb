"""Troubles of memory, made in a forked child with a real limit, and a toy arena."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch.nn import functional

from benchmarks.loops.studio.core import Record, guard
from benchmarks.loops.studio.dynamics import motion
from benchmarks.loops.studio.systems import base
from benchmarks.loops.studio.tables import mlp


def resident() -> float:
    """Resident memory of this process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def virtual() -> int:
    """Virtual memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096


def child(make: Callable[[], Record]) -> Record:
    """Run in a forked process, so that its memory is its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(False)

    def work(pipe: Connection) -> None:
        torch.set_num_threads(1)
        pipe.send(make())

    process = context.Process(target=work, args=(there,))
    process.start()
    rec: Record = here.recv()
    process.join()
    return rec


def growing(
    seed: int,
    keep: str = "none",
    *,
    steps: int = 160,
    every: int = 8,
    limit: int | None = None,
    wide: Callable[[int], int] = lambda _step: 64,
) -> Record:
    """A run that may keep its losses with their graphs (``graph``) or its batches (``cache``)."""

    def make() -> Record:
        rec = base(seed, steps)
        torch.manual_seed(seed)
        model = mlp([4, 256, 256, 1])
        opt = torch.optim.Adam(model.parameters(), lr=2e-3)
        data, start = motion(20000, seed), resident()
        kept: list[torch.Tensor] = []
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (virtual() + limit * 2**20,) * 2)
        total, peak = 0.0, 0.0
        with guard(rec):
            for at in range(1, steps + 1):
                ids = torch.randint(20000, (wide(at),))
                loss = functional.mse_loss(model(data[0][ids]), data[1][ids])
                opt.zero_grad()
                loss.backward(retain_graph=keep == "graph")  # type: ignore[no-untyped-call]
                opt.step()
                rec.step = at
                if keep == "graph":
                    kept.append(model(data[0][torch.randint(20000, (1024,))]).mean())
                if keep == "cache":
                    kept.append(torch.randn(64, 3, 64, 64) + loss.detach())
                total += loss.item() / every
                rec.clock += 0.4
                peak = max(peak, resident())
                if at % every == 0:
                    values = {"loss": total, "mem_mb": resident() - start + 212}
                    rec.log("train", at, at / steps, values)
                    total = 0.0
        return rec

    return child(make)


class Arena:
    """A first-fit allocator over one block of memory, as a caching allocator in the small."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used: list[tuple[int, int]] = []

    def holes(self) -> list[tuple[int, int]]:
        """Free pieces as (start, length)."""
        out, at = [], 0
        for start, length in sorted(self.used):
            if start > at:
                out.append((at, start - at))
            at = start + length
        return [*out, (at, self.size - at)] if at < self.size else out

    def take(self, length: int) -> tuple[int, int]:
        """Allocate or raise MemoryError."""
        for start, room in self.holes():
            if room >= length:
                self.used.append((start, length))
                return start, length
        holes = self.holes()
        free, top = sum(h[1] for h in holes), max((h[1] for h in holes), default=0)
        raise MemoryError(
            f"tried to allocate {length} MiB; arena {self.size} MiB, {free} MiB free, largest free block {top} MiB"
        )

    def give(self, block: tuple[int, int]) -> None:
        """Free a block."""
        self.used.remove(block)


def arena(seed: int, size: int = 4096, steps: int = 400, every: int = 10) -> Record:
    """Training whose activations of changing length live in an arena beside long-lived pieces."""
    rec = base(seed, steps, arena_mib=size, bucket="none")
    x, y = motion(6400, seed)
    torch.manual_seed(seed)
    model = mlp([4, 32, 32, 1])
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    pool, total, live = Arena(size), 0.0, list[tuple[int, int]]()
    gen = torch.Generator().manual_seed(seed)
    with guard(rec):
        for at in range(1, steps + 1):
            length = int(torch.randint(120, 900, (1,), generator=gen))
            block = pool.take(length)
            if at % 6 == 0:
                live.append(pool.take(int(torch.randint(16, 48, (1,), generator=gen))))
            if len(live) > 40:
                pool.give(live.pop(int(torch.randint(len(live), (1,), generator=gen))))
            ids = torch.randint(6400, (64,), generator=gen)
            loss = functional.mse_loss(model(x[ids]), y[ids])
            opt.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            opt.step()
            pool.give(block)
            rec.step, rec.clock, total = at, rec.clock + 0.3, total + loss.item() / every
            if at % every == 0:
                holes = pool.holes()
                rec.log(
                    "train",
                    at,
                    at / steps,
                    {
                        "loss": total,
                        "allocated_mib": float(sum(u[1] for u in pool.used) + length),
                        "free_mib": float(sum(h[1] for h in holes)),
                        "largest_free_mib": float(max(h[1] for h in holes)),
                        "seq_len": float(length),
                    },
                )
                total = 0.0
    return rec
