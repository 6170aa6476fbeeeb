"""The faults: each function makes trials of one or some, and yields their rows."""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.stdio_process import Process

COMMAND = [sys.executable, "-m", "mldebug_mcp"]
PATIENCE = 120.0
"""Seconds for one trial; what takes longer is broken."""


@dataclass
class Row:
    """How the trials of a fault ended.

    Args:
        fault: What was done.
        answered: Trials that ended in an answer.
        refused: Trials that ended in one line that says what is wrong.
        broken: What the others ended in.
        slowest: Seconds of the longest trial.
    """

    fault: str
    answered: int = 0
    refused: int = 0
    broken: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def timed(self, trial: Callable[[], None]) -> None:
        """Make a trial; whatever it raises breaks it."""
        begun = time.monotonic()
        try:
            trial()
        except Exception as error:  # noqa: BLE001 - this is what is counted
            self.broken.append(f"{type(error).__name__}: {error}")
        self.slowest = max(self.slowest, time.monotonic() - begun)

    def count(self, *, refused: bool, text: str) -> None:
        """Count how a trial ended; a traceback, or an error that is not ours, is broken."""
        if "Traceback" in text or "internal error" in text.lower() or (refused and len(text.splitlines()) > 2):
            self.broken.append(text[-300:])
        elif refused:
            self.refused += 1
        else:
            self.answered += 1

    def __str__(self) -> str:
        trials = self.answered + self.refused + len(self.broken)
        return (
            f"| {self.fault} | {trials} | {self.answered} | {self.refused} | {len(self.broken)} | {self.slowest:.1f} |"
        )


HEADING = """| fault | trials | answered | refused in a line | broken | slowest (s) |
| --- | ---: | ---: | ---: | ---: | ---: |"""


def command(
    row: Row, arguments: list[str], env: dict[str, str] | None = None, limit: Callable[[], None] | None = None
) -> None:
    """Run a command of ours as a trial, in another environment or under a limit."""

    def trial() -> None:
        done = subprocess.run(
            [*COMMAND, *arguments], env=env, preexec_fn=limit, capture_output=True, text=True, errors="replace",
            check=False, timeout=PATIENCE,
        )  # fmt: skip
        row.count(refused=done.returncode == 2, text=done.stderr)
        if done.returncode not in (0, 1, 2):
            row.answered -= 1
            row.broken.append(f"exit code {done.returncode}: {done.stderr[-200:]}")

    row.timed(trial)


def processes_with(word: str) -> list[int]:
    """Return the processes, zombies aside, whose environment holds a word."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            own = not folder.name.isdigit() or int(folder.name) == os.getpid()
            if not own and word.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


EXAMPLES = Path(__file__).parents[2] / "examples"
DROP_CAPABILITY = 24
"""PR_CAPBSET_DROP of linux/prctl.h."""
CAPABILITIES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH of linux/capability.h."""
GIB = 1024**3
CHANCE = random.Random(0)  # noqa: S311 - the same faults at every run
VERBS = (
    ["diagnose", str(EXAMPLES / "loss_spike")],
    ["diagnose", str(EXAMPLES / "overfit"), "--json"],
    ["search", "why did my loss spike"],
    ["explain", "lr_too_high"],
    ["error", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB"],
)


def server(**variables: str) -> Process:
    """Start a server over stdio that may read all files."""
    started = Process(None, "--root", "/", **variables)
    started.start()
    return started


def records(first: int, last: int) -> str:
    """Return lines of a log."""
    return "".join(json.dumps({"step": step, "loss": 4 / (step + 1), "lr": 1e-3}) + "\n" for step in range(first, last))


WHOLE = records(0, 20_000)


def _truncated(path: Path) -> None:
    with path.open("r+") as file:
        file.truncate(CHANCE.randrange(1, 200_000))
    path.write_text(WHOLE)


def _rotated(path: Path) -> None:
    path.rename(path.with_suffix(".1"))
    path.write_text(WHOLE[: CHANCE.randrange(100, len(WHOLE))])


def _deleted(path: Path) -> None:
    path.unlink(missing_ok=True)
    time.sleep(0.005)
    path.write_text(WHOLE)


def _replaced(path: Path) -> None:
    beside = path.with_suffix(".new")
    kind = CHANCE.randrange(4)
    beside.unlink(missing_ok=True)
    if kind == 0:
        os.mkfifo(beside)
    elif kind == 1:
        beside.symlink_to("/dev/zero")
    else:
        beside.write_bytes(CHANCE.randbytes(5000) if kind == 2 else records(0, 9).encode())
    beside.replace(path)
    time.sleep(0.005)
    beside.write_text(WHOLE)
    beside.replace(path)


def changing_files(trials: int) -> Iterator[Row]:
    """Change a log of a megabyte again and again while a server reads it."""
    for change in (_truncated, _rotated, _deleted, _replaced):
        row = Row(f"a log {change.__name__[1:]} again and again while it is read")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.jsonl"
            path.write_text(WHOLE)
            process, over = server(), threading.Event()

            def keep(change: Callable[[Path], None] = change, path: Path = path, over: threading.Event = over) -> None:
                while not over.wait(CHANCE.random() / 20):
                    with suppress(OSError):
                        change(path)

            changer = threading.Thread(target=keep)
            changer.start()
            for _ in range(trials):
                row.timed(partial(_diagnosed, process, path, row))
            over.set()
            changer.join()
            process.process.kill()
        yield row


def _diagnosed(process: Process, path: Path, row: Row) -> None:
    result = process.ask("tools/call", name="diagnose_run", arguments={"path": str(path)})["result"]
    row.count(refused=result["isError"], text=result["content"][0]["text"] if result["isError"] else "")


def full_disks(trials: int) -> Iterator[Row]:
    """Write pages and pictures where there is no room."""
    row = Row("no room for the page or picture that is asked for")

    def little() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    with tempfile.TemporaryDirectory() as folder:
        for number in range(trials):
            run = str(EXAMPLES / ("overfit" if number % 2 else "nan_loss"))
            target = f"{folder}/page" if number % 3 else "/dev/full"
            command(row, ["diagnose", run, "--html", target], {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, little)
        if any(Path(folder).iterdir()):
            row.broken.append("a part of a page was left")
    yield row


def missing_rights(trials: int) -> Iterator[Row]:
    """Read and write where that is not allowed."""
    row = Row("permission denied: the log, its folder, the page's folder")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        closed = Path(folder) / "closed"
        closed.mkdir()
        log, hidden = Path(folder) / "log.jsonl", closed / "log.jsonl"
        for path in (log, hidden):
            path.write_text(records(0, 50))
        log.chmod(0)
        closed.chmod(0)
        unwritable = Path(folder) / "unwritable"
        unwritable.mkdir()
        unwritable.chmod(0o555)

        def without_rights() -> None:
            # Whoever owns the files, and is not let past their modes: also as root.
            for capability in CAPABILITIES:
                ctypes.CDLL(None).prctl(DROP_CAPABILITY, capability, 0, 0, 0)

        asked = (["diagnose", str(log)], ["diagnose", str(hidden)], ["diagnose", str(closed)], ["batch", str(log)],
                 ["diagnose", str(EXAMPLES / "overfit"), "--html", f"{unwritable}/page"])  # fmt: skip
        for number in range(trials):
            command(row, asked[number % len(asked)], {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, without_rights)
        closed.chmod(0o755)
    yield row


def poor_surroundings(trials: int) -> Iterator[Row]:
    """Run verbs without a home, in the C locale, with few descriptors, in little memory."""
    bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "USER", "LOGNAME")}
    surroundings: tuple[tuple[str, dict[str, str], Callable[[], None] | None], ...] = (
        ("no HOME", bare, None),
        ("`LANG=C`, `LC_ALL=C`", {**os.environ, "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}, None),
        ("64 descriptors", {**os.environ}, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))),
        ("2 GB of address space", {**os.environ}, lambda: resource.setrlimit(resource.RLIMIT_AS, (2 * GIB, 2 * GIB))),
        ("closed standard input", {**os.environ}, lambda: os.close(0)),
    )
    for name, variables, limit in surroundings:
        row = Row(name)
        for number in range(trials):
            command(row, VERBS[number % len(VERBS)], variables, limit)
        yield row


def interrupted_probes(trials: int) -> Iterator[Row]:
    """End the server by a signal, or close its input, at any moment of a probe whose code left its session."""
    entry = (
        "import os, subprocess, sys, time\ndef waits():\n    subprocess.Popen([sys.executable, '-c', "
        "'import os, time; os.setsid(); time.sleep(600)'])\n    time.sleep(600)\n"
    )
    for name in ("SIGTERM", "SIGINT", "SIGKILL", "closed input"):
        row = Row(f"{name} at any moment of a probe (left behind: broken)")
        for number in range(trials):
            row.timed(partial(_interrupted, entry, name, 8 * number / trials, row))
        yield row


def _interrupted(entry: str, name: str, moment: float, row: Row) -> None:
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        Path(folder, "entry.py").write_text(entry)
        started = server(TMPDIR=folder)
        started.post("tools/call", name="probe_overfit", arguments={"entry": f"{folder}/entry.py:waits"})
        time.sleep(moment)
        if name == "closed input":
            assert started.process.stdin
            started.process.stdin.close()
        else:
            started.process.send_signal(getattr(signal, name))
        started.process.wait(PATIENCE)
        end = time.monotonic() + 15
        while (left := processes_with(folder)) and time.monotonic() < end:
            time.sleep(0.05)
        folders = list(Path(folder).glob("mldebug-*"))
        for one in left:
            with suppress(OSError):
                os.kill(one, signal.SIGKILL)
        if left or folders:
            row.broken.append(f"left after {moment:.1f} s: {len(left)} processes, {len(folders)} folders")
        else:
            row.answered += 1


FAULTS = (changing_files, full_disks, missing_rights, poor_surroundings, interrupted_probes)
