"""Work that the server does in helper processes or threads, with progress and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import anyio.from_thread
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult

from mldebug_mcp.core.limits import checkpoint, listening
from mldebug_mcp.core.sandbox.pool import Pool
from mldebug_mcp.core.text import shorten
from mldebug_mcp.server.messages import whole_call

if TYPE_CHECKING:
    from mldebug_mcp.judge.probe import ProbeBatch

# What the server has done in helper processes, instead of doing it itself.


READ_BATCH = "read_probe_batch"
"""The name of the call that reads the batch of a probe."""
_pool: ContextVar[Pool | None] = ContextVar("pool", default=None)


@contextmanager
def helped_by(pool: Pool | None) -> Iterator[None]:
    """Have what reads files inside done by helpers; None to do it in this process."""
    token = _pool.set(pool)
    try:
        yield
    finally:
        _pool.reset(token)


def isolated(name: str, pool: Pool) -> Callable[..., Awaitable[CallToolResult]]:
    """Return the tool that has its call done in a helper; the listener hears what it does."""

    async def call(**arguments: Any) -> CallToolResult:  # noqa: ANN401 - what the tool takes
        whole = whole_call()
        request = {"arguments": arguments, "whole": None if whole is None else whole.model_dump(mode="json")}
        return CallToolResult.model_validate(await pool.call(name, request, checkpoint))

    return call


async def read_batch(path: str) -> ProbeBatch:
    """Read the batch of a probe in a helper; without one in a thread, because it must not block the event loop."""
    from mldebug_mcp.judge.probe import ProbeBatch, read_probe_batch

    pool = _pool.get()
    if pool is None:
        return await asyncio.to_thread(read_probe_batch, path)
    return ProbeBatch(**await pool.call(READ_BATCH, {"path": path}, checkpoint))


# A call whose work is done in a thread: progress is reported every second, and cancelling the call ends the work.
#
# A thread cannot be stopped from outside, so it stops itself at its next checkpoint.


MESSAGE_INTERVAL_SECONDS = 1.0
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
        await asyncio.sleep(MESSAGE_INTERVAL_SECONDS)
        # A plain count, because progress must never fall, and each phase has its own scale.
        count += 1
        await context.report_progress(float(count), None, shorten(listener.doing, 200))
