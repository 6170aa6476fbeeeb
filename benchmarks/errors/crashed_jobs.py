"""Crash small jobs of several processes on the CPU, and count how often the first failing rank and line are found.

python -m benchmarks.errors.crashed_jobs --keep logs

`crashed.jsonl` holds a job a line: how it is launched, what its ranks do, and which rank and which line are the first
to fail. With `--keep` the logs stay in a folder, and a log that is there is not made again.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

from mldebug_mcp.judge.explain_error import explain_error

JOBS = Path(__file__).parent / "crashed.jsonl"
MAX_SECONDS = 180
NOT_AS_MEANT = "the job did not fail as it should"
"""What is said of a job that failed in another way, as on a machine too busy to start Ray: it does not count."""
BIN = Path(sys.executable).parent
LAUNCHERS = {
    "torchrun": (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
    "torchrun_nodes": (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
    "accelerate": (sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"),
    "deepspeed": (sys.executable, str(BIN / "deepspeed"), "--num_accelerators", "2"),
    "ray": (sys.executable,),
    "python": (sys.executable,),
}
RANKS = """\
import os, signal, sys, threading, time
from datetime import timedelta
import torch, torch.distributed as dist
rank = int(os.environ.get("RANK", "0"))
def train(steps=3):
    model = torch.nn.Linear(4, 2)
    for step in range(steps):
        loss = model(torch.randn(8, 4)).square().mean()
        print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)
    return model
"""
"""What stands before the code of each job."""


class Job(BaseModel):
    """A line of `crashed.jsonl`.

    Args:
        name: What goes wrong.
        launcher: A key of LAUNCHERS.
        options: What the launcher gets besides.
        code: What each rank runs, below RANKS.
        rank: The rank that fails first; empty where none is to blame alone.
        line: A regular expression for the line that shows the first failure.
        needs: Modules that it needs.
    """

    name: str
    launcher: str = "torchrun"
    options: list[str] = []
    code: str
    rank: str = ""
    line: str
    needs: list[str] = []


def crash(job: Job) -> str:
    """Run a job until it fails; return what it printed."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        script = Path(folder) / "job.py"
        script.write_text(RANKS + job.code, encoding="utf-8")
        options = [option.replace("TAKEN_PORT", str(taken.getsockname()[1])) for option in job.options]
        command = [*LAUNCHERS[job.launcher], *options, str(script)]
        settings = {
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "DS_ACCELERATOR": "cpu",
            "PYTHONUNBUFFERED": "1",
        }
        path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
        log = Path(folder) / "job.log"
        with log.open("wb") as output:
            run = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=os.environ | settings | {"PATH": path},
                start_new_session=True,
            )
            try:
                run.wait(MAX_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
        return log.read_text(encoding="utf-8", errors="replace")


def judged(job: Job, text: str) -> str:
    """Return what is right or wrong about the answer to a log."""
    error = explain_error(text).error
    lines = text.splitlines()
    expected = [at for at, line in enumerate(lines, 1) if re.search(job.line, line)]
    if not expected:
        return NOT_AS_MEANT
    if error is None:
        return "nothing found"
    # Where no rank alone is to blame, all fail at once, and the line of any of them is right.
    if error.line not in (expected[:1] if job.rank else expected):
        return f"line {error.line} for {expected[0]}: {lines[error.line - 1][:160]!r}"
    return "right" if not job.rank or error.ranks == [job.rank] else f"ranks {error.ranks} for {job.rank}"


def main() -> None:
    """Print what was missed, and the share that is right."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="folder for the logs")
    parser.add_argument("--job", help="only this one")
    options = parser.parse_args()
    jobs = [Job.model_validate_json(line) for line in JOBS.read_text(encoding="utf-8").splitlines()]
    counts: Counter[str] = Counter()
    for job in jobs:
        if (options.job and job.name != options.job) or not all(map(importlib.util.find_spec, job.needs)):
            continue
        kept = options.keep / f"{job.name}.log" if options.keep else None
        text = kept.read_text(encoding="utf-8") if kept and kept.is_file() else crash(job)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(text, encoding="utf-8")
        outcome = judged(job, text)
        counts[outcome if outcome in ("right", NOT_AS_MEANT) else "wrong"] += 1
        if outcome != "right":
            print(f"{job.name}: {outcome}", flush=True)
    print(f"first failing rank and line: {counts['right']} of {counts['right'] + counts['wrong']}")


if __name__ == "__main__":
    main()
