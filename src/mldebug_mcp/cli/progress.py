"""What a long command is doing: a line on standard error that goes away before the answer is printed."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mldebug_mcp.progress import listening
from mldebug_mcp.text import shorten

QUIET = 1.0
"""Seconds in which nothing is shown: most commands are done by then."""
INTERVAL = 0.1
"""Seconds between two changes of the line."""
_CLEARED = "\r\x1b[K"


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show the checkpoints of the work inside, if standard error is a terminal and it takes more than a second."""
    if not sys.stderr.isatty():
        yield
        return
    due = time.monotonic() + QUIET
    shown = False

    def show(doing: str) -> None:
        nonlocal due, shown
        if time.monotonic() >= due:
            due, shown = time.monotonic() + INTERVAL, True
            show_line(doing)

    try:
        with listening(show):
            yield
    finally:
        if shown:
            show_line("")


def show_line(text: str) -> None:
    """Show a line on standard error in place of the one before, if that is a terminal; an empty one clears it."""
    if sys.stderr.isatty():
        room = max(20, shutil.get_terminal_size().columns - 1)
        print(_CLEARED + shorten(text, room), end="", file=sys.stderr, flush=True)
