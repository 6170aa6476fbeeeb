"""The probe on the device: verdicts beside the CPU's, memory that runs out, time, and what a cancelled probe leaves."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from tests.probe.here import probe_here
from tests.probe.pipelines import BROKEN, HEALTHY

from benchmarks.gpu.entries import GIB
from benchmarks.gpu.running import Clock, Outcome, Skip, Told, run_case
from benchmarks.probe.overhead import SUBJECTS, ratio
from mldebug_mcp import probe_overfit
from mldebug_mcp.judge.probe import probe

PART = "probes"
ROOT = Path(__file__).parents[2]
PIPELINES = ROOT / "tests" / "probe" / "pipelines.py"
ENTRIES = Path(__file__).parent / "entries.py"
EXPECTED = BROKEN | dict.fromkeys(HEALTHY, ("memorised", "healthy"))
DTYPES = ("float32", "bfloat16", "float16")
FEW = ("healthy_classifier", "labels_all_masked", "wrong_sign")
"""What a dry run probes."""
MOST_AT_ONCE = 8
"""Probes at a time: each takes a CUDA context of half a GiB and a core."""
FOR_VERDICTS = 0.75
"""Of the time of this part, for all three precisions."""
LONGEST = 1.10
"""Times a bare loop that the probe's may take."""
LEFT = 64 << 20
"""Bytes of the device that may be missing after a probe was cancelled: what others take and give back meanwhile."""
FREED_WITHIN = 10.0
"""Seconds in which a cancelled probe must have given the device back."""


class Verdict(NamedTuple):
    """What a probe says."""

    verdict: str
    cause: str


def run(clock: Clock, *, dry: bool) -> Iterator[Outcome]:
    """Probe with another process on the device, which must be left alone."""
    device = "cpu" if dry else "cuda"
    for_verdicts = clock.share(FOR_VERDICTS)
    with _neighbour(device) as neighbour:
        for asked in (device, "auto"):
            yield run_case(PART, f"device {asked}", clock, partial(_own_process, asked, device))
        yield run_case(PART, "out of memory", clock, partial(_out_of_memory, device))
        yield run_case(PART, "cancelled", clock, partial(_cancelled, device))
        for name in SUBJECTS:
            yield run_case(PART, f"time of {name}", clock, partial(_time, name, device))
        for left, dtype in zip((3, 2, 1), DTYPES[:1] if dry else DTYPES, strict=False):
            own = for_verdicts.share(1 / left)
            names = list(FEW if dry else EXPECTED)
            yield run_case(PART, f"verdicts in {dtype}", own, partial(_verdicts, names, dtype, device, own))
        yield run_case(PART, "another process on the device", clock, partial(_still_whole, neighbour))


def _own_process(asked: str, device: str) -> Told:
    """Probe as users do, on a device that they name or leave to the probe."""
    result = probe_overfit(entry=f"{PIPELINES}:healthy_classifier", device=asked)
    right = result.verdict == "memorised" and result.device.startswith(device)
    return Told(right, {"verdict": result.verdict, "device": result.device, "seconds": round(result.seconds, 1)})


def _out_of_memory(device: str) -> Told:
    result = probe_overfit(entry=f"{ENTRIES}:too_large", device=device)
    halved = sum(note.startswith("memory ran out") for note in result.notes)
    return Told(result.verdict == "memorised" and halved == 1, {"verdict": result.verdict, "halved": halved},
                result.summary)  # fmt: skip


def _time(name: str, device: str) -> Told:
    """Compare the loops on the device."""
    if device == "cpu":
        raise Skip("needs a GPU: the ratio of a CPU that does other work besides says nothing")
    found = ratio(name, device, rounds=7)
    return Told(found <= LONGEST, {"times a bare loop": round(found, 3)})


def _cancelled(device: str) -> Told:
    """Cancel a probe that trains and holds a GiB of the device, and wait until that is free again."""
    before = _free(device)
    held = asyncio.run(_cancel(device))
    begun = time.monotonic()
    while (left := before - _free(device)) > LEFT and time.monotonic() - begun < FREED_WITHIN:
        time.sleep(0.1)
    figures = {
        "held_mib": round((before - held) / 2**20),
        "left_mib": round(max(0, left) / 2**20),
        "freed_after_seconds": round(time.monotonic() - begun, 1),
    }
    return Told(left <= LEFT and (device == "cpu" or before - held >= GIB), figures)


async def _cancel(device: str) -> int:
    """Return the free bytes of the device while the probe trained."""
    trains = asyncio.Event()
    running = asyncio.create_task(
        probe(
            entry=f"{ENTRIES}:slow",
            device=device,
            on_progress=lambda told: trains.set() if told.stage == "training" and told.step else None,
        )
    )
    waiting = asyncio.create_task(trains.wait())
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED, timeout=60)
    waiting.cancel()
    free = _free(device)
    if not trains.is_set():
        running.cancel()
        raise RuntimeError("the probe did not come to train")
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return free


def _free(device: str) -> int:
    """Return the free bytes of the GPU; there are none to count without one."""
    return torch.cuda.mem_get_info(0)[0] if device == "cuda" else 0


def _verdicts(names: list[str], dtype: str, device: str, clock: Clock) -> Told:
    """Probe pipelines on the device and, where the tests do not say what a CPU gives, there too."""
    compared, differ, causes = 0, [], 0
    with _pool(clock) as pool:
        there = {name: pool.submit(verdict_of, name, dtype, device) for name in names}
        here = {name: pool.submit(verdict_of, name, dtype, "cpu") for name in names if dtype != "float32"}
        for name in names:
            ours = _within(there[name], clock)
            theirs = _within(here[name], clock) if name in here else Verdict(*EXPECTED[name])
            if ours is None or theirs is None:
                continue
            if ours.verdict != theirs.verdict and clock.left:
                # An error of the device spoils all that its process does later: in one of its own it cannot.
                result = probe_overfit(entry=f"{PIPELINES}:{name}", device=device, dtype=dtype)
                ours = Verdict(result.verdict, result.causes[0].cause if result.causes else "")
            compared += 1
            causes += ours.cause == theirs.cause
            if ours.verdict != theirs.verdict:
                differ.append(f"{name}: {ours.verdict}, on the CPU {theirs.verdict}")
    figures = {"pipelines": len(names), "compared": compared, "same verdict": compared - len(differ),
               "same cause": causes}  # fmt: skip
    late = [] if compared == len(names) else [f"{len(names) - compared} were not probed in time"]
    return Told(not differ and not late, figures, "; ".join([*late, *differ]))


def verdict_of(name: str, dtype: str, device: str) -> Verdict:
    """Probe a pipeline of the tests in this process."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = probe_here(Path(folder), device, entry=f"{PIPELINES}:{name}", dtype=dtype)
        except Exception as error:  # noqa: BLE001 - as the worker does, which calls it failed
            return Verdict("failed", f"{type(error).__name__}: {error}"[:200])
    return Verdict(result.verdict, result.causes[0].cause if result.causes else "")


@contextmanager
def _pool(clock: Clock) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of processes, which ends with what is left of the time, whatever they do then."""
    count = max(1, min(MOST_AT_ONCE, (os.cpu_count() or 2) // 2))
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))
    try:
        yield pool
    finally:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for one in processes:
            one.join(min(1.0, clock.left))
            one.kill()
            one.join()


def _within(future: Future[Verdict], clock: Clock) -> Verdict | None:
    try:
        return future.result(timeout=clock.left)
    except TimeoutError:
        return None


@contextmanager
def _neighbour(device: str) -> Iterator[subprocess.Popen[str]]:
    """Start another process on the device, and end it in the end."""
    command = [sys.executable, "-m", "benchmarks.gpu.entries", device]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def _still_whole(neighbour: subprocess.Popen[str]) -> Told:
    assert neighbour.stdin is not None
    assert neighbour.stdout is not None
    neighbour.stdin.write("?\n")
    neighbour.stdin.flush()
    told = neighbour.stdout.readline().strip()
    return Told(told == "whole", {"its numbers": told or "it has ended"})
