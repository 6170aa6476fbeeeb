"""Is it said which settings go with faults? `python -m benchmarks.runs.sweep [--sweeps 3] [--shuffles 100]`.

Each sweep is sixty small runs that are really trained, at settings drawn at random. Two of the settings break runs: the
highest learning rate, and one of the data sets, some of whose batches are bad. The others (batch, decay, host, workers)
break none. It is printed which settings `diagnose_runs` names, and of shuffles, in which the diagnoses are dealt out
to the runs anew, in how many it names any.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from benchmarks.corpus import example
from mldebug_mcp.judge.runs import answered
from mldebug_mcp.judge.sweep import Answered, shared_settings
from mldebug_mcp.logs.files import runs_in

RUNS = 60
TIMES = (0.5, 1.0, 1.5, 100.0)
"""Multiples of the usual learning rate; the last breaks a run."""
DATA = ("v1", "v2", "v3", "v3-extended")
"""Data sets; the last has bad batches."""
BROKEN = {"learning_rate", "dataset"}


def train(folder: Path, sweep: int, number: int) -> None:
    """Train a run of a sweep and write its log and configuration."""
    torch.set_num_threads(1)
    draw = np.random.default_rng([sweep, number])
    setup = example.Setup(seed=1000 * sweep + number, clip=0.0)
    setup.rate *= float(draw.choice(TIMES))
    data = str(draw.choice(DATA))
    if data == DATA[-1]:
        example.bad_batches(setup)
    setup.batch, setup.weight_decay = int(draw.choice([32, 48, 64])), float(draw.choice([0.0, 0.01, 0.02]))
    setup.config = {
        "dataset": data,
        "host": str(draw.choice(["a", "b", "c", "d"])),
        "dataloader_num_workers": int(draw.choice([2, 4, 8])),
        "seed": setup.seed,
    }
    run = folder / f"run_{number:02}"
    run.mkdir(parents=True)
    (run / "log.jsonl").write_text(example.json_lines(example.train(setup)), encoding="utf-8")
    (run / "config.json").write_text(json.dumps(setup.settings()), encoding="utf-8")


def sweeps(folder: Path, count: int, processes: int) -> Iterator[list[Answered]]:
    """Train sweeps and yield the diagnoses of their runs."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for sweep in range(count):
            place = folder / str(sweep)
            if not place.is_dir():
                list(pool.map(train, [place] * RUNS, [sweep] * RUNS, range(RUNS)))
            yield [one for found in pool.map(answered, runs_in(place, [])) for one in found]


def named(answers: list[Answered]) -> set[str]:
    """Return the settings that are said to go with a fault."""
    return {one.setting for one in shared_settings(answers)}


def named_in_shuffles(answers: list[Answered], shuffles: int) -> int:
    """Return in how many shuffles of the diagnoses any setting is said to go with a fault."""
    draw = np.random.default_rng(0)
    told = 0
    for _ in range(shuffles):
        order = draw.permutation(len(answers)).tolist()
        dealt = [replace(one, row=answers[other].row) for one, other in zip(answers, order, strict=True)]
        told += bool(named(dealt))
    return told


def main() -> None:
    """Print a line for each sweep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--shuffles", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the runs are kept (default: a temporary folder)")
    options = parser.parse_args()
    print("| sweep | runs | a fault leads in | settings named | none other | shuffles in which any is named |")
    print("| ---: | ---: | ---: | --- | --- | ---: |")
    with tempfile.TemporaryDirectory() as scratch:
        for number, answers in enumerate(sweeps(options.folder or Path(scratch), options.sweeps, options.processes)):
            found, sick = named(answers), sum(one.row.is_sick for one in answers)
            shuffled = named_in_shuffles(answers, options.shuffles)
            others = "yes" if found <= BROKEN else f"no: {', '.join(sorted(found - BROKEN))}"
            both = ", ".join(sorted(found & BROKEN)) or "-"
            print(
                f"| {number} | {len(answers)} | {sick} | {both} | {others} | {shuffled} of {options.shuffles} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
