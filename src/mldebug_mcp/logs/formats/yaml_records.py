"""YAML records: a list of mappings that a loop appends to, `- step: 1` and what was logged there below it.

Lists of flat mappings, or of mappings in them, are read line by line, so that a file of any length costs no more than
its lines. Anchors, tags and flow style are not what loops append: such lines are counted and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.source import LogFile

NAME = "yaml"
_LINE = re.compile(
    r"(?P<indent> {0,80})(?P<item>- {1,8})?"
    r"(?P<key>'[^']{1,200}'|\"[^\"]{1,200}\"|[^\s'\":#&*!?{}\[\]|>-][^:#]{0,200}):(?:\s+(?P<value>.*))?"
)
MOST_DEEP = 8
"""Mappings inside of each other that are read. Chosen: loops log two."""


def matches(file: LogFile) -> bool:
    """Its first two lines, but for comments and marks of documents, are an item of a list and what is below its key."""
    lines = [line for line in file.head.splitlines() if line.strip() and not line.startswith(("#", "---", "%"))][:2]
    found = [_LINE.fullmatch(line) for line in lines]
    if len(found) < 2 or found[0] is None or found[1] is None:
        return False
    return bool(found[0]["item"]) and not found[0]["indent"] and bool(found[1]["indent"]) and not found[1]["item"]


def read(file: LogFile, builder: RunBuilder) -> None:
    """Put each item of the list into the builder as a record."""
    empty = left = 0
    for record in _records(file.lines()):
        if record is None:
            left += 1
        else:
            empty += not builder.record(record)
    if left:
        builder.note(f"skipped {left} line(s) that are no keys of a record")
    if empty:
        builder.note(f"skipped {empty} record(s) without a number")


def _records(lines: Iterable[str]) -> Iterator[dict[str, object] | None]:
    """Yield the items of the list, and None for each line that is no part of one."""
    record: dict[str, object] = {}
    above: list[tuple[int, str]] = []
    for line in lines:
        if not line.strip() or line.lstrip().startswith(("#", "---", "...")):
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None or (not found["item"] and not record):
            yield None
            continue
        if found["item"] and not found["indent"]:
            if record:
                yield record
            record, above = {}, []
        depth = len(found["indent"]) + len(found["item"] or "")
        above = [one for one in above if one[0] < depth][:MOST_DEEP]
        key, value = found["key"].strip("'\" "), (found["value"] or "").strip()
        if value:
            record["/".join([*(name for _, name in above), key])] = _value(value)
        else:
            above.append((depth, key))
    if record:
        yield record


def _value(text: str) -> object:
    """Return a plain number as one, anything else as text."""
    bare = text.strip("'\"")
    number = parse_number(bare.lstrip("+").replace(".inf", "inf").replace(".nan", "nan").replace(".NaN", "nan"))
    return bare if number is None else number
