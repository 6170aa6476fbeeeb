"""Count how often error messages are recognised, and how often the first failing rank and line of a job are found.

    python -m benchmarks.errors raised
    python -m benchmarks.errors crashed [--keep FOLDER] [--job NAME]

`raised.jsonl` holds a case a line: its kind, the ids of `errors.jsonl` that are right for it, the modules that it
needs, and the code that raises. The ids were written down before the tool was asked. `crashed.jsonl` holds a job a
line: how it is launched, what its ranks do, and which rank and which line are the first to fail. What needs a module
that is not installed is passed over. With `--keep` the logs of jobs stay in a folder, and a log that is there is not
made again.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import linecache
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from mldebug_mcp.judge.explain_error import explain_error

HERE = Path(__file__).parent
SCRIPT = "train.py"
"""The name under which a case's code stands in its traceback."""
SURE = "almost certain"
OFFLINE = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
MAX_SECONDS = 180
NOT_AS_MEANT = "the job did not fail as it should"
"""The outcome of a job that failed in another way, as on a machine too busy to start Ray: it does not count."""
BIN = Path(sys.executable).parent
LAUNCHERS = {
    "torchrun": (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
    "torchrun_nodes": (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
    "accelerate": (sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"),
    "deepspeed": (sys.executable, str(BIN / "deepspeed"), "--num_accelerators", "2"),
    "ray": (sys.executable,),
    "python": (sys.executable,),
}
ON_CPU = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu", "PYTHONUNBUFFERED": "1"}
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


class Needing(BaseModel):
    """Code that needs modules."""

    needs: list[str] = []
    code: str

    @property
    def can_run(self) -> bool:
        """Whether its modules are installed."""
        return all(importlib.util.find_spec(module) is not None for module in self.needs)


class Case(Needing):
    """A line of `raised.jsonl`."""

    kind: str
    right: list[str]


class Job(Needing):
    """A line of `crashed.jsonl`.

    Args:
        name: What goes wrong.
        launcher: A key of LAUNCHERS.
        options: What the launcher gets besides.
        rank: The rank that fails first; empty where none is to blame alone.
        line: A regular expression for the line that shows the first failure.
    """

    name: str
    launcher: str = "torchrun"
    options: list[str] = []
    rank: str = ""
    line: str


Line = TypeVar("Line", bound=Needing)


def lines_of(file: str, kind: type[Line]) -> Iterator[Line]:
    """Yield the lines of a file."""
    for line in (HERE / file).read_text(encoding="utf-8").splitlines():
        yield kind.model_validate_json(line)


def raised(case: Case) -> str:
    """Return the traceback that the code of a case ends with; empty where it raises nothing."""
    source, settings = case.code, dict(os.environ)
    linecache.cache[SCRIPT] = (len(source), None, source.splitlines(keepends=True), SCRIPT)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            exec(compile(source, SCRIPT, "exec"), {})  # noqa: S102 - the cases are this repository's own
        except BaseException:  # noqa: BLE001 - PyTorch raises some errors beside Exception, and a parser exits
            return traceback.format_exc()
        finally:
            os.environ.clear()
            os.environ |= settings
            distributed = sys.modules.get("torch.distributed")
            if distributed is not None and distributed.is_initialized():
                distributed.destroy_process_group()
    return ""


def outcome_of_case(number: int, case: Case) -> str:
    """Raise a case's error and ask for it; print it where the answer is not right."""
    if not case.can_run:
        return "not installed"
    text = raised(case)
    if not text:
        print(f"line {number}: nothing is raised")
        return "not raised"
    matches = explain_error(text).matches
    outcome = "unknown" if not matches else "right" if matches[0].id in case.right else "wrong"
    if outcome == "wrong" and matches[0].credence == SURE:
        outcome = "wrong and sure"
    if outcome != "right":
        message = text.strip().splitlines()[-1][:300]
        print(f"line {number}: {outcome}: {[match.id for match in matches]} for {case.right}: {message}")
    return outcome


def count_raised() -> None:
    """Print each case that is unknown or wrong, and the shares by kind."""
    os.environ |= OFFLINE
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, case in enumerate(lines_of("raised.jsonl", Case), 1):
            counts[case.kind][outcome_of_case(number, case)] += 1
    for kind, by_outcome in [*sorted(counts.items()), ("all", sum(counts.values(), Counter[str]()))]:
        print(f"{kind:<14}", *(f"{outcome} {count}" for outcome, count in sorted(by_outcome.items())))


def crash(job: Job) -> str:
    """Run a job until it fails; return what it printed."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        script, log = Path(folder) / "job.py", Path(folder) / "job.log"
        script.write_text(RANKS + job.code, encoding="utf-8")
        options = [option.replace("TAKEN_PORT", str(taken.getsockname()[1])) for option in job.options]
        path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])
        with log.open("wb") as output:
            run = subprocess.Popen(
                [*LAUNCHERS[job.launcher], *options, str(script)], stdout=output, stderr=subprocess.STDOUT, cwd=folder,
                env=os.environ | ON_CPU | {"PATH": path}, start_new_session=True,
            )  # fmt: skip
            try:
                run.wait(MAX_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
        return log.read_text(encoding="utf-8", errors="replace")


def outcome_of_job(job: Job, text: str) -> str:
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


def count_crashed(keep: Path | None, name: str | None) -> None:
    """Crash the jobs; print what was missed, and the share that is right."""
    right = asked = 0
    for job in lines_of("crashed.jsonl", Job):
        if name not in (None, job.name) or not job.can_run:
            continue
        kept = keep / f"{job.name}.log" if keep else None
        text = kept.read_text(encoding="utf-8") if kept and kept.is_file() else crash(job)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(text, encoding="utf-8")
        outcome = outcome_of_job(job, text)
        right += outcome == "right"
        asked += outcome != NOT_AS_MEANT
        if outcome != "right":
            print(f"{job.name}: {outcome}", flush=True)
    print(f"first failing rank and line: {right} of {asked}")


def main() -> None:
    """Count one of both."""
    parser = argparse.ArgumentParser("benchmarks.errors", description="Count how often errors are recognised.")
    parser.add_argument("command", choices=["raised", "crashed"])
    parser.add_argument("--keep", type=Path, help="crashed: folder for the logs")
    parser.add_argument("--job", help="crashed: only this one")
    options = parser.parse_args()
    if options.command == "raised":
        count_raised()
    else:
        count_crashed(options.keep, options.job)


if __name__ == "__main__":
    main()
