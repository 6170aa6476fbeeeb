"""What symptoms of error messages share: finding a kind of message among the lines that read like errors."""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.symptoms.registry import CannotTell
from mldebug_mcp.text import shorten


def matching(run: Run, pattern: re.Pattern[str]) -> list[Message]:
    """Return the error lines that match.

    Raises:
        CannotTell: the log is in a format that holds metrics only, and no messages.
    """
    if not run.messages and "text" not in run.formats:
        raise CannotTell("the log holds metrics only: error messages would stand in the program's output")
    return [message for message in run.messages if pattern.search(message.text)]


def quoted(message: Message) -> str:
    """Return a message as a sentence shows it: its line, and its text as data in quotes."""
    return f'line {message.line}: "{shorten(message.text, 160)}"'
