"""Makes all runs: `python -m benchmarks.loops.vision --into FOLDER`."""

import argparse
import json
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from benchmarks.loops.vision.run import execute
from benchmarks.loops.vision.runs import named_runs


def make(name: str, into: Path) -> str:
    """Makes one run afresh; a line on what it took."""
    torch.set_num_threads(1)
    run = named_runs()[name]
    shutil.rmtree(into / name, ignore_errors=True)
    began = time.perf_counter()
    execute(run, name, into / name)
    return f"{time.perf_counter() - began:5.1f} s  {name}  {run.cause}"


def main() -> None:
    """Makes the runs that were asked for and writes the labels of all that lie in the folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops.vision", description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="folder for the runs and labels.jsonl")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", default="", help="runs alone whose cause or name holds this text")
    options = parser.parse_args()
    runs = named_runs()
    options.into.mkdir(parents=True, exist_ok=True)
    chosen = [name for name, run in runs.items() if options.only in f"{run.cause} {name}"]
    if options.processes == 1:
        for name in chosen:
            print(make(name, options.into), flush=True)
    else:
        with ProcessPoolExecutor(options.processes) as pool:
            for line in pool.map(make, chosen, [options.into] * len(chosen)):
                print(line, flush=True)
    lines = [json.dumps(run.label(name)) for name, run in runs.items() if (options.into / name).is_dir()]
    (options.into / "labels.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
