"""A folder of shards of token ids, all of one format: Megatron's, datatrove's, arrays of NumPy, or raw `.bin` files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mldebug_mcp.batch.formats import datatrove, megatron, npz, token_file
from mldebug_mcp.batch.table import Table
from mldebug_mcp.core.access import is_folder, matching, open_input
from mldebug_mcp.core.text import counted

NAME = "shards"
ENDINGS = (".bin", ".ds", ".npy")
HEAD_BYTES = 4096
_READERS = (npz, megatron, datatrove, token_file)


class _Shards(NamedTuple):
    format: str
    files: list[Path]


def matches(path: Path, head: bytes) -> bool:
    """A folder whose files of token ids have one format."""
    del head
    return is_folder(path) and _shards(path) is not None


def rows(path: Path) -> int | None:
    """Return how many rows there are, or None where the shards are arrays, which tell it when they are read."""
    shards = _shards(path)
    if shards is None or shards.format == npz.NAME:
        return None
    reader = next(reader for reader in _READERS if shards.format == reader.NAME)
    return sum(reader.rows(file) or 0 for file in shards.files)


def tables(path: Path) -> Iterator[Table]:
    """Yield the content of the shards in the order of their names, one after the other."""
    shards = _shards(path)
    if shards is None:
        return
    reader = next(reader for reader in _READERS if shards.format == reader.NAME)
    note = f"read as one corpus of {counted(len(shards.files), 'shard')} ({shards.format})"
    for file in shards.files:
        for table in reader.tables(file):
            yield Table(table.columns, table.rows_without, [note, *table.notes], table.numbers)


def _shards(folder: Path) -> _Shards | None:
    """Return the shards of a folder; None if it has none, or files of several formats."""
    files = [file for ending in ENDINGS for file in matching(folder, ending)]
    formats = {_format_of(file) for file in files}
    found = formats.pop() if len(formats) == 1 else None
    return None if found is None else _Shards(found, files)


def _format_of(file: Path) -> str | None:
    with open_input(file) as opened:
        head = opened.read(HEAD_BYTES)
    return next((reader.NAME for reader in _READERS if head and reader.matches(file, head)), None)
