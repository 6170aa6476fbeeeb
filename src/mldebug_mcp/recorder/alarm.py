"""Looks at a recording while it grows, in a process of its own, and calls back when something stays wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

NOT_WRONG = frozenset({"healthy", "unknown"})
PATIENCE = 600.0
"""Seconds that a look may take."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A cause that leads at two looks in a row.

    Args:
        cause: Its id, as `mldebug-mcp explain` takes it.
        probability: What the last look gives it.
        because: The findings that speak for it.
        path: The recording.
    """

    cause: str
    probability: float
    because: tuple[str, ...]
    path: Path

    def __str__(self) -> str:
        return f"{self.path}: {self.cause}, {self.probability:.0%} ({', '.join(self.because)})"


class Looks:
    """Diagnoses a recording again and again, beside the training and at a lower priority.

    Args:
        path: The folder of the recording, or its file.
        every: Seconds between two looks.
        call: Gets an alarm, once for each cause, on a thread of its own.
    """

    def __init__(self, path: Path, every: float, call: Callable[[Alarm], None]) -> None:
        self._path, self._every, self._call = path, every, call
        self._over = Event()
        self._last, self._told = "", set[str]()
        self._thread = Thread(target=self._run, name="mldebug-alarm", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            began = time.monotonic()
            found = look(self._path)
            if found is not None:
                self._take(found)
            if time.monotonic() - began > self._every:  # a machine that is busy is looked at more seldom
                self._every *= 2

    def _take(self, found: Alarm) -> None:
        again, self._last = found.cause == self._last, found.cause
        if again and found.cause not in NOT_WRONG | self._told:
            self._told.add(found.cause)
            try:
                self._call(found)
            except Exception as error:  # noqa: BLE001 - the user's own function, on a thread that nobody waits for
                sys.stderr.write(f"mldebug_mcp.recorder: alarm: {type(error).__name__}: {error}\n")


def look(path: Path) -> Alarm | None:
    """Diagnose a recording in another process; return what leads, None where it cannot be told yet."""
    nice = shutil.which("nice")
    command = [sys.executable, "-m", "mldebug_mcp", "diagnose", str(path), "--json"]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            [nice, "-n", "10", *command] if nice else command, capture_output=True, timeout=PATIENCE, check=True
        )
        first = json.loads(done.stdout)["hypotheses"][0]
    except (subprocess.SubprocessError, OSError, ValueError, LookupError):
        return None
    because = tuple(str(one.get("symptom", one)) if isinstance(one, dict) else str(one) for one in first["because"])
    return Alarm(first["cause"], first["probability"], because, path)
