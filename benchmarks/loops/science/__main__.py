"""Makes all runs: `python -m benchmarks.loops.science --into FOLDER`."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from benchmarks.loops.labels import INDEX
from benchmarks.loops.science.journal import Journal
from benchmarks.loops.science.runs import named_runs
from benchmarks.loops.science.writers import write


def make(name: str, into: Path) -> str:
    """Make one run afresh and return a line on what it took."""
    torch.set_num_threads(1)
    run = named_runs()[name]
    shutil.rmtree(into / name, ignore_errors=True)
    journal = Journal()
    began = time.process_time()
    run.experiment.run(journal)
    write(run, journal, into / name)
    return f"{time.process_time() - began:5.1f} s  {len(journal.entries):5d} records  {name}  {run.cause}"


def main() -> None:
    """Make the runs that were asked for and write the labels of all that lie in the folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops.science", description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="folder for the runs and their labels")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", default="", help="runs alone whose cause or name holds this text")
    options = parser.parse_args()
    runs = named_runs()
    options.into.mkdir(parents=True, exist_ok=True)
    chosen = [name for name, run in runs.items() if options.only in f"{run.cause} {name}"]
    with ProcessPoolExecutor(options.processes) as pool:
        for line in pool.map(make, chosen, [options.into] * len(chosen)):
            print(line, flush=True)
    lines = [json.dumps(run.label(name)) for name, run in runs.items() if (options.into / name).is_dir()]
    (options.into / INDEX).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
