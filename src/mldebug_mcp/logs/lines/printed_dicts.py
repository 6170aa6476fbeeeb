"""Printed dicts → records: those of one line, and those that were printed or wrapped over several."""

from __future__ import annotations

import re

from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bar_steps import BarSteps
from mldebug_mcp.logs.lines.dicts import MAX_LINES, dict_in
from mldebug_mcp.logs.lines.drawn import DrawnBars
from mldebug_mcp.logs.lines.histories import Histories, history_in
from mldebug_mcp.logs.lines.said import is_record
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.settings.reprs import MAX_OBJECT

_NUMBERS = " \t0123456789.,+-eE[]()"
_WORDS = re.compile(r"\b(?:(?:np\.|numpy\.)?float\d+|tensor|None|null|nan|inf(?:inity)?)\b", re.IGNORECASE)


class PrintedDicts:
    """Gathers the lines of a dict and gives whole ones to the records.

    Args:
        records: Where the records go.
        bars: What bars have drawn before a dict ends with it.
        bar_steps: Is told of dicts without a step.
    """

    def __init__(self, records: Assembler, bars: DrawnBars, bar_steps: BarSteps) -> None:
        self._records = records
        self._bars = bars
        self._bar_steps = bar_steps
        self.histories = Histories()
        self._lines: list[str] = []
        self._characters = 0
        self._brackets = 0

    @property
    def open(self) -> bool:
        """Whether a dict has begun on a line above and not ended yet."""
        return bool(self._lines)

    def begin(self, message: str) -> None:
        """Take the line in which a dict begins."""
        self._lines, self._characters, self._brackets = [message], 0, _opened(message)

    def go_on(self, number: int, line: str) -> bool:
        """Read on in the open dict, which a terminal may have wrapped within a number; say whether this is of it."""
        self._lines.append(line)
        self._characters += len(line)
        goes_on = ("'" in line or '"' in line) and len(self._lines) < MAX_LINES
        in_list = self._brackets > 0 and self._characters < MAX_OBJECT and _is_of_list(line)
        self._brackets += _opened(line)
        if "}" not in line and (goes_on or in_list):
            return True
        lines, self._lines = self._lines, []
        part = "}" in line
        self._gathered(number, lines if part else lines[:-1])
        return part

    def end(self) -> None:
        """End the dict that is open, if one is."""
        if self._lines:
            self._gathered(0, self._lines)

    def _gathered(self, number: int, lines: list[str]) -> None:
        text = "".join(lines)
        history, record = history_in(text), dict_in(text)
        if history:
            self.histories.take(history)
        elif is_record(record):
            self.take(number, record)

    def take(self, number: int, record: dict[str, object]) -> None:
        """Take a dict of metrics."""
        self._bars.end()
        row = self._records.whole(number, record)
        if row is not None and not any(canonical(name) == "step" for name in record):
            self._bar_steps.printed(row, to_number(record.get("epoch")), regular="loss" in record)


def _is_of_list(line: str) -> bool:
    """Say whether a line of a dict holds but values of a list."""
    return not _WORDS.sub("", line).strip(_NUMBERS)


def _opened(line: str) -> int:
    """Return how many lists a line opens and leaves open."""
    return line.count("[") - line.count("]")
