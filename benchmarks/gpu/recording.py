"""What the recorder costs on a GPU: the time of a step by CUDA events, and whether it makes the host wait."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu.running import Clock, Outcome, Told, run_case
from benchmarks.recorder.overhead import TOKENS, VOCABULARY, Loop, Size

PART = "recorder"
SIZES = {"short": Size(10, 512, 6, 64, 0), "long": Size(100, 1024, 12, 64, 0)}
TINY = {"short": Size(1, 64, 1, 2, 0)}
BLOCK = 20
"""Steps that are timed together: what the host does for one step overlaps with what the device does for another."""
BLOCKS, LEAST_BLOCKS = 30, 3
FOR_TIMES = 0.4
"""Of the time left, for one size of step."""
ALLOWED = 0.03
"""Of a step's time that a recording may add."""
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")
"""Calls of CUDA's runtime in which the host waits for the device."""
PROFILED = 60
"""Steps that are profiled of each kind: more than the recorder lets pass between two looks into the model."""


def run(clock: Clock, folder: Path, *, dry: bool) -> Iterator[Outcome]:
    """Time steps with and without a recording, and count what waits."""
    device = "cpu" if dry else "cuda"
    for name, size in (TINY if dry else SIZES).items():
        own = clock.share(FOR_TIMES)
        yield run_case(PART, f"time of a {name} step", own, partial(_time, size, folder / name, device, own))
    steps = 3 if dry else PROFILED
    size = (TINY if dry else SIZES)["short"]
    yield run_case(PART, "synchronisation", clock, partial(_synchronisation, size, folder / "profiled", device, steps))


def _time(size: Size, folder: Path, device: str, clock: Clock) -> Told:
    """Compare blocks of steps in an order that chance decides; on a CPU the ratio is told and not judged."""
    loops = {"bare": Loop(size, None, device), "recorded": Loop(size, folder, device)}
    batch = _batch(size, device)
    for loop in loops.values():
        _block(loop, batch)
    times: dict[str, list[float]] = {name: [] for name in loops}
    order = random.Random(0)  # noqa: S311 - no secret
    for number in range(BLOCKS if device == "cuda" else LEAST_BLOCKS):
        if number >= LEAST_BLOCKS and not clock.left:
            break
        names = list(loops)
        order.shuffle(names)
        for name in names:
            times[name].append(_block(loops[name], batch))
    _close(loops["recorded"])
    middle = {name: statistics.median(ones) / BLOCK for name, ones in times.items()}
    added = middle["recorded"] / middle["bare"] - 1
    figures = {f"{name}_ms": round(1e3 * seconds, 3) for name, seconds in middle.items()} | {"added": f"{added:+.1%}"}
    return Told(added <= ALLOWED or device == "cpu", figures)


def _block(loop: Loop, batch: Tensor) -> float:
    """Make steps and return the seconds until the device had done them, by its own events where it has them."""
    if not batch.is_cuda:
        begun = time.perf_counter()
        _steps(loop, batch, BLOCK)
        return time.perf_counter() - begun
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    first.record()
    _steps(loop, batch, BLOCK)
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) / 1e3


def _steps(loop: Loop, batch: Tensor, count: int) -> None:
    for _ in range(count):
        loop.step(batch)


def _batch(size: Size, device: str) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, VOCABULARY, (size.batch, TOKENS), generator=generator).to(device)


def _synchronisation(size: Size, folder: Path, device: str, steps: int) -> Told:
    """Count calls that wait in as many steps with and without a recording; it may add none."""
    loops = {"bare": Loop(size, None, device), "recorded": Loop(size, folder, device)}
    batch = _batch(size, device)
    counts = {}
    for name, loop in loops.items():
        _steps(loop, batch, 2)
        counts[name] = _waits(loop, batch, steps)
    _close(loops["recorded"])
    figures = {f"{name} {call}": count for name, calls in counts.items() for call, count in calls.items()}
    more = [call for call in WAITS if counts["recorded"][call] > counts["bare"][call]]
    return Told(not more, {"steps": steps, **figures}, f"added: {', '.join(more)}" if more else "")


def _waits(loop: Loop, batch: Tensor, steps: int) -> dict[str, int]:
    """Return how often steps called what waits for the device, by torch's profiler."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if batch.is_cuda else [])]
    if batch.is_cuda:
        torch.cuda.synchronize()
    with profile(activities=activities) as trace:
        _steps(loop, batch, steps)
    counted = {one.key: one.count for one in trace.key_averages()}
    return {call: counted.get(call, 0) for call in WAITS}


def _close(loop: Loop) -> None:
    assert loop.recorder is not None
    loop.recorder.close()
