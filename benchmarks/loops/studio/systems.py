"""Troubles of systems, measured: loaders, slow steps, ranks that wait for each other."""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.loops.studio.core import Record
from benchmarks.loops.studio.dynamics import motion
from benchmarks.loops.studio.tables import mlp

_EVERY = 5
"""Steps from one row to the next."""


def trainer(seed: int) -> Callable[[Tensor, Tensor], float]:
    """A tiny regression net; the result makes one step and returns the loss."""
    torch.manual_seed(seed)
    model = mlp([4, 32, 32, 1])
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)

    def step(x: Tensor, y: Tensor) -> float:
        loss = functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        opt.step()
        return loss.item()

    return step


def base(seed: int, steps: int, **config: object) -> Record:
    """An empty record of a systems run."""
    rec = Record(
        config={
            "model": "mlp_surrogate",
            "batch_size": 64,
            "lr": 3e-3,
            "max_steps": steps,
            "seed": seed,
            **config,
        }
    )
    rec.started += seed * 7919.0
    rec.epochs, rec.per_epoch = 1, steps
    return rec


def loading(
    seed: int,
    wait: Callable[[int], float],
    *,
    steps: int = 120,
    workers: int = 1,
    busy: bool = True,
    first: float = 0.0,
) -> Record:
    """Loader threads fill a queue, each batch after a wait; the step itself takes 12 ms."""
    rec = base(seed, steps, num_workers=workers, prefetch=2)
    x, y = motion(64 * 40, seed)
    box: queue.Queue[int] = queue.Queue(maxsize=2 * workers)
    ticket = iter(range(steps))
    lock = threading.Lock()

    def produce() -> None:
        while True:
            with lock:
                number = next(ticket, None)
            if number is None:
                return
            time.sleep(wait(number) + (first if number < workers else 0.0))
            box.put(number)

    for _ in range(workers):
        threading.Thread(target=produce, daemon=True).start()
    step, sums, began = trainer(seed), [0.0, 0.0, 0.0], time.perf_counter()
    for at in range(1, steps + 1):
        t0 = time.perf_counter()
        number = box.get() % 40
        t1 = time.perf_counter()
        loss = step(x[number * 64 : number * 64 + 64], y[number * 64 : number * 64 + 64])
        time.sleep(0.012)
        t2 = time.perf_counter()
        sums = [sums[0] + loss, sums[1] + t1 - t0, sums[2] + t2 - t0]
        if at % _EVERY == 0:
            rec.clock = time.perf_counter() - began
            values = {
                "loss": sums[0] / _EVERY,
                "data_time": sums[1] / _EVERY,
                "step_time": sums[2] / _EVERY,
                "samples_per_s": 64 * _EVERY / sums[2],
            }
            if busy:
                values["gpu_util"] = 100 * (sums[2] - sums[1]) / sums[2]
            rec.log("train", at, at / steps, values)
            sums = [0.0, 0.0, 0.0]
    return rec


def slower(
    seed: int,
    drag: Callable[[int, list[str]], None],
    *,
    steps: int = 120,
) -> Record:
    """Steps that end with some housekeeping, ``drag``, whose cost is in the time of the step."""
    rec = base(seed, steps)
    x, y = motion(2560, seed)
    step, kept, began = trainer(seed), list[str](), time.perf_counter()
    mean, took = 0.0, 0.0
    for at in range(1, steps + 1):
        t0 = time.perf_counter()
        lo = (at * 64) % 2496
        mean += step(x[lo : lo + 64], y[lo : lo + 64]) / _EVERY
        time.sleep(0.01)
        drag(at, kept)
        took += (time.perf_counter() - t0) / _EVERY
        if at % _EVERY == 0:
            rec.clock = time.perf_counter() - began
            values = {"loss": mean, "step_time": took, "samples_per_s": 64 / took}
            rec.log("train", at, at / steps, values | {"data_time": 2e-4})
            mean = took = 0.0
    return rec


def rewrite_all(_at: int, kept: list[str]) -> None:
    """Housekeeping that serialises everything since the start, again and again."""
    kept.append(json.dumps([random.random() for _ in range(300)]))  # noqa: S311 - ballast, not secrets
    json.dumps([json.loads(k) for k in kept])
