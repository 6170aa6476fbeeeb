"""JSON lines: one object per line, flat or nested, as most loggers of one's own write them."""

from __future__ import annotations

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_values import parse_json
from mldebug_mcp.logs.source import LogFile

NAME = "jsonl"


def matches(file: LogFile) -> bool:
    """Its first line that is not empty is a whole JSON object, or its name says so."""
    first = next((line for line in file.head.splitlines() if line.strip()), "")
    if not first.lstrip().startswith("{"):
        return False
    try:
        return isinstance(parse_json(first), dict)
    except ValueError:
        return file.path.suffix in (".jsonl", ".ndjson")


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read every line that is an object; count the others in the notes."""
    broken = empty = 0
    last_is_broken = False
    for line in file.lines():
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError:
            broken, last_is_broken = broken + 1, True
            continue
        last_is_broken = False
        if not isinstance(record, dict):
            broken += 1
        elif not builder.record(record):
            empty += 1
    if last_is_broken:
        broken -= 1
        builder.note("the last line is cut off: a record is still being written, or the run was killed while writing")
    if broken:
        builder.note(f"skipped {broken} line(s) that are not JSON objects")
    if empty:
        builder.note(f"skipped {empty} record(s) without a number")
