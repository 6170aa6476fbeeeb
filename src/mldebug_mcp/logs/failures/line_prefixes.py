"""What launchers, hosts and loggers write before a line: taken off, and read for the rank that it names.

Launchers write `[rank3]:`, `[default3]:`, `[3]:`, `3:`, `[1,3]<stderr>:`, `10.0.0.4:` or `(Worker pid=42)`. Other
prefixes (host names, times, a logger's) are learned from the first line of a traceback: what stands before `Traceback`
also stands before its frames.
"""

from __future__ import annotations

import re

from mldebug_mcp.logs import launchers
from mldebug_mcp.text import clean

TRACEBACK = "Traceback (most recent call last)"
MAX_LEARNED = 16
MAX_PREFIX = 120

_PREFIX = re.compile(
    rf"(?:{launchers.BRACKETED}:|{launchers.MPIRUN}|{launchers.NAMED}) ?|{launchers.NUMBERED}(?=[ \w\[])|"
    r"\[(?P<indexed>\d{1,5})\]:(?= {0,12}\S)|"
    r"(?P<address>\d{1,3}(?:\.\d{1,3}){3}): ?|\((?:[\w:.]+ )?pid=(?P<pid>\d+)[^)]{0,80}\) ?|"
    r"(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./ ]{1,60}:\d+\] ?"
)
_COLOUR = re.compile(r"\[(?:[01];)?\d{1,2}m")
"""What a page leaves of a colour: its code, without the character that begins it."""
_QUOTED = re.compile(r"^(?:> (?=\S|  )|E {3,7}(?=\S)| {1,3}(?=\d{1,4}: (?:\[|  |Traceback)))")
"""What a page writes before a line that is quoted, pytest before one that is an error's, srun before a short rank."""
_NO_PREFIX = re.compile(r"\w*(?:Error|Exception|Interrupt|Warning|Exit)\b|Original $|traceback *: *$|[╭─│]|\s{2}$")
"""What may stand before `Traceback` and is no prefix: an exception's name (in a notebook), the word of torchelastic's
summary, a box, more than a space."""


class Prefixes:
    """The prefixes of a log; those of its own are learned on the way."""

    def __init__(self) -> None:
        self.ranks: set[str] = set()
        """All ranks that prefixes named."""
        self._learned: dict[str, re.Pattern[str]] = {}

    def split(self, line: str) -> tuple[str, str]:
        """Return what tells the stream of a line apart ("" for nothing) and the line without its prefixes."""
        if "\x1b" in line:
            line = clean(line)
        elif "[0" in line:
            line = _COLOUR.sub("", line)
        own, line = self._own(_QUOTED.sub("", line, count=1))
        if not line or line[0] not in "[(0123456789rREC":
            return own, line
        rank, start = "", 0
        for _ in range(3):
            prefix = _PREFIX.match(line, start)
            if prefix is None or prefix.end() == start:
                break
            found = next((value for value in prefix.groupdict().values() if value is not None), None)
            rank, start = (found or rank), prefix.end()
        # The number of a process and a host's address tell streams apart, but they are no ranks.
        if rank.isdigit() and not line.startswith("("):
            self.ranks.add(rank)
        return rank or own, line[start:]

    def learn(self, line: str) -> str:
        """Learn what stands before `Traceback`; return the stream that it tells apart."""
        prefix = line[: line.index(TRACEBACK)]
        if (
            not prefix.strip()
            or len(prefix) > MAX_PREFIX
            or _NO_PREFIX.search(prefix)
            or len(self._learned) >= MAX_LEARNED
        ):
            return ""
        # Digits differ from line to line in times, and from stream to stream in host names.
        shape = r"\d{1,20}".join(map(re.escape, re.split(r"\d+", prefix)))
        self._learned[prefix] = re.compile(shape)
        return prefix

    def _own(self, line: str) -> tuple[str, str]:
        for literal in self._learned:
            bare = literal.rstrip()
            if line.startswith(literal) or line.rstrip() == bare:
                return literal, line[len(literal) :]
        for shape in self._learned.values():
            found = shape.match(line)
            if found:
                return "", line[found.end() :]
        return "", line
