"""Trials of a fault, and the row of the table that they make."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

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
