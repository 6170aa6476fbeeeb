"""Runs with known faults, trained once with their own log and once with a recording: what the recording adds."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import torch

from benchmarks.faults import loop
from benchmarks.faults.faults.machine import FAULTS as OF_THE_MACHINE
from benchmarks.faults.figures import Rows
from benchmarks.faults.report import accuracy, judge
from benchmarks.faults.runs import Case, cases, make

SUBJECTS = {subject.name for subject in loop.SUBJECTS}
CLOCK = ("time/", "timestamp", "host_memory")
"""What a recording tells of the machine: two runs that are trained at a time slow each other down."""


def sample(count: int) -> list[Case]:
    """Return so many runs of the plain loop, evenly drawn; those whose clock is simulated are left out."""
    simulated = {fault.id for fault in OF_THE_MACHINE if fault.id != "constant_metric"}
    found = [one for one in cases() if one.task in SUBJECTS and one.fault not in simulated]
    found.sort(key=lambda one: one.choice)
    return found[:count]


def make_both(case: Case, bare: Path, recorded: Path) -> str:
    """Train a run twice, and write its log into one folder and its recording into the other."""
    if not (bare / f"{case.name}.label.json").exists():
        make(case, bare)
    return record(case, bare, recorded)


def record(case: Case, bare: Path, recorded: Path) -> str:
    """Train a run of a folder once more, with a recorder; its label says of which run it is a version."""
    torch.set_num_threads(1)
    experiment = case.subject.usual(case.seed)
    case.rules.apply(experiment, case.severity)
    assert isinstance(experiment, loop.Setup)
    folder = recorded / case.name
    experiment.recording = folder
    experiment.train()
    _without_clock(folder / "recorder.jsonl")
    shutil.rmtree(folder / "batches", ignore_errors=True)
    if experiment.last_words:
        (folder / "stderr.log").write_text(experiment.last_words, encoding="utf-8")
    config = bare / case.name / "config.json"
    if config.exists():
        shutil.copy(config, folder)
    label = json.loads((bare / f"{case.name}.label.json").read_text(encoding="utf-8"))
    (recorded / f"{case.name}.label.json").write_text(json.dumps(label | {"of": case.name}), encoding="utf-8")
    return case.name


def record_made(made: Path, recorded: Path, count: int, processes: int = 2) -> None:
    """Record runs of a folder that `benchmarks.faults train` made: `benchmarks.faults fit --beside` reads both."""
    there = [one for one in sample(count) if (made / f"{one.name}.label.json").exists()]
    _train(there, made, recorded, processes)


def _without_clock(file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    kept = [{name: value for name, value in one.items() if not name.startswith(CLOCK)} for one in lines]
    hang = next((at for at, one in enumerate(kept) if one.get("event") == "hang"), len(kept))
    del kept[hang + 1 :]  # who hangs is killed
    file.write_text("".join(json.dumps(one) + "\n" for one in kept), encoding="utf-8")


def beside(folder: Path, count: int = 300, processes: int = 2) -> Rows:
    """Train what is missing, diagnose both, and return a row per measure."""
    _train(sample(count), folder / "bare", folder / "recorded", processes)
    return compared(folder, processes)


def _train(wanted: list[Case], bare: Path, recorded: Path, processes: int) -> None:
    """Train those that have no recording yet."""
    recorded.mkdir(parents=True, exist_ok=True)
    missing = [one for one in wanted if not (recorded / f"{one.name}.label.json").exists()]
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for number, name in enumerate(
            pool.imap_unordered(partial(make_both, bare=bare, recorded=recorded), missing), 1
        ):
            if number % 25 == 0:
                print(f"{number} of {len(missing)}, {time.monotonic() - began:.0f} s: {name}", file=sys.stderr)


def compared(folder: Path, processes: int = 2) -> Rows:
    """Diagnose the runs that were trained, bare and recorded."""
    both = {name: judge(folder / name, processes) for name in ("bare", "recorded")}
    shown = {one.name for one in both["bare"] if one.label.shows}
    columns = {
        name: accuracy([one for one in ones if one.label.cause == "healthy" or one.name in shown], {})
        for name, ones in both.items()
    }
    parts = [part for part in columns["bare"][0] if part]
    return [
        {
            "": bare[""],
            **{f"{part}, {name}": row[part] for part in parts for name, row in (("bare", bare), ("recorded", one))},
        }
        for bare, one in zip(columns["bare"], columns["recorded"], strict=True)
    ]
