"""JSON lines: one row on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from mldebug_mcp.batch.columns import Table, from_records
from mldebug_mcp.core.access import is_folder, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "jsonl"
CHUNK_BYTES = 32 * 1024 * 1024
"""Bytes of lines that one table holds."""
MAX_LINE_BYTES = 64 * 1024 * 1024


def matches(path: Path, head: bytes) -> bool:
    """Its name says so, or its first line is a whole JSON object and another line follows."""
    if is_folder(path):
        return False
    first, newline, rest = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    if path.suffix in (".jsonl", ".ndjson"):
        return first[:1] == b"{"
    if not newline or not rest.strip() or first[:1] != b"{":
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def rows(path: Path) -> int:
    """Return how many lines there are."""
    with open_input(path) as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b"")) + 1


def tables(path: Path) -> Iterator[Table]:
    """Yield the lines, some thousands at a time. Lines that are not objects are skipped and counted."""
    records: list[dict[str, object]] = []
    size = row = broken = first_broken = 0
    any_row = False
    with open_input(path) as file:
        number = 1
        while line := file.readline(MAX_LINE_BYTES):
            here, number = number, number + line.endswith(b"\n")
            if not line.strip():
                continue
            record = object_in(line)
            if record is None:
                broken, first_broken = broken + 1, first_broken or here
                continue
            records.append(record)
            size += len(line)
            if size > CHUNK_BYTES:
                yield from_records(records, first=row)
                row, size, records, any_row = row + len(records), 0, [], True
    if not records and not any_row:
        raise InputError(f"{shorten(str(path), 200)}: no line holds a JSON object; give one row on each line")
    last = from_records(records, first=row)
    if broken:
        last.notes.append(f"skipped {broken} line(s) that are not JSON objects, first line {first_broken}")
    yield last


def object_in(line: bytes) -> dict[str, object] | None:
    """Return the row on a line; None for anything but a JSON object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
