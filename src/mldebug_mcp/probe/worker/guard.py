"""What keeps a probe from harming its machine: it ends with its host, in bounded time and memory, without a network."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

GRACE = 4.0
"""Seconds beyond the time limit after which the whole group is ended, if the host is gone."""
FOLDER_PREFIX = "mldebug-probe-"
"""The host's name for the folder: no other folder is ever removed."""
_LOOPBACK = ("127.", "::1", "localhost")


def guard(time_limit: float, memory_bytes: int | None, folder: Path) -> None:
    """Set all limits of this process.

    Args:
        time_limit: Seconds after which the stacks are printed and the process ends, whatever it is doing.
        memory_bytes: Limit of the data segment, which turns a huge allocation into an error at the user's own line.
        folder: The folder of job and result, which is removed here if the host is gone.
    """
    _end_with_host(time_limit, folder)
    # Runs in a C thread, so it also ends a process whose Python is stuck in an extension.
    faulthandler.enable()
    faulthandler.dump_traceback_later(time_limit, exit=True)
    if memory_bytes is not None:
        _limit_memory(memory_bytes)
    sys.addaudithook(_no_network)


def _end_with_host(time_limit: float, folder: Path) -> None:
    """End this process and its children when the host's end of standard input closes, or the time is up.

    The watch is a process of its own in the same group: a thread could not act while an extension holds Python's lock.
    """
    watched = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    if not hasattr(os, "fork"):
        threading.Thread(target=_watch, args=(watched,), name="probe-watch", daemon=True).start()
        return
    worker = os.getpid()
    if os.fork() == 0:
        # The host must not take the watch's copies of the output for the worker's.
        os.dup2(watched, 0)
        watched = 0
        os.closerange(1, 256)
        select.select([watched], [], [], time_limit + GRACE)
        # If the worker has ended, the host still has to read the result, and removes the folder itself.
        if os.getppid() == worker and folder.name.startswith(FOLDER_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)
    os.close(watched)


def _watch(watched: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(watched, 1024):
            pass
    os._exit(1)


def _limit_memory(memory_bytes: int) -> None:
    try:
        import resource
    except ImportError:
        return  # Windows; the host watches the process there
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, hard))
        # A core dump of a training process is as large as its memory.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _no_network(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        return
    address = arguments[-1]
    if isinstance(address, tuple) and not str(address[0]).startswith(_LOOPBACK):
        raise PermissionError(f"the probe has no network, but {address[0]!r} was called; use files on this machine")
