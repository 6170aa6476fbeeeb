"""A JSON file: columns of rows, rows of columns, one row, or any of these under a key such as "batch" or "data"."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from mldebug_mcp.batch.batch import coco_table, is_coco
from mldebug_mcp.batch.columns import Table, from_mapping, from_records, records_in
from mldebug_mcp.core.access import read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "json"
MAX_JSON_BYTES = 1024**3
MAX_LISTS = 2_000_000
"""Lists and objects in a file: each takes at least 56 bytes of memory, however little its text."""
MAX_PRINTED = 100_000
PRINTED = "this is what print() shows of tensors; save the batch itself, with torch.save(batch, 'batch.pt')"
_WRAPPERS = ("batch", "data", "rows", "examples", "inputs", "train")


def matches(path: Path, head: bytes) -> bool:
    """It begins as JSON does."""
    del path
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def rows(path: Path) -> None:
    """One piece holds them all."""
    del path


def tables(path: Path) -> Iterator[Table]:
    """Yield the file as one table."""
    name = shorten(str(path), 200)
    content = read_bytes(path, MAX_JSON_BYTES, "give it as JSONL or parquet")
    if content.count(b"[") + content.count(b"{") > MAX_LISTS:
        raise InputError(f"{name}: more than {MAX_LISTS:,} lists and objects; give it as JSONL or parquet")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else shorten(str(error), 120)
        again = (
            PRINTED
            if any(word in content[:MAX_PRINTED] for word in (b"tensor(", b"array("))
            else "save the batch again"
        )
        raise InputError(f"{name}: not JSON ({problem}); {again}") from None
    yield table_of(value, name)


def table_of(value: object, name: str) -> Table:
    """Return a JSON value as a table."""
    if isinstance(value, dict):
        if is_coco(value):
            return coco_table(value)
        inner = next((value[key] for key in _WRAPPERS if isinstance(value.get(key), (dict, list)) and value[key]), None)
        if isinstance(inner, dict) or (isinstance(inner, list) and records_in(inner)):
            return table_of(inner, name)
        return from_mapping(value)
    records = records_in(value)
    if records is not None:
        return from_records(records)
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        return from_mapping({"input_ids": value})
    raise InputError(f'{name}: holds no rows; give columns such as {{"input_ids": [[...]], "labels": [[...]]}}')
