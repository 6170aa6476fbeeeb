"""Printed dicts → records: those of one line, and those that were printed or wrapped over several."""

from __future__ import annotations

from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bar_steps import BarSteps
from mldebug_mcp.logs.lines.dicts import MAX_LINES, dict_in, opens_dict
from mldebug_mcp.logs.lines.drawn import DrawnBars
from mldebug_mcp.logs.lines.parsed import parse_line
from mldebug_mcp.logs.names import canonical, is_telling
from mldebug_mcp.logs.numbers import to_number


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
        self._lines: list[str] = []

    @property
    def open(self) -> bool:
        """Whether a dict has begun on a line above and not ended yet."""
        return bool(self._lines)

    def take(self, number: int, message: str) -> bool:
        """Take a line with a brace, if a dict of metrics stands or begins in it."""
        record = dict_in(message)
        if not record and message.strip() != "{":  # JSON that was printed over several lines opens with it
            return False
        if opens_dict(message):
            self._lines = [message]
            return True
        before = parse_line(message.partition("{")[0])
        told = {name: value for name, value in before.metrics.items() if is_telling(name)}
        return self._whole(number, {**before.counters.values, **told, **record})

    def go_on(self, number: int, line: str) -> bool:
        """Read on in the open dict, which a terminal may have wrapped within a number; say whether this is of it."""
        self._lines.append(line)
        if "}" not in line and ("'" in line or '"' in line) and len(self._lines) < MAX_LINES:
            return True
        lines, self._lines = self._lines, []
        part = "}" in line
        self._whole(number, dict_in("".join(lines if part else lines[:-1])))
        return part

    def end(self) -> None:
        """End the dict that is open, if one is."""
        if self._lines:
            self._whole(0, dict_in("".join(self._lines)))

    def _whole(self, number: int, record: dict[str, object]) -> bool:
        if not any(map(is_telling, record)) and "train_runtime" not in record:
            return False
        self._bars.end()
        row = self._records.whole(number, record)
        if row is not None and not any(canonical(name) == "step" for name in record):
            self._bar_steps.printed(row, to_number(record.get("epoch")), regular="loss" in record)
        return True
