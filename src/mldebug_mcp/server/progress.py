"""A call whose work is done in a thread: its progress is told now and then, and cancelling it ends the work.

A thread cannot be stopped from outside. It stops itself at its next checkpoint.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio.from_thread
from mcp.server.mcpserver import Context

from mldebug_mcp.progress import listening
from mldebug_mcp.text import shorten

SECONDS = 1.0
"""Between two messages: a quick call says nothing."""


@contextmanager
def reporting(context: Context[Any, Any]) -> Iterator[None]:
    """Tell the client of the checkpoints of the work inside; whoever leaves this block ends the work."""
    report = _Reporter(context)
    try:
        with listening(report):
            yield
    finally:
        report.left = True


class _Reporter:
    """Hears the checkpoints of a tool, in the tool's thread.

    It raises there once the call is cancelled: what is no `Exception`, so nothing on the way takes it for a failure.
    """

    def __init__(self, context: Context[Any, Any]) -> None:
        self.context = context
        self.left = False
        self.told = time.monotonic()
        self.count = 0

    def __call__(self, doing: str) -> None:
        if self.left:
            raise asyncio.CancelledError
        # A cancelled scope waits for its thread, so nobody has left yet.
        anyio.from_thread.check_cancelled()
        now = time.monotonic()
        if now - self.told >= SECONDS:
            self.told = now
            # Counted up, because progress may never fall: phases follow one another, each with its own measure.
            self.count += 1
            anyio.from_thread.run(self.context.report_progress, float(self.count), None, shorten(doing, 200))
