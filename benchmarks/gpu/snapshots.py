"""Snapshots as torch records them: whether `check_memory` tells what is in them, and counts as torch does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu.recorded import Totals
from benchmarks.gpu.running import Clock, Outcome, Skip, Told, run_case
from benchmarks.gpu.workloads import WORKLOADS, Workload
from benchmarks.memory.measured import PROGRAMS, work
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.models.data import MemoryReport

PART = "snapshots"
ROOT = Path(__file__).parents[2]
AT_ONCE = 4
"""Processes that record at a time."""
PEAK = 0.01
"""By which the peak that is read may differ from torch's: what lies in private pools, or before a history that lost
its beginning, is not followed."""
TOOLS = "check_memory beside torch's tools"


def run(clock: Clock, folder: Path, names: list[str] | None = None, *, dry: bool) -> Iterator[Outcome]:
    """Record workloads, judge their snapshots, and put our tool beside torch's on the largest of them."""
    chosen = [WORKLOADS[name] for name in names or WORKLOADS]
    possible = [one for one in chosen if not _why_not(one, dry=dry)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = _simulated(pool, possible, folder, clock) if dry else _recorded(pool, possible, folder, clock)
        for one in chosen:
            yield run_case(PART, one.name, clock, partial(_judged, one, folder, done, dry=dry))
    yield run_case(PART, TOOLS, clock, partial(_beside, folder))


def _why_not(workload: Workload, *, dry: bool) -> str:
    if workload.needs_cuda and dry:
        return "needs a GPU"
    if workload.devices > 1 and torch.cuda.device_count() < workload.devices:
        return f"needs {workload.devices} GPUs"
    return ""


def _recorded(
    pool: ThreadPoolExecutor, workloads: list[Workload], folder: Path, clock: Clock
) -> dict[str, Future[None]]:
    """Start a process for each workload: its allocator's settings, limits and pools are its own."""
    return {one.name: pool.submit(_process, [one.name], folder, clock, expandable=one.expandable) for one in workloads}


def _simulated(
    pool: ThreadPoolExecutor, workloads: list[Workload], folder: Path, clock: Clock
) -> dict[str, Future[None]]:
    """Start one process for all workloads."""
    names = [one.name for one in workloads]
    whole = pool.submit(_process, ["--simulated", *names], folder, clock)
    return dict.fromkeys(names, whole)


def _process(arguments: list[str], folder: Path, clock: Clock, *, expandable: bool = False) -> None:
    """Record in a process of its own; one that a signal ended is started once more, as PyTorch rarely crashes.

    Raises:
        RuntimeError: it fails, or is ended twice.
    """
    command = [sys.executable, "-m", "benchmarks.gpu.recorded", str(folder), *arguments]
    setting = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} if expandable else {}
    for _ in range(2):
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | setting,
            capture_output=True,
            text=True,
            timeout=clock.left or 1,
            check=False,
        )
        if done.returncode >= 0:
            break
    if done.returncode:
        raise RuntimeError(f"recording {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-1500:]}")


def _judged(workload: Workload, folder: Path, done: dict[str, Future[None]], *, dry: bool) -> Told:
    """Judge the snapshot of a workload by what must be found in it and by what torch counted."""
    why = _why_not(workload, dry=dry)
    if why:
        raise Skip(why)
    file = folder / f"{workload.name}.json"
    try:
        done[workload.name].result()
    except RuntimeError:
        # One process records several workloads where none is real: those before the one that broke are there.
        if not file.exists():
            raise
    totals = Totals(**json.loads(file.read_text(encoding="utf-8")))
    report = check_memory(folder / f"{workload.name}.pickle")
    wrong = [*_findings_wrong(workload, report), *_totals_wrong(workload, report, totals)]
    told = [one.finding for one in report.findings]
    figures: dict[str, str | int] = {
        "found": ", ".join(told),
        "events": report.snapshot.trace_events,
        "peak_mib": round(totals.peak / 2**20),
        "peak_read_mib": round(report.snapshot.peak_allocated_bytes / 2**20) or "not known",
    }
    return Told(not wrong, figures, "; ".join(wrong))


def _findings_wrong(workload: Workload, report: MemoryReport) -> list[str]:
    told = {one.finding for one in report.findings}
    alarms = {one.finding for one in report.findings if one.severity != "info"}
    missing, beyond = workload.shows - told, alarms - workload.shows - workload.may
    return [
        *([f"not found: {', '.join(sorted(missing))}"] if missing else []),
        *([f"alarms without reason: {', '.join(sorted(beyond))}"] if beyond else []),
    ]


def _totals_wrong(workload: Workload, report: MemoryReport, totals: Totals) -> list[str]:
    """Return which totals differ from torch's; a peak is known only where the whole history is."""
    read = report.snapshot
    pairs = {
        "allocated": (read.allocated_bytes, totals.allocated),
        "reserved": (read.reserved_bytes, totals.reserved),
        "requested": (read.requested_bytes, totals.requested),
    }
    wrong = [f"{name} is read as {ours:,}, torch counts {theirs:,}" for name, (ours, theirs) in pairs.items()
             if ours != theirs]  # fmt: skip
    whole = workload.history and "history_truncated" not in workload.shows
    if whole and abs(read.peak_allocated_bytes - totals.peak) > PEAK * totals.peak:
        wrong.append(f"the peak is read as {read.peak_allocated_bytes:,}, torch counts {totals.peak:,}")
    return wrong


def _beside(folder: Path) -> Told:
    """Measure CPU time and memory of the work on the largest snapshot, beside a load and torch's text tools."""
    files = sorted(folder.glob("*.pickle"), key=lambda one: one.stat().st_size)
    if not files:
        raise Skip("no snapshot was recorded")
    measured = {program: work(program, files[-1]) for program in PROGRAMS}
    figures: dict[str, str | float] = {"snapshot": files[-1].stem, "mib": round(files[-1].stat().st_size / 2**20, 1)}
    for program, (seconds, mebibytes) in measured.items():
        figures |= {f"{program}_seconds": round(seconds, 3), f"{program}_mib": round(mebibytes)}
    return Told(True, figures)
