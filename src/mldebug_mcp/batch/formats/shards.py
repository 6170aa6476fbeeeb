"""A folder of shards of token ids, all of one format: Megatron's, datatrove's, arrays of NumPy, or raw `.bin` files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

from mldebug_mcp.batch.columns import Table
from mldebug_mcp.batch.formats import datatrove, megatron, npz, token_file
from mldebug_mcp.batch.formats.files import without_held_out
from mldebug_mcp.core.access import is_file, is_folder, matching, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

NAME = "shards"
ENDINGS = (".bin", ".ds", ".npy")
HEAD_BYTES = 4096
_READERS = (npz, megatron, datatrove, token_file)


def matches(path: Path, head: bytes) -> bool:
    """A folder whose files of token ids have one ending, and the first of them a format that is known."""
    del head
    files = _files(path) if is_folder(path) else []
    return bool(files) and _format_of(files[0]) is not None


def rows(path: Path, dtype: str = "") -> int | None:
    """Return how many rows there are, or None where the shards are arrays, which tell it when they are read."""
    files = _files(path)
    reader = _reader(_known_format(files[0], dtype))
    stated = _stated(reader, files, dtype, path)
    return None if reader is npz else sum(reader.rows(file, **stated) or 0 for file in files)


def tables(path: Path, dtype: str = "") -> Iterator[Table]:
    """Yield the content of the shards in the order of their names. Raises InputError if one has another format."""
    files = _files(path)
    found = _known_format(files[0], dtype)
    reader = _reader(found)
    stated = _stated(reader, files, dtype, path)
    _check_indexes(path)
    looks = _unlike(files, stated) if reader is token_file and not dtype else []
    looks += _without_header(files) if reader is token_file else []
    note = f"read as one corpus of {counted(len(files), 'shard')} ({found})"
    for file in files:
        other = _known_format(file, dtype)
        if other != found:
            raise InputError(
                f"{shorten(str(file), 200)}: its format is {other}, that of the shards before it "
                f"{found}; give shards of one format as one folder"
            )
        for table in reader.tables(file, **stated):
            yield replace(table, notes=[note, *looks, *table.notes], shard=file.name)


def files_in(folder: Path) -> list[Path]:
    """Return the shards in a folder; none if it holds files of several endings."""
    found = [files for ending in ENDINGS if (files := matching(folder, ending))]
    return found[0] if len(found) == 1 else []


def _files(folder: Path) -> list[Path]:
    return without_held_out(files_in(folder))


def _size(file: Path) -> int:
    with open_input(file) as opened:
        return opened.seek(0, 2)


def _unlike(files: Sequence[Path], stated: Mapping[str, str]) -> list[str]:
    """Return the note that some shards of raw ids look like another type than the one with which all are read."""
    others = {file.name: shown for file in files if (shown := token_file.inferred_type(file)[0]) != stated["dtype"]}
    if not others:
        return []
    name, shown = next(iter(others.items()))
    return [
        f"{counted(len(others), 'shard')} of {len(files)} alone would be read as another type than the others "
        f"({shorten(name, 60)} as {np.dtype(shown).name}); all are read as {np.dtype(stated['dtype']).name}"
    ]


def _without_header(files: Sequence[Path]) -> list[str]:
    """Return the note that some shards of raw ids lack the header that others have."""
    without = [file.name for file in files if not token_file.has_header(file)]
    if not without or len(without) == len(files):
        return []
    return [
        f"{counted(len(without), 'shard')} of {len(files)} lack the header of llm.c that the others have "
        f"({shorten(without[0], 60)}): their first bytes are read as ids"
    ]


def _check_indexes(folder: Path) -> None:
    """Raise InputError if an index has no data next to it, as then a part of the corpus is missing."""
    of_megatron = [index.with_suffix(".bin") for index in matching(folder, ".idx")]
    of_datatrove = [index.with_suffix("") for index in matching(folder, ".ds.index")]
    for data in (*of_megatron, *of_datatrove):
        if not is_file(data):
            raise InputError(
                f"{shorten(str(data), 200)}: this file is missing next to its index; copy both files into one folder"
            )


def _stated(reader: ModuleType, files: Sequence[Path], dtype: str, path: Path) -> dict[str, str]:
    """Return the type of raw ids, as the user states it or as the largest shard shows it: it is the same in all shards.

    Raises InputError if the user states it and the shards state their own.
    """
    if reader is token_file and not dtype:
        shown, evidence = token_file.inferred_type(max(files, key=_size))
        return {"dtype": shown, "evidence": evidence}
    if reader is token_file:
        return {"dtype": dtype}
    if dtype:
        raise InputError(f"{shorten(str(path), 200)}: {reader.NAME} states the type of its ids; leave out dtype")
    return {}


def _reader(found: str) -> ModuleType:
    return next(reader for reader in _READERS if found == reader.NAME)


def _known_format(file: Path, dtype: str) -> str:
    """Return the format of a shard: raw ids where their type is stated. Raises InputError if it is not known."""
    found = _format_of(file) or (token_file.NAME if dtype else None)
    if found is None:
        raise InputError(
            f"{shorten(str(file), 200)}: no format of shards that is known; state dtype if it holds raw ids"
        )
    return found


def _format_of(file: Path) -> str | None:
    with open_input(file) as opened:
        head = opened.read(HEAD_BYTES)
    return next((reader.NAME for reader in _READERS if head and reader.matches(file, head)), None)
