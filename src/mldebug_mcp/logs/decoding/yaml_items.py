"""Lists of mappings in a YAML document, read line by line: records, as a loop appends them, `- step: 1` and so on.

Lists of flat mappings, or of mappings in them, are read, so that a file of any length costs no more than its lines.
Anchors, tags and flow style are not what loops append: such lines are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mldebug_mcp.logs.names import COUNTERS, canonical
from mldebug_mcp.logs.numbers import parse_number

_LINE = re.compile(
    r"(?P<indent> {0,80})(?P<item>- {1,8})?"
    r"(?P<key>'[^']{1,200}'|\"[^\"]{1,200}\"|[^\s'\":#&*!?{}\[\]|>-][^:#]{0,200}):(?:\s+(?P<value>.*))?"
)
MOST_DEEP = 8
"""Mappings inside of each other that are read. Chosen: loops log two."""


LEAST_LISTED = 2
"""Items with a counter that make a list under a key one of records: a configuration lists mappings too."""
MOST_OTHER = 0.1
"""Share of lines at most that are no keys, in a document of keys. Chosen: a text that only looks like one has more."""
_ITEM = re.compile(r"^ {0,80}- {1,8}['\"\w]", re.MULTILINE)


def lists_records(head: str) -> bool:
    """Say of the beginning of a document whether it lists records: a configuration is a mapping."""
    if _ITEM.search(head) is None:
        return False
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith(("#", "---", "%"))]
    found = [_LINE.fullmatch(line) for line in lines[:2]]
    if len(found) < 2 or found[0] is None or found[1] is None or found[0]["indent"]:
        return False
    if found[0]["item"]:
        return bool(found[1]["indent"]) and not found[1]["item"]
    other = sum(_LINE.fullmatch(line) is None for line in lines)
    records = listed_records(lines)
    return other <= MOST_OTHER * len(lines) and sum(one is not None for one in records) >= LEAST_LISTED


def listed_records(lines: Iterable[str]) -> Iterator[dict[str, object] | None]:
    """Yield the records of the document, and None for each line of a list that is no part of one."""
    listed = _Items()
    for line in lines:
        if not line.strip() or line.lstrip().startswith(("#", "---", "...")):
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            if listed.open:
                yield None
            continue
        if done := listed.take(found):
            yield done
    if done := listed.end():
        yield done


class _Items:
    """The items of the lists of a document, one after another."""

    def __init__(self) -> None:
        self._key = ""
        self._indent: int | None = None  # that of the items of the open list
        self._record: dict[str, object] = {}
        self._above: list[tuple[int, str]] = []

    @property
    def open(self) -> bool:
        """Whether a list is open."""
        return self._indent is not None

    def take(self, found: re.Match[str]) -> dict[str, object]:
        """Take a line with a key; return the record that it ends, empty if it ends none."""
        indent, key = len(found["indent"]), found["key"].strip("'\" ")
        if found["item"] and (self._indent is None or indent <= self._indent):
            done, self._indent = self.end(), indent
        elif not found["item"] and indent == 0 and (self._key or self._indent is None):
            done, self._indent, self._key = self.end(), None, key
        else:
            done = {}
        if self._indent is not None:
            self._keep(found, key)
        return done

    def end(self) -> dict[str, object]:
        """Return the record that is open; empty for an item of a list under a key that counts nothing."""
        done, self._record, self._above = self._record, {}, []
        counts = any(canonical(name) in COUNTERS and isinstance(value, float) for name, value in done.items())
        if not self._key or counts:
            return done
        return {}

    def _keep(self, found: re.Match[str], key: str) -> None:
        depth = len(found["indent"]) + len(found["item"] or "")
        self._above = [one for one in self._above if one[0] < depth][:MOST_DEEP]
        value = (found["value"] or "").strip()
        if value:
            self._record["/".join([*(name for _, name in self._above), key])] = _value(value)
        else:
            self._above.append((depth, key))


def _value(text: str) -> object:
    """Return a plain number as one, anything else as text."""
    bare = text.strip("'\"")
    number = parse_number(bare.lstrip("+").replace(".inf", "inf").replace(".nan", "nan").replace(".NaN", "nan"))
    return bare if number is None else number
