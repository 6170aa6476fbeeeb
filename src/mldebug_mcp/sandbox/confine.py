"""What a helper gives up before it reads anything of a stranger's.

Each step is one that the system may not offer; what is left out then is told in docs/trust.md.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mldebug_mcp.files import knowledge_folder
from mldebug_mcp.sandbox import landlock

DESCRIPTORS = 512
FILE_BYTES = 2 * 1024**3
"""The largest file that may be written: a copy of a tokenizer's."""
_DEATH_SIGNAL = 1
_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
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
    landlock.restrict(
        [
            *((root, landlock.READ) for root in (("/",) if roots is None else roots)),
            *((place, landlock.RUN) for place in (*_pythons(), *_SYSTEM)),
            *((place, landlock.READ) for place in _SINGLE),
            ("/dev/null", landlock.WRITE | landlock.READ),
            (scratch, landlock.WRITE),
        ]
    )


def _bound() -> None:
    """Bound descriptors and written files, and leave no memory behind where the process crashes."""
    with suppress(ImportError):
        import resource

        for limit, most in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, DESCRIPTORS),
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
