"""A helper process: does one call after the other, each within limits.

    python -P -m mldebug_mcp.core.sandbox.helper MODULE

MODULE has a mapping CALLS of functions by name, which take and return JSON, and a function `prepare`. A line of JSON on
the standard input says where the helper may read and write, each further one is a call; the answers are lines of JSON
on the standard output. Before it reads anything, it gives up its rights: limits, the network, and all files but those
that it may read.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

from mldebug_mcp.core import limits
from mldebug_mcp.core.access import Access, confined
from mldebug_mcp.core.errors import MLDebugError, is_failure
from mldebug_mcp.core.limits import listening
from mldebug_mcp.core.paths import knowledge_folder
from mldebug_mcp.core.text import shorten

# Landlock: a process gives up its right to files, for good (Linux 5.13 and later).
#
# https://docs.kernel.org/userspace-api/landlock.html. The numbers below are those of `linux/landlock.h`; the system
# calls have the same numbers on every architecture.


_SYS_CREATE_RULESET = 444
_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_RULESET_VERSION_FLAG = 1
_PATH_BENEATH = 1
_O_PATH = getattr(os, "O_PATH", 0)
_NO_NEW_PRIVILEGES = 38

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_TRUNCATE = 1 << 14
_IOCTL = 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_KNOWN_BY = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights to files that a version of the interface knows, by the first version that knows them."""
_BIND_AND_CONNECT_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

READ = _READ_FILE | _READ_DIR
RUN = READ | _EXECUTE
WRITE = (1 << 16) - 1 & ~(_EXECUTE | _IOCTL)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def landlock_version() -> int:
    """Return the version of the kernel's interface; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_SYS_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_RULESET_VERSION_FLAG)))


def restrict(allowed: Iterable[tuple[str, int]]) -> bool:
    """Give up all rights to files but those named, to TCP, and to signals out of this process's like.

    Args:
        allowed: Files and folders with what may be done there: READ, RUN or WRITE. Those that are not there are left
            out.

    Returns:
        Whether the kernel holds this process to it.
    """
    known = landlock_version()
    if not known:
        return False
    files = _KNOWN_BY[max(number for number in _KNOWN_BY if number <= known)]
    rules = _Ruleset(
        files, _BIND_AND_CONNECT_TCP if known >= 4 else 0, _ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0
    )
    size = 8 * (1 + (known >= 4) + (known >= 6))
    ruleset = _call(_SYS_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        for path, rights in allowed:
            with suppress(OSError):
                _allow(ruleset, path, rights & files)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            return False
        return _call(_SYS_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    place = os.open(path, _O_PATH | os.O_CLOEXEC)
    try:
        beneath = _Beneath(rights if Path(path).is_dir() else rights & _OF_FILES, place)
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(beneath), ctypes.c_uint32(0))
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))


# What a helper gives up before it reads anything of a stranger's.
#
# Each step is one that the system may not offer; what is left out then is told in docs/trust.md.


MAX_FILE_DESCRIPTORS = 512
FILE_BYTES = 2 * 1024**3
"""The largest file that may be written: a copy of a tokenizer's."""
_DEATH_SIGNAL = 1
_NEW_NETWORK = 0x40000000
_NEW_USER = 0x10000000
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/gnu", "/sys/devices/system")
"""Where libraries are, and what the machine's processors are like."""
_SINGLE = (
    "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/sys/vm/overcommit_memory",
)  # fmt: skip


def confine(roots: Sequence[str] | None, scratch: str, parent: int) -> None:
    """Give up what reading files does not need.

    Args:
        roots: The folders that may be read; None for all, where only writing is given up.
        scratch: The one folder that may be written to.
        parent: The process that started this one; with its end this one ends.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before that
            os._exit(1)
        # Only root may have a network of its own without being another user, who might not see root's files.
        if libc.unshare(_NEW_NETWORK) and os.getuid():
            libc.unshare(_NEW_NETWORK | _NEW_USER)
    _bound()
    restrict(
        [
            *((root, READ) for root in (("/",) if roots is None else roots)),
            *((place, RUN) for place in (*_pythons(), *_SYSTEM)),
            *((place, READ) for place in _SINGLE),
            ("/dev/null", WRITE | READ),
            (scratch, WRITE),
        ]
    )


def _bound() -> None:
    """Bound descriptors and written files, and leave no memory behind where the process crashes."""
    with suppress(ImportError):
        import resource

        for limit, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, MAX_FILE_DESCRIPTORS),
            (resource.RLIMIT_FSIZE, FILE_BYTES),
        ):
            with suppress(ValueError, OSError):
                hard = resource.getrlimit(limit)[1]
                least = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.setrlimit(limit, (least, least))


def _pythons() -> list[str]:
    """Return where this interpreter and its packages are."""
    places = [sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent), *filter(None, sys.path)]
    places.append(str(knowledge_folder()))
    return list(dict.fromkeys(os.path.realpath(place) for place in places))


# The calls, one after the other.


MIN_REPORT_GAP_SECONDS = 0.5
"""Seconds between two words on what is being done."""
MOST_HELD = 512 * 1024 * 1024
"""Bytes that a helper may hold after a call beyond what it began with: libraries that it imports for batches take about
200 MB, and names and texts of files that it has read stay in caches. Chosen by hand."""
Call = Callable[..., object]


def main(module: str) -> None:
    """Serve until the input ends."""
    requests, answers = _server_pipes()
    start = json.loads(requests.readline())
    roots = start["roots"]
    confine(roots, start["scratch"], start["parent"])
    limits.leave_out_imports()
    work = import_module(module)
    work.prepare()
    calls = cast("Mapping[str, Call]", work.CALLS)
    access = Access(None if roots is None else tuple(roots))
    most = limits.resident() + MOST_HELD
    _say(answers, {"ready": True})
    while line := requests.readline():
        _say(answers, {"begun": True})  # from here on an end without an answer is due to this call
        request = json.loads(line)
        answer = _answer(calls[request["call"]], request["arguments"], access, answers, len(line))
        # Out of memory, what is left may be torn into pieces.
        last = "memory" in answer or limits.resident() > most
        _say(answers, {**answer, "last": last})
        if last:
            return


def _server_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes to the server, and leave libraries an empty input and an output that goes nowhere."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return requests, answers


def _say(answers: BinaryIO, message: object) -> None:
    answers.write(json.dumps(message).encode() + b"\n")
    answers.flush()


def _answer(call: Call, arguments: dict[str, Any], access: Access, answers: BinaryIO, size: int) -> dict[str, object]:
    """Return what a call returns, or why it does not."""
    limits.begin(size)
    try:
        with confined(access), listening(_Teller(answers)):
            return {"answer": call(**arguments)}
    except MLDebugError as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"memory": True}
    except BaseException as error:
        if not is_failure(error):
            raise
        if not isinstance(error, Exception):
            return {"panic": shorten(str(error), 200)}
        return {"failed": traceback.format_exc()}
    finally:
        limits.end()


class _Teller:
    """Passes on what is being done, now and then."""

    def __init__(self, answers: BinaryIO) -> None:
        self.answers = answers
        self.last = time.monotonic()

    def __call__(self, doing: str) -> None:
        now = time.monotonic()
        if now - self.last > MIN_REPORT_GAP_SECONDS:
            self.last = now
            _say(self.answers, {"doing": shorten(doing, 200)})


if __name__ == "__main__":
    main(sys.argv[1])
