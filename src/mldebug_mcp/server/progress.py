"""Progress of a call whose work is done in a thread: said now and then, so that clients do not give up on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import anyio.from_thread
from mcp.server.mcpserver import Context

SECONDS = 2.0
"""Between two messages: a quick call says nothing."""


def rows_reporter(context: Context[Any, Any]) -> Callable[[int, int], None]:
    """Return what tells the client how many rows and tokens were read. It is called from the tool's thread."""
    told = time.monotonic()

    def report(rows: int, tokens: int) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= SECONDS:
            told = now
            anyio.from_thread.run(context.report_progress, float(rows), None, f"{rows:,} rows, {tokens:,} tokens")

    return report
