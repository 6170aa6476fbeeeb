"""What the server writes to standard error: warnings, and errors that are none of ours.

The SDK's own way takes seconds to print a traceback, and waits where a client leaves standard error unread; meanwhile
nobody would be answered.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from queue import Full, Queue
from threading import Thread

from mldebug_mcp.text import cut

MOST_WAITING = 1000
"""Messages that wait to be written. Those beyond are lost."""
LONGEST = 20_000
"""Characters of a message: a traceback has some thousand."""
_STANDARD_ERROR = 2


class _Handler(logging.Handler):
    """Has messages written by a thread of its own; they may quote what stands in a file, and are cleaned and cut."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Queue[str] = Queue(MOST_WAITING)
        Thread(target=self._write, daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Full):
            self._waiting.put_nowait(cut(self.format(record), LONGEST))

    def _write(self) -> None:
        # Without Python's stream: its lock, held by a thread that waits, would keep the process from ending.
        while True:
            line = self._waiting.get()
            with suppress(OSError):
                os.write(_STANDARD_ERROR, f"{line}\n".encode())


def log_to_stderr() -> None:
    """Write warnings of this process in a way that holds up nobody, unless logging is set up already."""
    if not logging.root.handlers:
        logging.basicConfig(level="WARNING", format="%(levelname)s %(message)s", handlers=[_Handler()])
