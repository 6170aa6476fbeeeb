"""The worker's ways out.

These are a result file after each phase, a stream of progress, and failures that the user can act on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

PROGRESS_EVERY = 0.2
"""Seconds between two progress lines."""


class Report:
    """What has been measured so far; progress is written to the file descriptor `channel`.

    The file is replaced as a whole after each phase, so that a crash or a time limit leaves what was known until then.
    """

    def __init__(self, path: str | Path, channel: int) -> None:
        self._path = Path(path)
        self._channel = channel
        self._last = 0.0
        self.stage = "start"
        self.measured: dict[str, Any] = {}
        self.notes: list[str] = []

    def enter(self, stage: str) -> None:
        """Name the phase that begins and save what is known."""
        self.stage = stage
        self.save()
        self.progress(force=True)

    def progress(self, step: int = 0, steps: int = 0, loss: float | None = None, *, force: bool = False) -> None:
        """Tell the host how far the phase has come; most calls write nothing."""
        now = time.monotonic()
        if not force and now - self._last < PROGRESS_EVERY:
            return
        self._last = now
        line = json.dumps({"stage": self.stage, "step": step, "steps": steps, "loss": loss})
        try:
            os.write(self._channel, line.encode() + b"\n")
        except OSError:
            return  # the host is gone; the watch on stdin ends this process

    def note(self, text: str) -> None:
        """Keep a remark for the user, once."""
        if text not in self.notes:
            self.notes.append(text)

    def save(self, failure: dict[str, str] | None = None, *, done: bool = False) -> None:
        """Write the result file."""
        result = {
            "stage": self.stage,
            "done": done,
            "failure": failure,
            "measured": self.measured,
            "notes": self.notes,
        }
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps(result), encoding="utf-8")
        partial.replace(self._path)


def claim_stdout() -> int:
    """Keep standard output for progress, and send what the user's code prints to standard error."""
    channel = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return channel


class KnownFailure(Exception):  # noqa: N818 - an answer
    """A failure with a name that the host understands.

    Args:
        kind: One of `no_torch`, `entry`, `config`, `batch`, `memory`, `device`, `user_code`.
        message: One line: what failed, where, what to do next.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
