"""A job of thousands of ranks in one pass: `python -m benchmarks.runs.ranks [--ranks 512 --kib 1024]`.

Each rank writes a log of its own. One fails first, the others report a collective that timed out; another one takes
longer for its forward pass. It is printed whether both are named, and how long that takes beside reading all the files.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from mldebug_mcp.judge.runs import diagnose_runs

FAILS, STRAGGLES = 0.4, 0.7
"""Where among the ranks the first to fail and the slow one stand."""
LINE = (
    "2026-11-23 {clock},{part:03} INFO trainer: step {step} | loss {loss:.5f} | forward_time {forward:.4f} s | "
    "lr 1.0e-04\n"
)
OOM = (
    "Traceback (most recent call last):\n  File \"/job/train.py\", line 88, in <module>\n    loss = model(batch)\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)  # fmt: skip
ECHO = (
    "[rank{rank}]:[E1123 09:10:00.000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
    "timeout\n"
)


def make_job(folder: Path, ranks: int, size: int) -> Path:
    """Write the logs, `size` bytes each, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        path = folder / f"log_rank_{rank}.txt"
        if not path.exists():
            path.write_text(_log(rank, ranks, size))
    return folder


def _log(rank: int, ranks: int, size: int) -> str:
    forward = 0.3 if rank == int(STRAGGLES * ranks) else 0.2
    lines, length, step = [], 0, 0
    while length < size:
        step += 1
        clock = time.strftime("%H:%M:%S", time.gmtime(3600 + step))
        line = LINE.format(
            clock=clock, part=rank % 1000, step=step, loss=2 + 5 / step, forward=forward + step % 7 / 1000
        )
        lines.append(line)
        length += len(line)
    if rank == int(FAILS * ranks):
        return "".join(lines) + f"2026-11-23 09:00:00,000 ERROR trainer: failed\n{OOM}"
    return "".join(lines) + ECHO.format(rank=rank)


def seconds_to_read(folder: Path) -> float:
    """Return the seconds that reading every file takes."""
    begun = time.perf_counter()
    for path in folder.iterdir():
        path.read_bytes()
    return time.perf_counter() - begun


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[512, 4096])
    parser.add_argument("--kib", type=int, nargs="*", default=[1024, 128])
    parser.add_argument("--folder", type=Path, help="where the logs are kept (default: a temporary folder)")
    options = parser.parse_args()
    print("| ranks | KiB each | reading s | whole answer s | times | first to fail | straggler | load |")
    print("| ---: | ---: | ---: | ---: | ---: | --- | --- | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        for ranks, size in zip(options.ranks, options.kib, strict=True):
            folder = make_job((options.folder or Path(scratch)) / f"{ranks}x{size}", ranks, size * 1024)
            seconds_to_read(folder)
            reading = seconds_to_read(folder)
            begun = time.perf_counter()
            row = diagnose_runs(folder).rows[0]
            taken = time.perf_counter() - begun
            told = row.ranks
            assert told is not None
            right = [
                f"{found} ({'right' if found == str(int(where * ranks)) else 'wrong'})"
                for found, where in ((told.first_failed, FAILS), (told.straggler, STRAGGLES))
            ]
            measured = f"{reading:.2f} | {taken:.2f} | {taken / reading:.1f}"
            load = os.getloadavg()[0]
            print(f"| {ranks:,} | {size:,} | {measured} | {right[0]} | {right[1]} | {load:.1f} |", flush=True)


if __name__ == "__main__":
    main()
