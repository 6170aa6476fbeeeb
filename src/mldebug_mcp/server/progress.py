"""A call whose work is done in a thread: its progress is told every second, and cancelling it ends the work.

A thread cannot be stopped from outside. It stops itself at its next checkpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.from_thread
from mcp.server.mcpserver import Context

from mldebug_mcp.progress import listening
from mldebug_mcp.text import shorten

SECONDS = 1.0
"""Between two messages: a quick call says nothing."""


@asynccontextmanager
async def reporting(context: Context[Any, Any]) -> AsyncIterator[None]:
    """Tell the client how far the work inside is; whoever leaves this block ends the work."""
    listener = _Listener()
    telling = asyncio.create_task(_tell(context, listener))
    try:
        with listening(listener):
            yield
    finally:
        listener.left = True
        telling.cancel()


class _Listener:
    """Hears the checkpoints of a tool, in the tool's thread.

    It raises there once the call is cancelled: what is no `Exception`, so nothing on the way takes it for a failure.
    """

    def __init__(self) -> None:
        self.left = False
        self.doing = "at work"

    def __call__(self, doing: str) -> None:
        if self.left:
            raise asyncio.CancelledError
        # A cancelled scope waits for its thread, so nobody has left yet.
        anyio.from_thread.check_cancelled()
        self.doing = doing


async def _tell(context: Context[Any, Any], listener: _Listener) -> None:
    """Send what was heard last, again and again, so that a client does not give up in a stretch without checkpoints."""
    count = 0
    while True:
        await asyncio.sleep(SECONDS)
        # Counted up, because progress may never fall: phases follow one another, each with its own measure.
        count += 1
        await context.report_progress(float(count), None, shorten(listener.doing, 200))
