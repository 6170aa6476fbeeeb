"""What the server has done in helper processes, instead of doing it itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult

from mldebug_mcp.progress import checkpoint
from mldebug_mcp.sandbox.pool import Pool
from mldebug_mcp.server.reply import whole_call

if TYPE_CHECKING:
    from mldebug_mcp.diagnose.probe_batch import ProbeBatch

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
    from mldebug_mcp.diagnose.probe_batch import ProbeBatch, read_probe_batch

    pool = _pool.get()
    if pool is None:
        return await asyncio.to_thread(read_probe_batch, path)
    return ProbeBatch(**await pool.call(READ_BATCH, {"path": path}, checkpoint))
