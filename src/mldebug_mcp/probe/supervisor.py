"""Run a command and end it with everything that it started: `python supervisor.py FOLDER COMMAND...` (Linux).

A process that leaves its group and session (`setsid`) outlives any signal to the group. So this process adopts whatever
loses its parent (`PR_SET_CHILD_SUBREAPER`), and before it ends it kills until it has no child left: then there is no
descendant either. It ends with the command, when its standard input says so, and when the host's end of that closes; in
the last case the host is gone and FOLDER is removed in its place. It ends in the way the command did.

Where the kernel allows it, the command and all that it starts have a network of their own. It holds nothing
but this machine's loopback.

Only the standard library is used, and little of it: it is imported while somebody waits.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
"""From linux/prctl.h."""
_CLONE_NEWUSER = 0x10000000
"""From linux/sched.h."""
_CLONE_NEWNET = 0x40000000
"""From linux/sched.h; the next two from linux/sockios.h and linux/if.h."""
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
POLL_SECONDS = 0.02
"""Seconds between two looks at the command."""
MAX_KILLING_SECONDS = 5.0
"""Seconds for which descendants are looked for and killed: something that forks faster than that is not our user's."""


def main(folder: str, command: list[str]) -> int:
    """Run a command until it, or the host, has ended; return its exit code, negative for a signal."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if works(leave_network):
        leave_network()
    host_is_there = True
    code = 0
    try:
        # A session of its own: the worker ends its whole group where it finds that we are gone.
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603 - the host's
        while worker.poll() is None:
            if select.select([0], [], [], POLL_SECONDS)[0]:
                host_is_there = bool(os.read(0, 1))
                break
        code = worker.returncode or 0
    finally:
        kill_descendants()
        if not host_is_there:
            shutil.rmtree(folder, ignore_errors=True)
    return code


def leave_network() -> None:
    """Take a network of one's own, with a loopback; raises OSError where the kernel does not allow it."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWNET):
        # Who is not root may have one as the root of a user namespace, in which the user is who he was.
        if user == 0 or libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP))


def works(step: Callable[[], None]) -> bool:
    """Try a step that cannot be taken back, in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            step()
        except BaseException:  # noqa: BLE001 - whatever it is, it does not work
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def kill_descendants() -> None:
    """Kill every descendant of this process and wait for it."""
    end = time.monotonic() + MAX_KILLING_SECONDS
    while time.monotonic() < end:
        for descendant in _descendants(os.getpid()):
            try:
                os.kill(descendant, signal.SIGKILL)
            except OSError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(POLL_SECONDS / 10)


def _descendants(parent: int) -> list[int]:
    found: list[int] = []
    pending = [parent]
    while pending:
        try:
            threads = list(Path(f"/proc/{pending.pop()}/task").iterdir())
            children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
        except OSError:
            continue
        found += children
        pending += children
    return found


def end_like(code: int) -> None:
    """End this process as the command ended: with its exit code, or by its signal, without a core dump."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    end_like(main(sys.argv[1], sys.argv[2:]))
