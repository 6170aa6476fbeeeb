"""What symptoms of error messages share: finding a kind of message among the lines that read like errors."""

from __future__ import annotations

import re

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import shorten


def matching(run: Run, pattern: re.Pattern[str]) -> list[Message]:
    """Return the error lines that match.

    Raises:
        CannotTell: the log is in a format that holds metrics only, and no messages.
    """
    if not run.messages and "text" not in run.formats:
        raise CannotTell("the log holds metrics only: error messages would stand in the program's output")
    return [message for message in run.messages if pattern.search(message.text)]


def reported(run: Run, pattern: re.Pattern[str], what: str) -> Evidence | None:
    """Return the first error line that matches as evidence that begins with `what`; None if there is none.

    Where training went on after all of them, that is a remark. Raises CannotTell as `matching` does.
    """
    found = matching(run, pattern)
    if not found:
        return None
    ended = [message for message in found if message in run.fatal]
    survived = "" if ended else "; training went on after it"
    shown = (ended or found)[0]
    return Evidence(
        f"{what} in {quoted(shown)}{survived}",
        values={"line": shown.line, "count": len(found)},
        present=bool(ended),
    )


def quoted(message: Message) -> str:
    """Return a message as a sentence shows it: its line, and its text as data in quotes."""
    return f'line {message.line}: "{shorten(message.text, 160)}"'
