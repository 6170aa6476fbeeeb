"""Makes the runs: `python -m benchmarks.loops.dialogue --into FOLDER [--only TEXT]`."""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

import torch

from benchmarks.loops.dialogue.plan.spec import Spec
from benchmarks.loops.dialogue.roster import label, roster
from benchmarks.loops.dialogue.runner import train
from benchmarks.loops.dialogue.styles import STYLES


def make(name: str, spec: Spec, into: Path) -> None:
    """Train one run and write it afresh."""
    began = time.perf_counter()
    rec = train(spec, 999 + int(name[1:]))
    shutil.rmtree(into / name, ignore_errors=True)
    (into / name).mkdir()
    STYLES[spec.style](rec, into / name)
    took = time.perf_counter() - began
    print(f"{name} {spec.cause:<26} {spec.task:<10} {spec.style:<12} {took:5.1f} s", flush=True)


def main() -> None:
    """Make the runs that were asked for and write the labels of all that lie in the folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops.dialogue", description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="the folder for the runs and labels.jsonl")
    parser.add_argument("--only", default="", help="runs alone whose name, task or cause holds this text")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.into.mkdir(parents=True, exist_ok=True)
    runs = roster()
    for name, spec in runs.items():
        if options.only in f"{spec.cause} {spec.task} {name}":
            make(name, spec, options.into)
    lines = [label(name, spec) for name, spec in runs.items() if (options.into / name).is_dir()]
    (options.into / "labels.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
