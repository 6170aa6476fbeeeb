"""How fast and in how much memory large logs are read, beside the readers that people would use otherwise.

    python benchmarks/logs/speed.py [--scale 1.0] [--repeat 3] [--folder FOLDER]

The data is made once, from a fixed seed: a million JSONL records, a Megatron log and a TensorBoard event file. Each
command runs in a process of its own, in turn with what it is compared with; the figures are medians. On a busy machine
CPU seconds say more than wall time; they are those of the whole process, imports and all. `diagnose` is the
whole command, with the start of the interpreter; `read` is `mldebug_mcp.logs.read_run` alone. The last rows show that
the cost grows with the size and no faster.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from make_logs import make_events, make_jsonl, make_megatron

MEASURED = """
import json, resource, sys, time
path = sys.argv[1]
{setup}
start = time.perf_counter()
{body}
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]), file=sys.stderr)
"""
WAYS = {
    "polars": MEASURED.format(setup="import polars", body="polars.read_ndjson(path)"),
    "polars, with its import": MEASURED.format(setup="", body="import polars; polars.read_ndjson(path)"),
    "read": MEASURED.format(setup="from mldebug_mcp.logs import read_run", body="read_run(path)"),
    "diagnose": MEASURED.format(
        setup="",
        body="import contextlib, io\nfrom mldebug_mcp.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n    main(['diagnose', path])",
    ),
    "EventAccumulator": MEASURED.format(
        setup="from tensorboard.backend.event_processing.event_accumulator import EventAccumulator",
        body="EventAccumulator(path, size_guidance={'scalars': 0}).Reload()",
    ),
}


@dataclass(frozen=True)
class Cost:
    """What reading a file costs: median seconds, median CPU seconds of the whole process, most memory in MB."""

    seconds: float
    cpu: float
    memory: float


def measure(ways: tuple[str, ...], path: Path, repeat: int) -> dict[str, Cost]:
    """Run the ways in turn."""
    runs: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
    for _ in range(repeat):
        for way in ways:
            done = subprocess.run(
                [sys.executable, "-c", WAYS[way], str(path)],
                check=True,
                capture_output=True,
                text=True,
                env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            )
            runs[way].append(tuple(json.loads(done.stderr.splitlines()[-1])))
    return {
        way: Cost(statistics.median(seconds), statistics.median(cpu), max(memory))
        for way, (seconds, cpu, memory) in ((way, zip(*costs, strict=True)) for way, costs in runs.items())
    }


def show(title: str, path: Path, costs: dict[str, Cost], ratios: tuple[tuple[str, str], ...]) -> None:
    """Print what was measured."""
    size = path.stat().st_size / 1e6
    print(f"\n{title} ({size:.0f} MB)")
    for way, cost in costs.items():
        print(
            f"  {way:<26}{cost.seconds:8.3f} s {size / cost.seconds:8.0f} MB/s "
            f"{cost.cpu:8.3f} CPU s {cost.memory:8.0f} MB"
        )
    for one, other in ratios:
        wall, cpu = costs[one].seconds / costs[other].seconds, costs[one].cpu / costs[other].cpu
        print(f"  {one} / {other}: {wall:.2f} (CPU {cpu:.2f})")


def main() -> None:
    """Make the data and print the table."""
    parser = argparse.ArgumentParser(description="Measure how large logs are read.")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data; 1 is that of the README's figures")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the data is kept (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        count = int(1_000_000 * options.scale)
        jsonl = make_jsonl(folder / f"{count}.jsonl", count)
        ways = ("polars", "polars, with its import", "read", "diagnose")
        compared = (("read", "polars"), ("diagnose", "polars, with its import"), ("diagnose", "polars"))
        show("JSON lines", jsonl, measure(ways, jsonl, options.repeat), compared)
        megatron = make_megatron(folder / f"megatron{count}.log", int(640_000 * options.scale))
        show("Megatron log", megatron, measure(("read", "diagnose"), megatron, options.repeat), ())
        if importlib.util.find_spec("tensorboard"):
            events = make_events(folder / f"events.out.tfevents.{count}", int(400_000 * options.scale))
            costs = measure(("EventAccumulator", "read"), events, options.repeat)
            show("TensorBoard scalars", events, costs, (("EventAccumulator", "read"),))
        for part in (0.25, 0.5, 1.0):
            some = make_jsonl(folder / f"{int(count * part)}.jsonl", int(count * part))
            show(f"JSON lines, {part:.0%}", some, measure(("read",), some, 1), ())


if __name__ == "__main__":
    main()
