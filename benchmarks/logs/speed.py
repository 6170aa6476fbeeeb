"""How fast and in how much memory large logs are read, beside the readers that people would use otherwise.

    python -m benchmarks.logs.speed [--scale 1.0] [--repeat 3] [--folder FOLDER]

The data is made once, from a fixed seed: a million JSONL records, a Megatron log and a TensorBoard event file. Each
command runs in a process of its own, in turn with what it is compared with, after one start that does not count; the
figures are medians, the memory is the largest. `s` and `MB/s` are those of the work alone, `process` is what a user
waits for: the whole command, with the start of the interpreter and all imports. `diagnose` is the command line. On a
busy machine CPU seconds, those of the whole process too, say more than what the clock shows. The last rows show that
the cost grows with the size and no faster, and how long a run of ten thousand steps takes once everything is imported.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.logs.make_logs import make_events, make_jsonl, make_megatron, make_steps

MEASURED = """
import sys, time
path = sys.argv[1]
{setup}
start = time.perf_counter()
{body}
print(time.perf_counter() - start, file=sys.stderr)
"""
WAYS = {
    "polars": MEASURED.format(setup="import polars", body="polars.read_ndjson(path)"),
    "read": MEASURED.format(setup="from mldebug_mcp.logs import read_run", body="read_run(path)"),
    "diagnose": MEASURED.format(
        setup="from mldebug_mcp.cli import main\nsys.stdout = open('/dev/null', 'w')", body="main(['diagnose', path])"
    ),
    "EventAccumulator": MEASURED.format(
        setup="from tensorboard.backend.event_processing.event_accumulator import EventAccumulator",
        body="EventAccumulator(path, size_guidance={'scalars': 0}).Reload()",
    ),
    "diagnose again": MEASURED.format(
        setup="from mldebug_mcp import diagnose_run\ndiagnose_run(path)", body="diagnose_run(path)"
    ),
}


@dataclass(frozen=True)
class Cost:
    """What a way costs: seconds of the work alone, seconds and CPU seconds of its process, most memory in MB."""

    seconds: float
    process: float
    cpu: float
    memory: float


def run(way: str, path: Path) -> Cost:
    """Do it once, in a process of its own, with compiled bytecode as an installed package has it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", WAYS[way], str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    ) as process:
        assert process.stderr is not None
        told = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, told
    seconds = time.perf_counter() - began
    return Cost(float(told.splitlines()[-1]), seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def measure(ways: tuple[str, ...], path: Path, repeat: int) -> dict[str, Cost]:
    """Run the ways in turn."""
    runs = [{way: run(way, path) for way in ways} for _ in range(repeat + 1)][1:]
    return {
        way: Cost(
            statistics.median(one[way].seconds for one in runs),
            statistics.median(one[way].process for one in runs),
            statistics.median(one[way].cpu for one in runs),
            max(one[way].memory for one in runs),
        )
        for way in ways
    }


def show(title: str, path: Path, costs: dict[str, Cost], ratios: tuple[tuple[str, str], ...]) -> None:
    """Print what was measured."""
    size = path.stat().st_size / 1e6
    print(f"\n{title} ({size:.0f} MB)")
    for way, cost in costs.items():
        print(
            f"  {way:<18}{cost.seconds:8.3f} s {size / cost.seconds:6.0f} MB/s   process {cost.process:7.3f} s "
            f"{cost.cpu:7.3f} CPU s {cost.memory:6.0f} MB"
        )
    for one, other in ratios:
        here, there = costs[one], costs[other]
        print(
            f"  {one} / {other}: {here.seconds / there.seconds:.2f}; "
            f"processes {here.process / there.process:.2f} (CPU {here.cpu / there.cpu:.2f})"
        )


def main() -> None:
    """Make the data and print the table."""
    parser = argparse.ArgumentParser(description="Measure how large logs are read.")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data; 1 is a million JSONL records")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the data is kept (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        count = int(1_000_000 * options.scale)
        jsonl = make_jsonl(folder / f"{count}.jsonl", count)
        costs = measure(("polars", "read", "diagnose"), jsonl, options.repeat)
        show("JSON lines", jsonl, costs, (("read", "polars"), ("diagnose", "polars")))
        megatron = make_megatron(folder / f"megatron{count}.log", int(640_000 * options.scale))
        show("Megatron log", megatron, measure(("read", "diagnose"), megatron, options.repeat), ())
        if importlib.util.find_spec("tensorboard"):
            events = make_events(folder / f"events.out.tfevents.{count}", int(400_000 * options.scale))
            costs = measure(("EventAccumulator", "read"), events, options.repeat)
            show("TensorBoard scalars", events, costs, (("EventAccumulator", "read"),))
        for part in (0.25, 0.5, 1.0):
            some = make_jsonl(folder / f"{int(count * part)}.jsonl", int(count * part))
            show(f"JSON lines, {part:.0%}", some, measure(("read",), some, 1), ())
        for metrics in (5, 20, 100):
            steps = make_steps(folder / f"steps{metrics}.jsonl", metrics)
            show(f"10,000 steps of {metrics} metrics", steps, measure(("diagnose again",), steps, options.repeat), ())


if __name__ == "__main__":
    main()
