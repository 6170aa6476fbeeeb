"""Folders of LitData: chunks of arrays of token ids, listed in `index.json`.

An item is the tokens themselves (TokensLoader), or a tree of arrays: the bytes of each, then their content. Layout:
https://github.com/Lightning-AI/litdata/blob/main/src/litdata/streaming (writer.py, item_loader.py, serializers.py)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mldebug_mcp.batch.columns import Table, find
from mldebug_mcp.batch.formats.files import mapped
from mldebug_mcp.batch.formats.offset_shard import (
    first_item,
    joined,
    offsets_of_items,
    pieces_of_items,
    unlisted_note,
    values_of,
)
from mldebug_mcp.batch.formats.tf_example import Bytes
from mldebug_mcp.batch.sequences import Ints, Ragged
from mldebug_mcp.core.access import is_folder, matching, open_input, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

NAME = "litdata"
MAX_INDEX_BYTES = 256 * 1024**2
TOKENS_LOADER = "TokensLoader"
IDS = "input_ids"
PIECE_TOKENS = 8 * 1024 * 1024
"""Tokens that one piece holds at least, unless the chunk ends before."""
_DTYPES: Mapping[str, np.dtype[np.integer]] = {
    "no_header_tensor:11": np.dtype("u1"),
    "no_header_tensor:13": np.dtype("<i2"),
    "no_header_tensor:14": np.dtype("<i2"),
    "no_header_tensor:15": np.dtype("<i4"),
    "no_header_tensor:16": np.dtype("<i4"),
    "no_header_tensor:17": np.dtype("<i8"),
    "no_header_tensor:18": np.dtype("<i8"),
    "no_header_tensor:20": np.dtype("<u2"),
    "no_header_numpy:0": np.dtype("i1"),
    "no_header_numpy:1": np.dtype("<i2"),
    "no_header_numpy:2": np.dtype("<i4"),
    "no_header_numpy:3": np.dtype("<i8"),
    "no_header_numpy:4": np.dtype("u1"),
    "no_header_numpy:5": np.dtype("<u2"),
    "no_header_numpy:6": np.dtype("<u4"),
    "no_header_numpy:7": np.dtype("<u8"),
}
"""Data formats of arrays of whole numbers with one dimension (litdata/constants.py, _TORCH_DTYPES_MAPPING and
_NUMPY_DTYPES_MAPPING)."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    file: Path
    items: int
    columns: Mapping[str, int]
    """Places of the arrays of whole numbers in an item, by their names."""
    formats: Sequence[str]
    """Of all values of an item."""
    bare: bool
    """Whether an item is its tokens alone."""


def matches(path: Path, head: bytes) -> bool:
    """A folder whose index lists chunks."""
    del head
    return is_folder(path) and any('"chunks"' in _text(index) for index in _indexes(path))


def rows(path: Path) -> int:
    """Return how many items the index lists."""
    return sum(chunk.items for chunk in _chunks(path))


def tables(path: Path) -> Iterator[Table]:
    """Yield the items chunk by chunk. Raises InputError if a chunk contradicts the index or holds no token ids."""
    total, chunks = rows(path), _chunks(path)
    unlisted = unlisted_note(path, [chunk.file for chunk in chunks], ".bin")
    for chunk in chunks:
        for columns in _pieces(chunk):
            name = find(columns, "", "ids") or next(iter(columns))
            ids = columns.pop(name)
            note = f"read as {ids.flat.dtype.name} ids of {counted(total, 'item')}, as LitData's index states"
            yield Table({IDS: ids, **(columns or {"labels": ids})}, notes=[note, *unlisted], shard=chunk.file.name)


def _pieces(chunk: _Chunk) -> Iterator[dict[str, Ragged]]:
    """Yield the arrays of a chunk by name, some megabytes at a time. Raises InputError unless they fill it."""
    with open_input(chunk.file) as file:
        size = file.seek(0, 2)
        try:
            content = mapped(file, np.dtype(np.uint8), 0, size)
            offsets = _offsets(content, chunk.items)
            if chunk.bare:
                yield from _bare(file, offsets, _DTYPES[chunk.formats[0]])
                return
            for data, starts in pieces_of_items(content, offsets):
                places = values_of(data, starts, [None] * len(chunk.formats))
                yield {
                    name: joined(data, *places[place], _DTYPES[chunk.formats[place]])
                    for name, place in chunk.columns.items()
                }
        except (ValueError, IndexError):
            raise InputError(
                f"{shorten(str(chunk.file), 200)}: its offsets do not fit {counted(chunk.items, 'item')} of "
                f"{', '.join(chunk.formats)} and {size:,} bytes, as the index states; copy or write the chunk again"
            ) from None


def _offsets(content: Bytes, items: int) -> Ints:
    """Return where each item begins, the first behind the offsets; raises ValueError if they do not fit the file."""
    offsets = offsets_of_items(content, items)
    if int(offsets[0]) != first_item(items):
        raise ValueError("items")
    return offsets


def _bare(file: BinaryIO, offsets: Ints, dtype: np.dtype[np.integer]) -> Iterator[dict[str, Ragged]]:
    """Yield items that are their tokens alone; raises ValueError if they are not whole ones."""
    ends = (offsets - offsets[0]) // dtype.itemsize
    if np.any(np.diff(offsets) % dtype.itemsize):
        raise ValueError("items")
    first = 0
    while first < len(ends) - 1:
        last = min(len(ends) - 1, max(first + 1, int(np.searchsorted(ends, ends[first] + PIECE_TOKENS))))
        ids = mapped(file, dtype, int(offsets[first]), int(ends[last] - ends[first]))
        yield {IDS: Ragged(ids, ends[first : last + 1] - ends[first])}
        first = last


def _indexes(folder: Path) -> list[Path]:
    """Return the index of the folder, or, before it is merged, those of the workers."""
    found = matching(folder, "index.json")
    whole = [path for path in found if path.name == "index.json"]
    return whole or [path for path in found if path.name.endswith(".index.json")]


def _text(index: Path) -> str:
    return read_bytes(index, MAX_INDEX_BYTES).decode("utf-8", "replace")


def _chunks(folder: Path) -> list[_Chunk]:
    """Return the chunks, each with its number of items and their layout."""
    found = []
    for index in _indexes(folder):
        name = shorten(str(index), 200)
        try:
            content = json.loads(_text(index))
            config, listed = content["config"], content["chunks"]
            chunks = [(str(chunk["filename"]), int(chunk["chunk_size"])) for chunk in listed]
            formats = [str(kind) for kind in config["data_format"]]
            packed, encrypted = config["compression"], config.get("encryption")
            names = _names(config, len(formats))
            loader = config.get("item_loader", TOKENS_LOADER)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            raise InputError(f"{name}: not an index of LitData; write the folder again") from None
        columns = {column: place for place, column in enumerate(names) if formats[place] in _DTYPES}
        if not columns or packed or encrypted:
            what = "compressed" if packed else "encrypted" if encrypted else f"items of {shorten(str(formats), 80)}"
            raise InputError(
                f"{name}: a folder of LitData with {what} is not read; read it with litdata.StreamingDataset, and save "
                "the token ids of its items as parquet"
            )
        if any(Path(chunk).name != chunk for chunk, _ in chunks):
            raise InputError(f"{name}: it names a chunk outside its folder; write the folder again")
        bare = len(formats) == 1 and loader == TOKENS_LOADER
        found += [_Chunk(folder / chunk, items, columns, formats, bare) for chunk, items in chunks]
    return found


def _names(config: Mapping[str, object], count: int) -> list[str]:
    """Return the names of the values of an item: the keys of its dictionary, or one name for its only value.

    The index holds the tree as PyTorch dumps it (torch/utils/_pytree.py, treespec_dumps).
    """
    if count == 1 and not config.get("data_spec"):
        return [IDS]
    tree = json.loads(str(config["data_spec"]))[1]
    if tree["type"] == "builtins.dict":
        names = [str(name) for name in json.loads(tree["context"])]
        if len(names) == count:
            return names
    return [IDS] if count == 1 else [f"value_{place}" for place in range(count)]
