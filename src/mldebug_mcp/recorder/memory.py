"""Memory of the process and of its GPU, at most a few times a second."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

EVERY = 0.25
"""Seconds between two readings. Chosen: the allocator's counts take a tenth of a millisecond."""
_STATM = Path("/proc/self/statm")
GIB = 2.0**30


class Memory:
    """Reads the memory when it is due."""

    def __init__(self) -> None:
        self._next = 0.0
        self._is_there = _STATM.exists()

    def read(self, into: dict[str, object], *, on_gpu: bool) -> None:
        """Put the memory in GiB into a record, by name, unless it was read a moment ago."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        if on_gpu:
            cuda = sys.modules["torch"].cuda
            into["memory/allocated_gib"] = cuda.memory_allocated() / GIB
            into["memory/reserved_gib"] = cuda.memory_reserved() / GIB
        elif self._is_there:
            with _STATM.open("rb", buffering=0) as file:
                pages = int(file.read().split()[1])
            into["host_memory_gib"] = pages * os.sysconf("SC_PAGE_SIZE") / GIB
