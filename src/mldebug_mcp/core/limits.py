"""What a call may use, how it reports its progress, and how libraries are kept from the network."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from mldebug_mcp.core.lazy import dataclass

# What a call may use: processor time and memory in proportion to what it reads.
#
# The limits are the kernel's, so that they hold in a library's compiled code too: a timer that ends the process
# (`ITIMER_PROF`), and a bound on the memory it may claim (`RLIMIT_DATA`), past which claiming fails. They are set only
# in a process that `begin` was called in, which is a helper's (`sandbox`); elsewhere all of this does nothing. Windows
# has neither, and macOS does not hold the bound on memory.


BASE_CALL_SECONDS = 3.0
"""Processor time of a call that reads little. The slowest of them takes about one."""
SECONDS_PER_MIB = 2.0
"""More memory for each MiB that is read. Text logs, the slowest to read, take about a third of that."""
SECONDS_PER_FILE = 0.1
"""For each file that is read, however small. A run of a folder takes a third of that to read and judge."""
MOST_FILES = 1000
"""Files that the time of a call grows with."""
SECONDS_PER_ENTRY = 0.0005
"""For each entry of a folder that is listed. It takes about a third of that."""
SHARE_FOR_JUDGING = 1 / 3
"""Of the processor time of a call: what is read of many runs stops there, and is judged in the time that is left."""
TIMES_WALL = 20
"""A call that waits, uses no processor time: it ends after this many times the time that it may use, and after more
where calls wait for a core: so many times as there are processes for each core."""
BASE_CALL_BYTES = 640 * 1024 * 1024
"""Memory of a call that reads little, besides what the process holds when the call begins."""
BYTES_PER_BYTE = 20
"""More memory for each byte that is read: Python holds a pickled list of short tuples in 18."""
_MIB = 1024 * 1024
_MIN_TIMER_SECONDS = 0.001
"""Seconds; a timer of none would never end."""


@dataclass(slots=True)
class _Call:
    """What the call that is running may use; `memory` is 0 where that cannot be bounded."""

    memory: int
    patience: float
    """Seconds on the clock for a second of processor time."""
    granted: float = 0.0
    """Processor time that it was given so far."""
    end: float = field(default_factory=time.process_time)
    """The processor time of this process at which it ends ..."""
    last: float = field(default_factory=time.monotonic)
    """... and the time on the clock."""
    is_lifted: bool = False
    files: dict[object, int] = field(default_factory=dict)
    """The sizes of the files that it has read."""


_running: _Call | None = None


def begin(size: int = 0) -> None:
    """Limit the work that begins now, for as many bytes of input. The process ends when the time has run out."""
    global _running  # noqa: PLW0603 - of the process, as its timers are
    if sys.platform == "win32":
        return
    import signal

    for end in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(end, signal.SIG_DFL)
    claimed = _claimed()
    _running = _Call(claimed + BASE_CALL_BYTES if claimed else 0, TIMES_WALL * max(1.0, _load()))
    _grant(BASE_CALL_SECONDS)
    reading(size)


def end() -> None:
    """Lift the limits."""
    global _running  # noqa: PLW0603
    _running = None
    if sys.platform != "win32":
        _set_time(0, 0)
        _set_memory(0)


def reading(size: int, file: object = None) -> None:
    """Allow the time and memory that reading so many bytes takes.

    Args:
        size: In bytes.
        file: What is read: however often the same is opened, it counts once.
    """
    if _running is None or sys.platform == "win32":
        return
    more = 0.0
    if file is not None:
        more = SECONDS_PER_FILE if file not in _running.files and len(_running.files) < MOST_FILES else 0.0
        before = _running.files.get(file, 0)
        _running.files[file] = max(before, size)
        size = max(0, size - before)
    _grant(more + size / _MIB * SECONDS_PER_MIB)
    if _running.memory:
        _running.memory += size * BYTES_PER_BYTE
        _set_memory(_running.memory)


def listing(entries: int) -> None:
    """Allow the time that looking at so many entries of a folder takes."""
    _grant(entries * SECONDS_PER_ENTRY)


def _grant(seconds: float) -> None:
    if _running is not None and seconds:
        _running.granted += seconds
        _running.end += seconds
        _running.last += seconds * _running.patience
        _set_timers(_running)


def _set_timers(call: _Call) -> None:
    """Have the process ended when the time has run out.

    What is left is worked out from clocks and not from the timers: setting one adds a tick of the kernel each time.
    """
    if not call.is_lifted:
        _set_time(
            max(_MIN_TIMER_SECONDS, call.end - time.process_time()),
            max(_MIN_TIMER_SECONDS, call.last - time.monotonic()),
        )


def must_judge_now() -> bool:
    """Return whether so much of the processor time is used that no more should be read; never without a limit.

    Ask between two runs of many, and say in the answer which were not read.
    """
    left = seconds_left()
    return left is not None and _running is not None and left < _running.granted * SHARE_FOR_JUDGING


def _load() -> float:
    """Return how many processes there are for each core that want one, or 0 where the system does not say."""
    with suppress(OSError, AttributeError):
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    return 0.0


def seconds_left() -> float | None:
    """Return the processor time that the call may still use, for a process of its own; None for any."""
    if _running is None or sys.platform == "win32":
        return None
    return max(0.0, _running.end - time.process_time())


@contextmanager
def unhurried() -> Iterator[None]:
    """Lift the limits for work of our own: to import a large library takes seconds."""
    if _running is None or _running.is_lifted or sys.platform == "win32":
        yield
        return
    used, waited, before = time.process_time(), time.monotonic(), _claimed()
    _set_time(0, 0)
    _set_memory(0)
    _running.is_lifted = True
    try:
        yield
    finally:
        _running.is_lifted = False
        _running.end += time.process_time() - used
        _running.last += time.monotonic() - waited
        _set_timers(_running)
        if _running.memory:
            _running.memory += max(0, _claimed() - before)
            _set_memory(_running.memory)


def leave_out_imports() -> None:
    """Lift the limits while a module is loaded, from now on in this process.

    Which call is the first to need a large library is chance, and loading it is not work on the input of that call.
    """
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _Finder())


class _Finder:
    """Finds modules as `PathFinder` does, with loaders that lift the limits."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            for step in ("create_module", "exec_module"):
                if hasattr(spec.loader, step):
                    setattr(spec.loader, step, _in_no_hurry(getattr(spec.loader, step)))
        return spec


def _in_no_hurry(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def load(about: Any) -> Any:  # noqa: ANN401 - a specification or a module, as the import system calls it
        with unhurried():
            return step(about)

    return load


def _set_time(processor: float, wall: float) -> None:
    if sys.platform != "win32":
        import signal

        signal.setitimer(signal.ITIMER_PROF, processor)
        signal.setitimer(signal.ITIMER_REAL, wall)


def _set_memory(size: int) -> None:
    """Bound the memory that the process may claim; 0 for no bound."""
    if sys.platform == "win32":
        return
    import resource

    with suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = size if size and (hard == resource.RLIM_INFINITY or size < hard) else hard
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def resident() -> int:
    """Return the bytes of memory that this process holds, or 0 where the system does not tell."""
    return _pages(1)


def _claimed() -> int:
    """Return the bytes that count towards RLIMIT_DATA, or 0 where the system does not tell."""
    return _pages(5)


def _pages(column: int) -> int:
    """Return a number of Linux's table of this process's memory, in bytes, or 0 where there is none."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[column]) * os.sysconf("SC_PAGE_SIZE")
    return 0


# Progress and cancellation of long work: it calls `checkpoint` now and then.
#
# A listener is told what is being done. The server's reports it to the client, and raises in the thread of the work
# once the call is cancelled. Without a listener a checkpoint costs next to nothing.


Listener = Callable[[str], None]
"""Called with what is being done. An exception that it raises ends the work."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def checkpoint(doing: str) -> None:
    """Report what is being done. Call it a few times a second, where the work can be abandoned safely."""
    listener = _listener.get()
    if listener is not None:
        listener(doing)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Pass the checkpoints of the work inside to a listener, in this thread and in those that copy its context.

    A listener around it hears them as well.
    """
    outer = _listener.get()

    def both(doing: str) -> None:
        for each in (outer, listener):
            if each is not None:
                each(doing)

    token = _listener.set(both if outer is not None else listener)
    try:
        yield
    finally:
        _listener.reset(token)


# The settings that keep third-party libraries off the network.


OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "DO_NOT_TRACK": "1",
}
"""Environment variables of huggingface_hub, transformers, W&B and those that honour DO_NOT_TRACK."""
