"""Makes the runs: `python -m benchmarks.loops.industry --into FOLDER [--processes N] [--only TEXT]`."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from functools import partial
from pathlib import Path

import torch

from benchmarks.loops.industry.roster import all_cases
from benchmarks.loops.industry.write import entry, write


def _make(into: Path, name: str) -> str:
    torch.set_num_threads(1)
    case = all_cases()[name]
    start = time.process_time()
    write(into / name, case, case.make())
    print(f"{name:<16} {case.cause:<24} {time.process_time() - start:6.1f} s", flush=True)
    return entry(name, case)


def main() -> None:
    """Train and write the runs and their index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="the folder for the runs")
    parser.add_argument("--processes", type=int, default=1, help="how many runs to train at a time")
    parser.add_argument("--only", default="", help="make only runs with this text in their cause or name")
    options = parser.parse_args()
    names = [name for name, case in all_cases().items() if options.only in f"{case.cause} {name}"]
    options.into.mkdir(parents=True, exist_ok=True)
    make = partial(_make, options.into)
    if options.processes > 1:
        with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
            lines = pool.map(make, names, chunksize=1)
    else:
        lines = [make(name) for name in names]
    (options.into / "labels.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
