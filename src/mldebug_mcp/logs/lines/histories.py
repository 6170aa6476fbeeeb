"""Printed lists of values → records: a history such as `{'loss': [2.3, 1.9, …], 'val_loss': […]}` or `losses = […]`.

Mostly they are printed at the end and repeat what the lines above said one by one: they are read where no line did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.decoding.documents import records_in
from mldebug_mcp.logs.decoding.json_values import is_column
from mldebug_mcp.logs.names import is_telling
from mldebug_mcp.logs.numbers import NUMBER
from mldebug_mcp.logs.settings.reprs import NotAnObjectError, parse_object

History = Mapping[str, object]

LEAST = 3
"""Values of a list that may be a history: lists of two are pairs of something else."""
MOST = 20
"""Histories of the same metric in a log; with more, each is a record of something else. Chosen by hand."""
NAME = 100
"""Characters before a list in which its name is looked for."""
LISTS = 100
"""Lists of a text whose names are looked at."""
MAX_VALUES = 1_000_000
"""Values that are kept of all histories of a log."""
_NAME = r"[A-Za-z][\w /.-]{0,80}"
_CALL = r"(?:[\w.]{1,30}\()?"
_MARK = re.compile(rf"[:=]\s{{0,4}}{_CALL}\[\s{{0,80}}{_CALL}(?:{NUMBER}|None|null)[\s,)\]]", re.IGNORECASE)
"""What follows a name where a list of numbers begins; arrays and tensors are calls."""
_BEFORE = re.compile(rf"(?:^|['\"{{,;(\s])({_NAME}?)['\"]?\s{{0,4}}$")
_ASSIGNED = re.compile(rf"""("{_NAME}"|'{_NAME}'|\b{_NAME}?)\s{{0,4}}[:=]\s{{0,4}}(?={_CALL}\[)""")
_OPEN = re.compile(rf"[:=]\s{{0,4}}{_CALL}\[[^\]{{}}]*$")


def history_in(message: str) -> History:
    """Return the columns of the history in a text, empty if there is none, or if it is cut off."""
    if "[" not in message or not begins_history(message):
        return {}
    inside = message.find("{")
    if not 0 <= inside < message.index("["):
        assigned = _ASSIGNED.search(message)
        if assigned is None:
            return {}
        message, inside = f"{{{assigned[1]}: {message[assigned.end() :]}}}", 0
    try:
        values, _ = parse_object(message, inside)
    except NotAnObjectError:
        return {}
    return values if isinstance(values, dict) and _is_history(values) else {}


def opens_history(message: str) -> bool:
    """Say whether a list of a history begins in a text and goes on in the next line."""
    return _OPEN.search(message) is not None and begins_history(f"{message.rstrip()} 0,")


def begins_history(message: str) -> bool:
    """Say whether a list of numbers with the name of a metric that only training or evaluation has begins in a text."""
    before = (_BEFORE.search(message[max(0, mark.start() - NAME) : mark.start()]) for mark in _MARK.finditer(message))
    return any(name is not None and is_telling(name[1]) for name in islice(before, LISTS))


def _is_history(values: Mapping[str, object]) -> bool:
    """Say whether values are columns of metrics, by themselves or by phase, with no number beside them."""
    columns = [one for value in values.values() for one in _columns(value)]
    return any(len(one) >= LEAST for one in columns) and not any(
        isinstance(one, float | int) for one in values.values()
    )


def _columns(value: object) -> list[list[object]]:
    if isinstance(value, dict):
        return [one for one in value.values() if isinstance(one, list) and is_column(one)]
    return [value] if isinstance(value, list) and is_column(value) else []


class Histories:
    """Gathers the histories of a text and gives them to the builder where it has no other records."""

    def __init__(self) -> None:
        self._parts: list[dict[str, object]] = []
        self._values = 0

    def take(self, history: History) -> None:
        """Take a history. One that begins as an earlier one is the same, printed again later on."""
        self._values += sum(len(column) for value in history.values() for column in _columns(value))
        if self._values > MAX_VALUES or len(self._parts) > MOST:
            return
        last = self._parts[-1] if self._parts else {}
        if self._parts and all(_goes_on(last[name], history[name]) for name in last.keys() & history.keys()):
            last.update(history)
        else:
            self._parts.append(dict(history))

    def end(self, builder: RunBuilder) -> None:
        """Give the histories to the builder."""
        if not self._parts or builder.records:
            return
        if self._values > MAX_VALUES or len(self._parts) > MOST:
            builder.note(f"left out printed lists: more than {MOST}, or than {MAX_VALUES:,} values, are no history")
            return
        for part in self._parts:
            builder.new_part()
            for record in records_in(part):
                builder.record(record)


def _goes_on(before: object, after: object) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return after[: len(before)] == before
    return before == after
