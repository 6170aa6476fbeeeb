"""Makes the runs: `python -m benchmarks.loops.studio --into FOLDER [--only TEXT]`."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path

import torch

from benchmarks.loops.studio.catalog import SPECS
from benchmarks.loops.studio.core import Spec
from benchmarks.loops.studio.styles import STYLES


def name_of(number: int) -> str:
    """The name of a run: a fixed scramble, so that neighbours in the catalogue are not neighbours by name."""
    return f"r{(number * 89) % 997:03d}"


def label(name: str, spec: Spec) -> str:
    """The line of a run in the index."""
    row = {
        "run": name,
        "cause": spec.cause,
        "also": list(spec.also),
        "weak": spec.weak,
        "style": spec.style,
        "task": spec.task,
        "fact": spec.fact,
    }
    return json.dumps(row)


def make(number: int, into: Path) -> None:
    """Train one run of the catalogue and write it afresh."""
    name, spec = name_of(number), SPECS[number]
    shutil.rmtree(into / name, ignore_errors=True)
    (into / name).mkdir()
    torch.manual_seed(number + 1)
    began = time.perf_counter()
    STYLES[spec.style](spec.make(number + 1), into / name)
    print(f"{name} {spec.cause} {spec.task} {spec.style} {time.perf_counter() - began:.1f}s", flush=True)


def main() -> None:
    """Make the runs that were asked for and write the labels of all that lie in the folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops.studio", description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="the folder for the runs and labels.jsonl")
    parser.add_argument("--only", default="", help="runs alone whose name, task or cause holds this text")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.into.mkdir(parents=True, exist_ok=True)
    for number, spec in enumerate(SPECS):
        if options.only in f"{spec.cause} {spec.task} {name_of(number)}":
            make(number, options.into)
    names = {name_of(number): spec for number, spec in enumerate(SPECS)}
    lines = [label(name, spec) for name, spec in names.items() if (options.into / name).is_dir()]
    (options.into / "labels.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
