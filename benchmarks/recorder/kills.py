"""What is left of a recording when its process is killed: 100 times, each at a moment that chance decides."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from pathlib import Path

from benchmarks.faults.figures import Rows
from mldebug_mcp import InputError, read_run
from mldebug_mcp.recorder import Recorder

MAX_BYTES = 300_000
"""So few that a recording is rotated and thinned while it is killed."""
ALLOWED = 1.0
"""Seconds whose records may be lost."""


def train(folder: Path) -> None:
    """Record steps for ever, and note in a file beside when each was over."""
    recorder = Recorder(folder, max_bytes=MAX_BYTES)
    beside = os.open(folder.parent / f"{folder.name}.over", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    order = random.Random(os.getpid())  # noqa: S311 - no secret
    while True:
        with recorder.step():
            recorder.log(loss=order.random(), accuracy=order.random(), other=order.random())
        os.write(beside, b"%d %.6f\n" % (recorder.number, time.time()))
        if order.random() < 0.02:
            time.sleep(0.02 * order.random())


def kill(folder: Path, after: float) -> tuple[bool, float]:
    """Kill a training after some seconds; return whether its recording reads, and the seconds that it lacks."""
    process = multiprocessing.get_context("spawn").Process(target=train, args=(folder,))
    process.start()
    steps = folder.parent / f"{folder.name}.over"
    while not (steps.exists() and steps.stat().st_size) and process.is_alive():
        time.sleep(0.01)
    time.sleep(after)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    try:
        last = read_run(folder).last_step
    except InputError:
        return False, after
    lines = steps.read_bytes().splitlines()
    over = dict(line.split() for line in lines if len(line.split()) == 2)
    final = float(lines[-1].split()[-1])
    return _is_json(folder), final - float(over.get(b"%d" % int(last), b"0"))


def _is_json(folder: Path) -> bool:
    """Say whether all lines but the last of each part are whole."""
    for part in folder.glob("recorder.jsonl*"):
        for line in part.read_bytes().split(b"\n")[:-1]:
            json.loads(line)
    return True


def kills(count: int = 100) -> Rows:
    """Kill so many trainings and return what is left."""
    order = random.Random(0)  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory() as folder:
        found = [kill(Path(folder, str(number)), 0.3 + 2.2 * order.random()) for number in range(count)]
    lost = [seconds for _, seconds in found]
    return [
        {
            "kills": f"{count}",
            "recordings that read": f"{sum(reads for reads, _ in found)}",
            "seconds lost, in the median": f"{sorted(lost)[count // 2]:.2f}",
            "at most": f"{max(lost):.2f}",
            f"recordings that lost more than {ALLOWED:g} s": f"{sum(one > ALLOWED for one in lost)}",
        }
    ]
