"""What a call may use: processor time and memory in proportion to what it reads.

The limits are the kernel's, so that they hold in a library's compiled code too: a timer that ends the process
(`ITIMER_PROF`), and a bound on the memory it may claim (`RLIMIT_DATA`), past which claiming fails. They are set only in
a process that `begin` was called in, which is a helper's (`sandbox`); elsewhere all of this does nothing. Windows has
neither, and macOS does not hold the bound on memory.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from mmap import PAGESIZE
from pathlib import Path

SECONDS = 3.0
"""Processor time of a call that reads little. The slowest of them takes about one."""
SECONDS_PER_MIB = 2.0
"""Beside it, for each MiB that is read. Text logs, the slowest to read, take about a third of that."""
TIMES_WALL = 20
"""A call that waits, uses no processor time: it ends after this many times the time that it may use."""
BYTES = 640 * 1024 * 1024
"""Memory of a call that reads little, beside what the process holds when the call begins."""
BYTES_PER_BYTE = 20
"""Beside it, for each byte that is read: Python holds a pickled list of short tuples in 18."""
_MIB = 1024 * 1024


@dataclass(slots=True)
class _Call:
    """What the call that is running may use; `memory` is 0 where that cannot be bounded."""

    memory: int
    files: dict[object, int] = field(default_factory=dict)
    """The sizes of the files that it has read."""


_running: _Call | None = None


def begin(size: int = 0) -> None:
    """Limit the work that begins now, for as many bytes of input. The process ends when the time has run out."""
    global _running  # noqa: PLW0603 - of the process, as its timers are
    if sys.platform == "win32":
        return
    for end in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(end, signal.SIG_DFL)
    claimed = _claimed()
    _running = _Call(claimed + BYTES if claimed else 0)
    _set_time(SECONDS, SECONDS * TIMES_WALL)
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
    if file is not None:
        before = _running.files.get(file, 0)
        _running.files[file] = max(before, size)
        size = max(0, size - before)
    more = size / _MIB * SECONDS_PER_MIB
    used, waited = signal.getitimer(signal.ITIMER_PROF)[0], signal.getitimer(signal.ITIMER_REAL)[0]
    if used and waited:
        _set_time(used + more, waited + more * TIMES_WALL)
    if _running.memory:
        _running.memory += size * BYTES_PER_BYTE
        _set_memory(_running.memory)


def seconds_left() -> float | None:
    """Return the processor time that the call may still use, for a process of its own; None for any."""
    if _running is None or sys.platform == "win32":
        return None
    return signal.getitimer(signal.ITIMER_PROF)[0]


@contextmanager
def unhurried() -> Iterator[None]:
    """Lift the limits for work that is no stranger's: to import a large library takes seconds."""
    if _running is None or sys.platform == "win32":
        yield
        return
    used, waited = signal.getitimer(signal.ITIMER_PROF)[0], signal.getitimer(signal.ITIMER_REAL)[0]
    before = _claimed()
    _set_time(0, 0)
    _set_memory(0)
    try:
        yield
    finally:
        _set_time(used, waited)
        if _running.memory:
            _running.memory += max(0, _claimed() - before)
            _set_memory(_running.memory)


def _set_time(processor: float, wall: float) -> None:
    if sys.platform != "win32":
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
        return int(Path("/proc/self/statm").read_text().split()[column]) * PAGESIZE
    return 0
