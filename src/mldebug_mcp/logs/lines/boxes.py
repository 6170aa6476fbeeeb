"""Boxes of `| name | value |` rows, one box per record: Stable-Baselines, OpenAI baselines, Spinning Up, rsl_rl."""

from __future__ import annotations

import re

from mldebug_mcp.logs.names import counts_rows, is_known, is_telling
from mldebug_mcp.logs.numbers import parse_number

_SIDES = "|│┃║"
_ROW = re.compile(
    rf"\s*+[{_SIDES}]\s*+(?P<name>[^{_SIDES}\s][^{_SIDES}]{{0,79}}?)\s*[{_SIDES}]\s*+(?P<value>[^{_SIDES}]{{0,40}}?)\s*"
    rf"[{_SIDES}]\s*$"
)
_RULE = re.compile(rf"\s*[-=+{_SIDES}─━═┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋┡┩╇╭╮╰╯╔╗╚╝╠╣╦╩╬]{{6,}}\s*$")


class Box:
    """Gathers the rows of a box. `take` a line; when the box has ended, `done` holds its record."""

    def __init__(self) -> None:
        self._rows: dict[str, float] = {}
        self._section = ""
        self.done: dict[str, float] | None = None

    @property
    def open(self) -> bool:
        """Whether a box has begun."""
        return bool(self._rows)

    def take(self, line: str) -> bool:
        """Take a line if it belongs to a box."""
        row = _row(line)
        if row is not None:
            self._take_row(row["name"], row["value"])
            return True
        if self._rows:
            self.end()
        return _RULE.match(line) is not None

    def end(self) -> None:
        """End the box that is open, if one is."""
        if len(self._rows) >= 2:
            self.done = self._rows
        self._rows, self._section = {}, ""

    def _take_row(self, name: str, value: str) -> None:
        if name.endswith("/") and not value:
            self._section = name
            return
        number = parse_number(value)
        if number is not None:
            # Only names cut to fit the box or indented under a section belong to it.
            self._rows[name if "/" in name else f"{self._section}{name}"] = number


def name_in_row(line: str) -> str | None:
    """Return the name in a row of a box, None for a line that is none."""
    row = _row(line)
    return None if row is None else row["name"]


def _row(line: str) -> re.Match[str] | None:
    """Return a row of a box; a table of two columns has rows of two numbers under a row of two names."""
    row = _ROW.match(line) if any(side in line for side in _SIDES) else None
    if row is None or parse_number(row["name"]) is not None:
        return None
    if row["value"] and parse_number(row["value"]) is None and all(map(_names_column, row.groups())):
        return None
    return row


def _names_column(name: str) -> bool:
    return is_known(name) or is_telling(name) or counts_rows(name)


def is_rule(line: str) -> bool:
    """Say whether a line is a rule, above or below a box."""
    return _RULE.match(line) is not None
