"""Lines of a log that read like errors: which are kept, of however many."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mldebug_mcp.logs.attempt import Message, severity_of
from mldebug_mcp.text import shorten

MAX_MESSAGES = 100
"""Error lines kept per run ..."""
MAX_NOISE = 20
"""... and those among them that are retries and the like: they never take the place of an error."""
MAX_MESSAGE = 1000
"""Characters of an error line: an out-of-memory message of a GPU with several processes ends with what is unused."""


@dataclass(slots=True)
class Messages:
    """Keeps the first messages, as later ones are mostly their echo, and the last.

    Args:
        kept: The messages, as far as they are kept.
        noise: How many were retries and the like.
        failed: Whether there was an error that is no mere warning.
    """

    kept: list[Message]
    noise: int = 0
    failed: bool = False

    def take(self, line: int, text: str, records: int, code: str = "") -> None:
        """Take a line by its number and the records before it; `code` is the line of a program that it stands under."""
        severity = severity_of(text)
        self.noise += severity == "noise"
        if severity == "noise" and self.noise > MAX_NOISE:
            return
        if severity != "error" and len(self.kept) == MAX_MESSAGES and self.kept[-1].severity == "error":
            return
        self.failed = self.failed or severity == "error"
        self.kept[MAX_MESSAGES - 1 :] = [Message(line, shorten(text, MAX_MESSAGE), records, code, severity)]

    def go_on(self, text: str) -> None:
        """Add a line, without the rank before it, to the message that was kept last."""
        if self.kept:
            whole = f"{self.kept[-1].text} {text.rpartition(']:')[2].strip()}"
            self.kept[-1] = replace(self.kept[-1], text=shorten(whole, MAX_MESSAGE))
