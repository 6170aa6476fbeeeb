"""Folders of LitData: chunks of tensors of token ids, listed in `index.json`.

Layout: https://github.com/Lightning-AI/litdata/blob/main/src/litdata/streaming/writer.py (_create_chunk)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mldebug_mcp.batch.formats.offset_shard import MAX_BYTES, first_item, in_pieces, offsets_of_items
from mldebug_mcp.batch.sequences import Ints, Ragged
from mldebug_mcp.batch.table import Table
from mldebug_mcp.core.access import is_folder, matching, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

NAME = "litdata"
MAX_INDEX_BYTES = 256 * 1024**2
_DTYPES: Mapping[str, np.dtype[np.integer]] = {
    "no_header_tensor:11": np.dtype("u1"),
    "no_header_tensor:13": np.dtype("<i2"),
    "no_header_tensor:14": np.dtype("<i2"),
    "no_header_tensor:15": np.dtype("<i4"),
    "no_header_tensor:16": np.dtype("<i4"),
    "no_header_tensor:17": np.dtype("<i8"),
    "no_header_tensor:18": np.dtype("<i8"),
    "no_header_tensor:20": np.dtype("<u2"),
}
"""Data formats of tensors of whole numbers with one dimension (litdata/constants.py, _TORCH_DTYPES_MAPPING)."""


def matches(path: Path, head: bytes) -> bool:
    """A folder whose index lists chunks."""
    del head
    return is_folder(path) and any('"chunks"' in _text(index) for index in _indexes(path))


def rows(path: Path) -> int:
    """Return how many items the index lists."""
    return sum(size for _, size, _ in _chunks(path))


def tables(path: Path) -> Iterator[Table]:
    """Yield the items chunk by chunk. Raises InputError if a chunk contradicts the index or holds no token ids."""
    total = rows(path)
    for chunk, size, dtype in _chunks(path):
        name = shorten(str(chunk), 200)
        content = read_bytes(chunk, MAX_BYTES, "write chunks of at most 4 GiB")
        try:
            offsets = _offsets(content, size, dtype)
        except ValueError:
            raise InputError(
                f"{name}: its offsets do not fit {counted(size, 'item')} of {dtype.name} and {len(content):,} bytes, "
                "as the index states; copy or write the chunk again"
            ) from None
        ids = np.frombuffer(content, dtype, offset=first_item(size))
        items = Ragged(ids, (offsets - offsets[0]) // dtype.itemsize)
        note = f"read as {dtype.name} ids of {counted(total, 'item')}, as LitData's index states"
        for piece in in_pieces({"input_ids": items}, "input_ids"):
            yield Table(piece | {"labels": piece["input_ids"]}, notes=[note], shard=chunk.name)


def _offsets(content: bytes, size: int, dtype: np.dtype[np.integer]) -> Ints:
    """Return where the items begin, and the end; raises ValueError unless whole ids follow the offsets at once."""
    offsets = offsets_of_items(content, size)
    if int(offsets[0]) != first_item(size) or np.any(np.diff(offsets) % dtype.itemsize):
        raise ValueError("items")
    return offsets


def _indexes(folder: Path) -> list[Path]:
    """Return the index of the folder, or, before it is merged, those of the workers."""
    found = matching(folder, "index.json")
    whole = [path for path in found if path.name == "index.json"]
    return whole or [path for path in found if path.name.endswith(".index.json")]


def _text(index: Path) -> str:
    return read_bytes(index, MAX_INDEX_BYTES).decode("utf-8", "replace")


def _chunks(folder: Path) -> list[tuple[Path, int, np.dtype[np.integer]]]:
    """Return the chunks, each with its number of items and the type of its ids."""
    found = []
    for index in _indexes(folder):
        name = shorten(str(index), 200)
        try:
            content = json.loads(_text(index))
            config, listed = content["config"], content["chunks"]
            chunks = [(str(chunk["filename"]), int(chunk["chunk_size"])) for chunk in listed]
            formats, compression = config["data_format"], config["compression"]
            encryption = config.get("encryption")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InputError(f"{name}: not an index of LitData; write the folder again") from None
        dtype = _DTYPES.get(str(formats[0])) if isinstance(formats, list) and len(formats) == 1 else None
        if dtype is None or compression or encryption:
            what = (
                "compressed" if compression else "encrypted" if encryption else f"items of {shorten(str(formats), 80)}"
            )
            raise InputError(
                f"{name}: a folder of LitData with {what} is not read; read it with litdata.StreamingDataset, and save "
                "the token ids of its items as parquet"
            )
        if any(Path(chunk).name != chunk for chunk, _ in chunks):
            raise InputError(f"{name}: it names a chunk outside its folder; write the folder again")
        found += [(folder / chunk, size, dtype) for chunk, size in chunks]
    return found
