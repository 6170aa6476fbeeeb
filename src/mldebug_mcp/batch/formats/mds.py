"""Folders of MosaicML Streaming (MDS): shards of samples, listed with their columns in `index.json`.

Layout: https://github.com/mosaicml/streaming/blob/main/streaming/base/format/mds (reader.py, encodings.py)
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import numpy as np

from mldebug_mcp.batch.columns import Table
from mldebug_mcp.batch.formats.files import mapped
from mldebug_mcp.batch.formats.npz import FREE_BYTES, TIMES_UNPACKED
from mldebug_mcp.batch.formats.offset_shard import (
    MAX_SHARD_BYTES,
    joined,
    offsets_of_items,
    pieces_of_items,
    unlisted_note,
    values_of,
)
from mldebug_mcp.batch.formats.tf_example import Bytes
from mldebug_mcp.batch.sequences import Ints, Ragged
from mldebug_mcp.core.access import is_file, is_folder, open_input, read_bytes
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.text import counted, shorten

NAME = "mds"
MAX_INDEX_BYTES = 256 * 1024**2
IDS = "input_ids"
TOKEN_COLUMNS = (IDS, "tokens")
COMPRESSIONS = ("", "zstd", "gz")
"""Compressions of shards that are unpacked here; none stands first."""
_DTYPES: Mapping[int, str] = {8: "u1", 9: "i1", 16: "<u2", 17: "<i2", 32: "<u4", 33: "<i4", 64: "<u8", 65: "<i8"}
"""Codes of the types of whole numbers (NDArray._int2value_dtype)."""
_DTYPES_BY_NAME: Mapping[str, str] = {np.dtype(dtype).name: dtype for dtype in _DTYPES.values()}


@dataclass(frozen=True, slots=True)
class _Shard:
    file: Path
    samples: int
    sizes: list[int | None]
    """Bytes of each column, None where each sample states them."""
    names: list[str]
    """Of the columns, that of token ids as `IDS`."""
    encodings: list[str]
    encoding: str
    """Of the token ids."""
    compression: str
    bytes: int
    """Of the shard unpacked."""


def matches(path: Path, head: bytes) -> bool:
    """A folder whose index lists shards of the format "mds"."""
    del head
    index = path / "index.json"
    return is_folder(path) and is_file(index) and b'"shards"' in read_bytes(index, MAX_INDEX_BYTES)


def rows(path: Path) -> int:
    """Return how many samples the index lists."""
    return sum(shard.samples for shard in _shards(path))


def tables(path: Path) -> Iterator[Table]:
    """Yield the token ids of the samples shard by shard. Raises InputError if they cannot be read."""
    shards = _shards(path)
    total = sum(shard.samples for shard in shards)
    unlisted = unlisted_note(path, [shard.file for shard in shards], ".mds")
    for shard in shards:
        for columns in _pieces(shard):
            ids = columns[IDS]
            note = f"read as {ids.flat.dtype.name} ids of {counted(total, 'sample')} ({shard.encoding}, MDS)"
            name = shard.file.relative_to(path).as_posix()
            yield Table({IDS: ids, "labels": ids, **columns}, notes=[note, *unlisted], shard=name)


def _pieces(shard: _Shard) -> Iterator[dict[str, Ragged]]:
    """Yield the columns of a shard that hold whole numbers. Raises InputError if it does not fit the index."""
    try:
        content = _content(shard)
        for data, offsets in pieces_of_items(content, offsets_of_items(content, shard.samples)):
            yield _columns(shard, data, offsets)
    except (ValueError, IndexError, KeyError):
        raise InputError(
            f"{shorten(str(shard.file), 200)}: its samples do not fit its index; copy or write the shard again"
        ) from None


def _columns(shard: _Shard, data: Bytes, offsets: Ints) -> dict[str, Ragged]:
    """Return the token ids of some samples, and their other columns that hold arrays of whole numbers."""
    columns: dict[str, Ragged] = {}
    cells = values_of(data, offsets, shard.sizes)
    for (start, stop), name, encoding in zip(cells, shard.names, shard.encodings, strict=True):
        if name == IDS or (_is_array(encoding) and name not in columns):
            columns[name] = _arrays(data, start, stop, encoding)
    return columns


def _content(shard: _Shard) -> Bytes:
    """Return the bytes of a shard; one that is there only compressed is unpacked."""
    if not shard.compression:
        with open_input(shard.file) as file:
            return mapped(file, np.dtype(np.uint8), 0, file.seek(0, 2))
    name = shorten(str(shard.file), 200)
    with open_input(shard.file) as file:
        packed = file.seek(0, 2)
        file.seek(0)
        if not 0 < shard.bytes <= max(FREE_BYTES, TIMES_UNPACKED * packed):
            raise InputError(
                f"{name}: {packed:,} bytes that stand for {shard.bytes:,} by its index; write the shard again"
            )
        try:
            unpacked = _unpacked(file, shard.compression, shard.bytes)
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise InputError(
                f"{name}: this shard of MDS is there only compressed ({shard.compression}), and cannot be unpacked "
                f"({shorten(str(error), 80)}); copy it again"
            ) from None
    if len(unpacked) != shard.bytes:
        raise InputError(f"{name}: unpacks to other than the {shard.bytes:,} bytes of its index; write it again")
    return unpacked


def _unpacked(packed: BinaryIO, compression: str, size: int) -> Bytes:
    """Return at most one byte more than `size` of what is packed. Raises what the library of the packing does."""
    if compression == "gz":
        with gzip.GzipFile(fileobj=packed) as file:
            return _read_at_most(file, size + 1)
    try:
        zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        raise MissingExtraError("backports.zstd", "zstd") from None
    try:
        with zstd.ZstdFile(packed) as file:
            return _read_at_most(file, size + 1)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from None


def _read_at_most(file: BufferedIOBase, size: int) -> Bytes:
    memory, filled = np.empty(size, np.uint8), 0
    while got := file.readinto(memory[filled:].data):
        filled += got
    return memory[:filled]


def _arrays(data: Bytes, start: Ints, stop: Ints, encoding: str) -> Ragged:
    """Return the arrays that lie at these places; raises ValueError or KeyError if they are none."""
    if encoding == "bytes":
        ids = joined(data, start, stop, "<i8")
        if len(ids.flat) and not 0 <= int(ids.flat.min()) <= int(ids.flat.max()) < 2**31:
            raise InputError(
                "a token column of MDS holds bytes that are not ids of 8 bytes; write it as ndarray:uint16 or ndarray:"
                "uint32"
            )
        return ids
    _, *stated = encoding.split(":")
    codes = np.empty(0, np.uint8)
    if not stated:
        codes, start = data[start], start + 1
    if len(stated) < 2:  # the shape: a byte with its length and the width of its numbers, then these
        shape = data[start].astype(np.int64)
        start = start + 1 + (shape >> 2) * (1 << (shape & 3))
    dtypes = [_DTYPES_BY_NAME[stated[0]]] if stated else [_DTYPES[code] for code in np.unique(codes).tolist()]
    if len(dtypes) > 1:
        raise InputError(
            f"a column of MDS holds arrays of several types ({', '.join(dtypes)}); write it as ndarray:uint16 or "
            "ndarray:uint32"
        )
    return joined(data, start, stop, dtypes[0] if dtypes else "<i8")


def _shards(folder: Path) -> list[_Shard]:
    index = folder / "index.json"
    name = shorten(str(index), 200)
    try:
        listed = json.loads(read_bytes(index, MAX_INDEX_BYTES))["shards"]
        return [_shard(folder, shard) for shard in listed]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(f"{name}: not an index of MDS, version 2; write the folder again") from None


def _inside(folder: Path, basename: object) -> Path:
    """Return a file of the folder, or of one below it, as merged indexes name it; ValueError for one outside."""
    path = PurePosixPath(str(basename))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError("outside")
    return folder / path


def _is_array(encoding: str) -> bool:
    kind, *stated = encoding.split(":")
    return kind == "ndarray" and (not stated or stated[0] in _DTYPES_BY_NAME)


def _shard(folder: Path, listed: Mapping[str, object]) -> _Shard:
    names, encodings, sizes = (listed[f"column_{what}"] for what in ("names", "encodings", "sizes"))
    raw, samples = listed["raw_data"], listed["samples"]
    if listed["format"] != "mds" or listed["version"] != 2 or not isinstance(raw, dict) or not isinstance(samples, int):
        raise ValueError("version")
    if not (isinstance(names, list) and isinstance(encodings, list) and isinstance(sizes, list)):
        raise TypeError("columns")
    file = _inside(folder, raw["basename"])
    arrays = [place for place, kind in enumerate(encodings) if _is_array(str(kind))]
    column = next((names.index(known) for known in TOKEN_COLUMNS if known in names), None)
    column = arrays[0] if column is None and len(arrays) == 1 else column
    encoding = "" if column is None else str(encodings[column])
    readable = encoding == "bytes" or _is_array(encoding)
    if column is None or not readable:
        columns = ", ".join(f"{name} ({kind})" for name, kind in zip(names[:8], encodings[:8], strict=False))
        raise InputError(
            f"{shorten(str(folder), 200)}: a folder of MDS whose columns are {shorten(columns, 200)}; token ids are "
            "read from input_ids or tokens as ndarray of whole numbers or bytes; read it with "
            "streaming.StreamingDataset, and save its samples as parquet"
        )
    packed = listed.get("zip_data")
    compression = ""
    if not is_file(file) and isinstance(packed, dict):
        file, compression = (
            _inside(folder, packed["basename"]),
            str(listed.get("compression")).partition(":")[0],
        )
    if compression not in COMPRESSIONS or int(raw["bytes"]) > MAX_SHARD_BYTES:
        raise InputError(
            f"{shorten(str(file), 200)}: this shard of MDS is there only compressed ({shorten(compression, 20)}); "
            "unpack each shard in this folder under its name in the index, or save its samples as parquet"
        )
    stated = [size if isinstance(size, int) else None for size in sizes]
    ours = [IDS if place == column else str(name) for place, name in enumerate(names)]
    kinds = [str(kind) for kind in encodings]
    return _Shard(file, samples, stated, ours, kinds, encoding, compression, int(raw["bytes"]))
