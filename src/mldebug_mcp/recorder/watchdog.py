"""When no step comes for long: the stacks of all threads, and what PyTorch's flight recorder holds, in files.

Neither stops the training; a step that comes after all is recorded as well.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from mldebug_mcp.recorder.guard import guarded
from mldebug_mcp.recorder.recording import Record

FRAMES = 6
"""Innermost lines of the main thread that are told."""


class Watchdog:
    """Looks whether the training moves.

    Args:
        seconds: How long it may stand still; 0 for ever.
        folder: Where the files go.
        rank: The rank of this process, and what marks its files where there are several.
        write: Writes an event.
    """

    def __init__(self, seconds: float, folder: Path, rank: tuple[int, str], write: Callable[[Record], None]) -> None:
        self._seconds, self._folder, self._write = seconds, folder, write
        self._rank, self._mark = rank
        self._step, self._since, self._hangs = 0, time.monotonic(), False

    def moved(self, step: int) -> None:
        """Say that the training moves: a step begins or ends."""
        if self._hangs:
            self._write({"step": step, "event": "went_on", "value": time.monotonic() - self._since})
        self._step, self._since, self._hangs = step, time.monotonic(), False

    @guarded
    def look(self) -> None:
        """Write down where everything is, once, if nothing has moved for too long."""
        still = time.monotonic() - self._since
        if not self._seconds or self._hangs or still < self._seconds:
            return
        self._hangs = True
        stacks = self._folder / f"stacks{self._mark}.dump"
        with stacks.open("a", encoding="utf-8") as file:
            file.write(f"step {self._step}, {time.strftime('%Y-%m-%d %H:%M:%S')}, {still:.0f} s without a step\n")
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
        event: dict[str, object] = {"step": self._step, "event": "hang", "value": still, "stacks": stacks.name}
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
    lines = traceback.extract_stack(frame)[::-1][:FRAMES] if frame is not None else []
    return [f"{Path(one.filename).name}:{one.lineno} in {one.name}" for one in lines]
