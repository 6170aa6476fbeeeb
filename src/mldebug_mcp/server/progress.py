"""A call whose work is done in a thread: progress is reported every second, and cancelling the call ends the work.

A thread cannot be stopped from outside, so it stops itself at its next checkpoint.
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
"""Between two messages; a call that takes less reports nothing."""


@asynccontextmanager
async def reporting(context: Context[Any, Any], *, in_thread: bool = True) -> AsyncIterator[None]:
    """Report to the client how far the work inside has come; leaving the block ends the work.

    Args:
        context: Of the call.
        in_thread: Whether the work is done in a thread, and not in a process that ends with the call.
    """
    listener = _Listener(in_thread)
    telling = asyncio.create_task(_tell(context, listener))
    try:
        with listening(listener):
            yield
    finally:
        listener.left = True
        telling.cancel()


class _Listener:
    """Receives the checkpoints of a tool, in the tool's thread.

    Once the call is cancelled it raises CancelledError there: not an `Exception`, so that no handler takes it for a
    failure.
    """

    def __init__(self, in_thread: bool) -> None:
        self.in_thread = in_thread
        self.left = False
        self.doing = "working"

    def __call__(self, doing: str) -> None:
        if self.left:
            raise asyncio.CancelledError
        if self.in_thread:
            # A cancelled scope waits for its thread, so `left` is not set yet.
            anyio.from_thread.check_cancelled()
        self.doing = doing


async def _tell(context: Context[Any, Any], listener: _Listener) -> None:
    """Send the last checkpoint again and again, so that a client does not give up while none comes."""
    count = 0
    while True:
        await asyncio.sleep(SECONDS)
        # A plain count, because progress must never fall, and each phase has its own scale.
        count += 1
        await context.report_progress(float(count), None, shorten(listener.doing, 200))
