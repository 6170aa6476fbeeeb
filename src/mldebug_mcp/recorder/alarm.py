"""Looks at a recording while it grows.

A process of its own calls back when something stays wrong, a watchdog sees a loop that hangs.
"""

from __future__ import annotations

import faulthandler
import json
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from mldebug_mcp.recorder.late import guarded
from mldebug_mcp.recorder.recording import Record

# Looks at a recording while it grows, in a process of its own, and calls back when something stays wrong.


NOT_WRONG = frozenset({"healthy", "unknown"})
MAX_LOOK_SECONDS = 600.0
"""Seconds that a look may take."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A cause that leads at two looks in a row.

    Args:
        cause: Its id, as `mldebug-mcp explain` takes it.
        probability: What the last look gives it.
        because: The findings that support it.
        path: The recording.
    """

    cause: str
    probability: float
    because: tuple[str, ...]
    path: Path

    def __str__(self) -> str:
        return f"{self.path}: {self.cause}, {self.probability:.0%} ({', '.join(self.because)})"


class Looks:
    """Diagnoses a recording again and again, during the training and at a lower priority.

    Args:
        path: The folder of the recording, or its file.
        every: Seconds between two looks.
        call: Gets an alarm, once for each cause, on a thread of its own.
    """

    def __init__(self, path: Path, every: float, call: Callable[[Alarm], None]) -> None:
        self._path, self._every, self._call = path, every, call
        self._over = Event()
        self._last, self._alarmed = "", set[str]()
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
        if again and found.cause not in NOT_WRONG | self._alarmed:
            self._alarmed.add(found.cause)
            try:
                self._call(found)
            except Exception as error:  # noqa: BLE001 - the user's own function, on a thread that nobody waits for
                sys.stderr.write(f"mldebug_mcp.recorder: alarm: {type(error).__name__}: {error}\n")


def look(path: Path) -> Alarm | None:
    """Diagnose a recording in another process; return what leads, None where it is not known yet."""
    nice = shutil.which("nice")
    command = [sys.executable, "-m", "mldebug_mcp", "diagnose", str(path), "--json"]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            [nice, "-n", "10", *command] if nice else command, capture_output=True, timeout=MAX_LOOK_SECONDS, check=True
        )
        first = json.loads(done.stdout)["hypotheses"][0]
    except (subprocess.SubprocessError, OSError, ValueError, LookupError):
        return None
    because = tuple(
        str(reason.get("symptom", reason)) if isinstance(reason, dict) else str(reason) for reason in first["because"]
    )
    return Alarm(first["cause"], first["probability"], because, path)


# When no step comes for long: the stacks of all threads, and what PyTorch's flight recorder holds, in files.
#
# Neither stops the training; a step that comes after all is recorded as well.


MAX_STACK_LINES = 6
"""Innermost lines of the main thread that are reported."""


class Watchdog:
    """Looks whether the training moves.

    Args:
        seconds: How long it may stand still; 0 for ever.
        folder: Where the files go.
        rank: The rank of this process, and what marks its files where there are several.
        write: Writes an event.
        step: Returns the number of the step that began or ended last.
    """

    def __init__(
        self,
        seconds: float,
        folder: Path,
        rank: tuple[int, str],
        write: Callable[[Record], None],
        step: Callable[[], int],
    ) -> None:
        self._seconds, self._folder, self._write, self._step = seconds, folder, write, step
        self._rank, self._mark = rank
        self.since = time.perf_counter()
        """When a step began or ended last."""
        self._hangs: tuple[int, float] | None = None
        """The step in which nothing has moved for too long, and since when."""

    def notice(self) -> None:
        """Write that the training moves again, where it does."""
        if self._hangs is not None and self._hangs[1] != self.since:
            (step, since), self._hangs = self._hangs, None
            self._write({"step": step, "event": "went_on", "value": self.since - since})

    @guarded
    def look(self) -> None:
        """Write down where everything is, once, if nothing has moved for too long."""
        self.notice()
        since, step = self.since, self._step()
        still = time.perf_counter() - since
        if not self._seconds or self._hangs is not None or still < self._seconds:
            return
        self._hangs = step, since
        stacks = self._folder / f"stacks{self._mark}.dump"
        with stacks.open("a", encoding="utf-8") as file:
            file.write(f"step {step}, {time.strftime('%Y-%m-%d %H:%M:%S')}, {still:.0f} s without a step\n")
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
        event: dict[str, object] = {"step": step, "event": "hang", "value": still, "stacks": stacks.name}
        event["at"] = main_lines()
        if flight := self._flight():
            event["flight"] = flight
        self._write(event)

    def _flight(self) -> str:
        """Write what the flight recorder of torch.distributed holds; return the name of the file, "" if nothing."""
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return ""
        inner = sys.modules["torch"]._C._distributed_c10d
        dump = getattr(inner, "_dump_fr_trace", None) or getattr(inner, "_dump_nccl_trace", None)
        if dump is None:
            return ""
        file = self._folder / f"nccl_trace_rank_{self._rank}"
        file.write_bytes(dump())
        return file.name


def main_lines() -> list[str]:
    """Return the innermost lines of the main thread, the innermost first."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    lines = traceback.extract_stack(frame)[::-1][:MAX_STACK_LINES] if frame is not None else []
    return [f"{Path(line.filename).name}:{line.lineno} in {line.name}" for line in lines]
