"""A call whose work is done in a thread: its progress is told now and then, and cancelling it ends the work.

A thread cannot be stopped from outside. It stops itself at its next checkpoint.
"""

from __future__ import annotations

import time
from typing import Any

import anyio.from_thread
from mcp.server.mcpserver import Context

from mldebug_mcp.progress import Listener
from mldebug_mcp.text import shorten

SECONDS = 1.0
"""Between two messages: a quick call says nothing."""


def reporter(context: Context[Any, Any]) -> Listener:
    """Return what hears the checkpoints of a tool, in the tool's thread.

    It raises there once the call is cancelled; that is no `Exception`, so nothing on the way takes it for a failure.
    """
    told = time.monotonic()
    count = 0

    def report(doing: str) -> None:
        nonlocal told, count
        anyio.from_thread.check_cancelled()
        now = time.monotonic()
        if now - told >= SECONDS:
            told, count = now, count + 1
            # Counted up, because progress may never fall: phases follow one another, each with its own measure.
            anyio.from_thread.run(context.report_progress, float(count), None, shorten(doing, 200))

    return report
