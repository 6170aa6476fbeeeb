"""Where a program starts again in one log: what it printed before its first record comes once more.

No list of launchers is needed: banners, argument dumps, library warnings and the program's own first words are
whatever stands at the head of this log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD = 400
"""Different lines at the head of a log that are remembered."""
ALIKE = 3
"""Lines of the head that must come again, in their order, before a record; of a shorter head all. Chosen by hand."""
APART = 60
"""Lines within which they come again."""
NOWHERE = -1
LETTERS = 6
"""Letters of a line that says something: rules and numbers stand anywhere."""
_RESUMED = re.compile(
    r"\bresum(?:ing|ed)\b.{0,60}\b(?:from|checkpoint|ckpt|training|at (?:step|epoch|iter))"
    r"|\b(?:loaded|restored)\b.{0,20}\b(?:checkpoint|ckpt)\b.{0,60}\b(?:step|epoch|iter(?:ation)?)\b",
    re.IGNORECASE,
)
"""A line that tells of a resume; settings say `resume: path` and the like."""
_RESUMES = ("esum", "oaded", "estored")
EVENTS, RESUMES = ("event", "type", "status", "kind"), ("resum", "restor", "restart")
"""Keys of an event in a log of objects, and how what they say of a resume begins."""
KEPT_LINES = 400
"""Lines below a start that are kept: a program prints its settings there."""


@dataclass(slots=True)
class Start:
    """A program that starts again.

    Args:
        row: Index of the first record after it.
        line: Line number of the first line that came again.
        head: What it printed there, bounded; grows until the first record.
    """

    row: int
    line: int
    head: list[str] = field(default_factory=list)


def tells_resume(line: str) -> bool:
    """Say whether a line tells that training went on from a checkpoint."""
    return any(part in line for part in _RESUMES) and _RESUMED.search(line) is not None


def is_resume(record: Mapping[str, object]) -> bool:
    """Say whether an object is no record but the event of a resume: `{"event": "resume", "step": 70}`."""
    said = (record.get(key) for key in EVENTS)
    return any(isinstance(one, str) and one.lower().startswith(RESUMES) for one in said)


class ProcessStarts:
    """Watches the lines that are no records.

    `take` is asked for each line that is no plain record, with its skeleton, which is the line without its digits, or
    an empty one for a line that says something of a record.
    """

    def __init__(self) -> None:
        self._head: dict[str, int] = {}
        self._frozen = False
        self._found: list[tuple[int, int]] = []  # of the lines that came again: line number, place in the head
        self._since: list[str] = []
        self._row = 0
        self._reached = HEAD
        self._open: Start | None = None

    def watches(self, skeleton: str) -> bool:
        """Say whether lines of a skeleton count wherever they stand: those of the head, and all until it is known."""
        return not self._frozen or skeleton in self._head

    def is_busy(self, row: int) -> bool:
        """Say whether every line counts up to the next record, as the head may be coming again."""
        collects = self._open is not None and row <= self._open.row and len(self._open.head) < KEPT_LINES
        return collects or (bool(self._found) and self._row == row)

    def take(self, number: int, line: str, skeleton: str, row: int, *, failed: bool = False) -> Start | None:
        """Take a line; return the start that it completes.

        Args:
            number: Its line number.
            line: The line.
            skeleton: The line without its digits; empty for one that has no place in a head.
            row: Records so far.
            failed: Whether error lines were seen so far: a program that died before its first record starts again too.
        """
        if self._open is not None:
            if row <= self._open.row and len(self._open.head) < KEPT_LINES:
                self._open.head.append(line)
            else:
                self._open = None
        if not self._frozen:
            if not (row or failed):
                if len(self._head) < HEAD and _says_something(skeleton):
                    # What stands there more than once has no place.
                    self._head[skeleton] = NOWHERE if skeleton in self._head else len(self._head)
                return None
            self._frozen = True
            self._head = {one: place for one, place in self._head.items() if place != NOWHERE}
        return self._comes_again(number, line, skeleton, row)

    def _comes_again(self, number: int, line: str, skeleton: str, row: int) -> Start | None:
        if self._found and (row != self._row or number - self._found[0][0] > APART):
            self._found, self._since = [], []
        if self._found:
            self._since.append(line)
        place = self._head.get(skeleton)
        if place is None or (self._found and place <= self._found[-1][1]):
            return None
        if not self._found:
            if place > self._reached:  # the head of the program that has just started goes on
                self._reached = place
                return None
            self._since = [line]
        self._row = row
        self._found.append((number, place))
        if len(self._found) < min(ALIKE, len(self._head)):
            return None
        self._open = Start(row, self._found[0][0], self._since)
        self._reached, self._found, self._since = place, [], []
        return self._open


def _says_something(skeleton: str) -> bool:
    return sum(map(str.isalpha, skeleton)) >= LETTERS
