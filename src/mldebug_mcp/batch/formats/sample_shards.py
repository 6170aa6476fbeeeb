"""Shards of samples that the streaming loaders of training libraries read: MDS, LitData and WebDataset."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BufferedIOBase
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table, find, from_records
from mldebug_mcp.batch.formats.files import Bytes, Format, in_files, mapped, whole_numbers
from mldebug_mcp.batch.formats.tensors import FREE_BYTES, TIMES_UNPACKED
from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.core.access import is_file, is_folder, matching, open_input, read_bytes
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.text import counted, shorten, some_of

# The layout that shards of MDS and chunks of LitData share: a count, one more offset than that, then the items.
# All are little-endian 32-bit whole numbers. LitData took it over from MDS.


MAX_SHARD_BYTES = 4 * 1024**3
"""Bytes of a shard: its offsets count no more."""


def offsets_of_items(data: Bytes, count: int) -> Ints:
    """Return where each of so many items of a shard begins, and the end of the last one.

    Raises:
        ValueError: the shard holds another count, or its offsets do not ascend to its end.
    """
    stated = int.from_bytes(data[:4].tobytes(), "little")
    if stated != count or first_item(count) > len(data):
        raise ValueError("offsets")
    offsets = data[4 : first_item(count)].view("<u4").astype(np.int64)
    if int(offsets[-1]) != len(data) or np.any(np.diff(offsets) < 0):
        raise ValueError("offsets")
    return offsets


def first_item(count: int) -> int:
    """Return where the first of so many items begins."""
    return 4 * (count + 2)


def values_of(data: Bytes, offsets: Ints, sizes: Sequence[int | None]) -> list[tuple[Ints, Ints]]:
    """Return where the values of each item begin and end, one pair of arrays for each value.

    A size of None stands for a value whose items state it: in their first bytes, before all values.

    Raises:
        ValueError: the values do not fill their items.
        IndexError: an item is outside of the shard.
    """
    start, found = offsets[:-1], []
    for size in sizes:
        stated = size is not None
        found.append(np.full(len(start), size) if stated else whole_numbers(data, start).astype(np.int64))
        start = start if stated else start + 4
    if np.any(start + sum(found) != offsets[1:]):
        raise ValueError("sizes")
    ends = [start + length for length in accumulate(found)]
    return list(zip([start, *ends[:-1]], ends, strict=True))


def joined(data: Bytes, start: Ints, stop: Ints, dtype: str | np.dtype[np.integer]) -> Ragged:
    """Return the numbers that lie at these places as rows; raises ValueError if they are no whole ones."""
    itemsize, places = np.dtype(dtype).itemsize, zip(start.tolist(), stop.tolist(), strict=True)
    lengths = (stop - start) // itemsize
    if np.any(lengths * itemsize != stop - start) or np.any(lengths < 0):
        raise ValueError("lengths")
    rows = [data[first:last] for first, last in places]
    flat = np.concatenate(rows).view(dtype) if rows else np.empty(0, dtype)
    return Ragged(flat, offsets_of(lengths))


PIECE_BYTES = 16 * 1024**2
"""Bytes of items that one piece holds at least, unless the shard ends before."""


def pieces_of_items(data: Bytes, offsets: Ints) -> Iterator[tuple[Bytes, Ints]]:
    """Yield the items of a shard some megabytes at a time: their bytes, and where each begins and the last one ends."""
    for first, last in _stretches(offsets, PIECE_BYTES):
        start = int(offsets[first])
        yield data[start : int(offsets[last])], offsets[first : last + 1] - start


def _stretches(offsets: Ints, least: int) -> Iterator[tuple[int, int]]:
    """Yield where stretches of items begin and end that are so long at least, unless the items end before."""
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + least)))
        last = min(last, len(offsets) - 1)
        yield first, last
        first = last


def unlisted_note(folder: Path, listed: Iterable[Path], ending: str) -> list[str]:
    """Return the note that shards lie in a folder whose index does not list them; none if all are listed."""
    known = {_shard_name(path, ending) for path in listed}
    shards = [file for file in matching(folder, "") if ending in file.name]
    left = [file.name for file in shards if _shard_name(file, ending) not in known]
    if not left:
        return []
    return [f"left out {counted(len(left), 'shard')} that the index does not list ({some_of(left)})"]


def _shard_name(shard: Path, ending: str) -> Path:
    """Return the name of a shard without its ending, and without that of its packing."""
    return shard.with_name(shard.name.partition(ending)[0])


MAX_INDEX_BYTES = 256 * 1024**2
IDS = "input_ids"
TOKEN_COLUMNS = (IDS, "tokens")
COMPRESSIONS = ("", "zstd", "gz")
"""Compressions of shards that are unpacked here; none stands first."""
_MDS_DTYPES: Mapping[int, str] = {8: "u1", 9: "i1", 16: "<u2", 17: "<i2", 32: "<u4", 33: "<i4", 64: "<u8", 65: "<i8"}
"""Codes of the types of whole numbers (NDArray._int2value_dtype)."""
_MDS_DTYPES_BY_NAME: Mapping[str, str] = {np.dtype(dtype).name: dtype for dtype in _MDS_DTYPES.values()}


@dataclass(frozen=True, slots=True)
class _MdsShard:
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


def _mds_matches(path: Path, _: bytes) -> bool:
    """A folder whose index lists shards of the format "mds"."""
    index = path / "index.json"
    return is_folder(path) and is_file(index) and b'"shards"' in read_bytes(index, MAX_INDEX_BYTES)


def _mds_tables(path: Path) -> Iterator[Table]:
    """Yield the token ids of the samples shard by shard. Raises InputError if they cannot be read."""
    shards = _mds_shards(path)
    total = sum(shard.samples for shard in shards)
    unlisted = unlisted_note(path, [shard.file for shard in shards], ".mds")
    for shard in shards:
        for columns in _mds_pieces(shard):
            ids = columns[IDS]
            note = f"read as {ids.flat.dtype.name} ids of {counted(total, 'sample')} ({shard.encoding}, MDS)"
            name = shard.file.relative_to(path).as_posix()
            yield Table({IDS: ids, "labels": ids, **columns}, notes=[note, *unlisted], shard=name)


MDS = Format(
    "mds", _mds_matches, _mds_tables, lambda path: sum(shard.samples for shard in _mds_shards(path)),
    (".mds", ".mds.zstd", ".mds.gz"),
)  # fmt: skip
"""Folders of MosaicML Streaming (MDS): shards of samples, listed with their columns in `index.json`.

Layout: https://github.com/mosaicml/streaming/blob/main/streaming/base/format/mds (reader.py, encodings.py)
"""


def _mds_pieces(shard: _MdsShard) -> Iterator[dict[str, Ragged]]:
    """Yield the columns of a shard that hold whole numbers. Raises InputError if it does not fit the index."""
    try:
        content = _mds_content(shard)
        for data, offsets in pieces_of_items(content, offsets_of_items(content, shard.samples)):
            yield _mds_columns(shard, data, offsets)
    except (ValueError, IndexError, KeyError):
        raise InputError(
            f"{shorten(str(shard.file), 200)}: its samples do not fit its index; copy or write the shard again"
        ) from None


def _mds_columns(shard: _MdsShard, data: Bytes, offsets: Ints) -> dict[str, Ragged]:
    """Return the token ids of some samples, and their other columns that hold arrays of whole numbers."""
    columns: dict[str, Ragged] = {}
    cells = values_of(data, offsets, shard.sizes)
    for (start, stop), name, encoding in zip(cells, shard.names, shard.encodings, strict=True):
        if name == IDS or (_is_array(encoding) and name not in columns):
            columns[name] = _mds_arrays(data, start, stop, encoding)
    return columns


def _mds_content(shard: _MdsShard) -> Bytes:
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


def _mds_arrays(data: Bytes, start: Ints, stop: Ints, encoding: str) -> Ragged:
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
    dtypes = [_MDS_DTYPES_BY_NAME[stated[0]]] if stated else [_MDS_DTYPES[code] for code in np.unique(codes).tolist()]
    if len(dtypes) > 1:
        raise InputError(
            f"a column of MDS holds arrays of several types ({', '.join(dtypes)}); write it as ndarray:uint16 or "
            "ndarray:uint32"
        )
    return joined(data, start, stop, dtypes[0] if dtypes else "<i8")


def _mds_shards(folder: Path) -> list[_MdsShard]:
    index = folder / "index.json"
    name = shorten(str(index), 200)
    try:
        listed = json.loads(read_bytes(index, MAX_INDEX_BYTES))["shards"]
        return [_mds_shard(folder, shard) for shard in listed]
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
    return kind == "ndarray" and (not stated or stated[0] in _MDS_DTYPES_BY_NAME)


def _mds_shard(folder: Path, listed: Mapping[str, object]) -> _MdsShard:
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
    return _MdsShard(file, samples, stated, ours, kinds, encoding, compression, int(raw["bytes"]))


TOKENS_LOADER = "TokensLoader"
PIECE_TOKENS = 8 * 1024 * 1024
"""Tokens that one piece holds at least, unless the chunk ends before."""
_LITDATA_DTYPES: Mapping[str, np.dtype[np.integer]] = {
    f"no_header_{kind}:{code}": np.dtype(dtype)
    for kind, dtypes in (
        ("tensor", {11: "u1", 13: "<i2", 14: "<i2", 15: "<i4", 16: "<i4", 17: "<i8", 18: "<i8", 20: "<u2"}),
        ("numpy", {0: "i1", 1: "<i2", 2: "<i4", 3: "<i8", 4: "u1", 5: "<u2", 6: "<u4", 7: "<u8"}),
    )
    for code, dtype in dtypes.items()
}
"""Data formats of arrays of whole numbers with one dimension (litdata/constants.py, _TORCH_DTYPES_MAPPING and
_NUMPY_DTYPES_MAPPING)."""


@dataclass(frozen=True, slots=True)
class _LitdataChunk:
    file: Path
    items: int
    columns: Mapping[str, int]
    """Places of the arrays of whole numbers in an item, by their names."""
    formats: Sequence[str]
    """Of all values of an item."""
    bare: bool
    """Whether an item is its tokens alone."""


def _litdata_matches(path: Path, _: bytes) -> bool:
    """A folder whose index lists chunks."""
    return is_folder(path) and any('"chunks"' in _index_text(index) for index in _litdata_indexes(path))


def _litdata_rows(path: Path) -> int:
    return sum(chunk.items for chunk in _litdata_chunks(path))


def _litdata_tables(path: Path) -> Iterator[Table]:
    """Yield the items chunk by chunk. Raises InputError if a chunk contradicts the index or holds no token ids."""
    total, chunks = _litdata_rows(path), _litdata_chunks(path)
    unlisted = unlisted_note(path, [chunk.file for chunk in chunks], ".bin")
    for chunk in chunks:
        for columns in _litdata_pieces(chunk):
            name = find(columns, "", "ids") or next(iter(columns))
            ids = columns.pop(name)
            note = f"read as {ids.flat.dtype.name} ids of {counted(total, 'item')}, as LitData's index states"
            yield Table({IDS: ids, **(columns or {"labels": ids})}, notes=[note, *unlisted], shard=chunk.file.name)


LITDATA = Format("litdata", _litdata_matches, _litdata_tables, _litdata_rows, (".bin",))
"""Folders of LitData: chunks of arrays of token ids, listed in `index.json`.

An item is the tokens themselves (TokensLoader), or a tree of arrays: the bytes of each, then their content. Layout:
https://github.com/Lightning-AI/litdata/blob/main/src/litdata/streaming (writer.py, item_loader.py, serializers.py)
"""


def _litdata_pieces(chunk: _LitdataChunk) -> Iterator[dict[str, Ragged]]:
    """Yield the arrays of a chunk by name, some megabytes at a time. Raises InputError unless they fill it."""
    with open_input(chunk.file) as file:
        size = file.seek(0, 2)
        try:
            content = mapped(file, np.dtype(np.uint8), 0, size)
            offsets = _chunk_offsets(content, chunk.items)
            if chunk.bare:
                yield from _bare_items(file, offsets, _LITDATA_DTYPES[chunk.formats[0]])
                return
            for data, starts in pieces_of_items(content, offsets):
                places = values_of(data, starts, [None] * len(chunk.formats))
                yield {
                    name: joined(data, *places[place], _LITDATA_DTYPES[chunk.formats[place]])
                    for name, place in chunk.columns.items()
                }
        except (ValueError, IndexError):
            raise InputError(
                f"{shorten(str(chunk.file), 200)}: its offsets do not fit {counted(chunk.items, 'item')} of "
                f"{', '.join(chunk.formats)} and {size:,} bytes, as the index states; copy or write the chunk again"
            ) from None


def _chunk_offsets(content: Bytes, items: int) -> Ints:
    """Return where each item begins, the first behind the offsets; raises ValueError if they do not fit the file."""
    offsets = offsets_of_items(content, items)
    if int(offsets[0]) != first_item(items):
        raise ValueError("items")
    return offsets


def _bare_items(file: BinaryIO, offsets: Ints, dtype: np.dtype[np.integer]) -> Iterator[dict[str, Ragged]]:
    """Yield items that are their tokens alone; raises ValueError if they are not whole ones."""
    ends = (offsets - offsets[0]) // dtype.itemsize
    if np.any(np.diff(offsets) % dtype.itemsize):
        raise ValueError("items")
    for first, last in _stretches(ends, PIECE_TOKENS):
        ids = mapped(file, dtype, int(offsets[first]), int(ends[last] - ends[first]))
        yield {IDS: Ragged(ids, ends[first : last + 1] - ends[first])}


def _litdata_indexes(folder: Path) -> list[Path]:
    """Return the index of the folder, or, before it is merged, those of the workers."""
    found = matching(folder, "index.json")
    whole = [path for path in found if path.name == "index.json"]
    return whole or [path for path in found if path.name.endswith(".index.json")]


def _index_text(index: Path) -> str:
    return read_bytes(index, MAX_INDEX_BYTES).decode("utf-8", "replace")


def _litdata_chunks(folder: Path) -> list[_LitdataChunk]:
    """Return the chunks, each with its number of items and their layout."""
    found = []
    for index in _litdata_indexes(folder):
        name = shorten(str(index), 200)
        try:
            content = json.loads(_index_text(index))
            config, listed = content["config"], content["chunks"]
            chunks = [(str(chunk["filename"]), int(chunk["chunk_size"])) for chunk in listed]
            formats = [str(kind) for kind in config["data_format"]]
            packed, encrypted = config["compression"], config.get("encryption")
            names = _litdata_names(config, len(formats))
            loader = config.get("item_loader", TOKENS_LOADER)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            raise InputError(f"{name}: not an index of LitData; write the folder again") from None
        columns = {column: place for place, column in enumerate(names) if formats[place] in _LITDATA_DTYPES}
        if not columns or packed or encrypted:
            what = "compressed" if packed else "encrypted" if encrypted else f"items of {shorten(str(formats), 80)}"
            raise InputError(
                f"{name}: a folder of LitData with {what} is not read; read it with litdata.StreamingDataset, and save "
                "the token ids of its items as parquet"
            )
        if any(Path(chunk).name != chunk for chunk, _ in chunks):
            raise InputError(f"{name}: it names a chunk outside its folder; write the folder again")
        bare = len(formats) == 1 and loader == TOKENS_LOADER
        found += [_LitdataChunk(folder / chunk, items, columns, formats, bare) for chunk, items in chunks]
    return found


def _litdata_names(config: Mapping[str, object], count: int) -> list[str]:
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


TAR_MAGIC = b"ustar"
TAR_MAGIC_AT = 257
TAR_PIECE_BYTES = 64 * 1024**2
"""Bytes of members that one piece holds at least, unless the file ends before."""
MAX_MEMBER = 1024**3
"""Bytes of a member that is read; a larger one is skipped."""
READ_MEMBERS = ("npy", "json", "txt")


def _webdataset_rows(file: Path) -> int:
    with _opened_tar(file) as opened:
        return len({_sample_of(member.name)[0] for member in _tar_members(opened)})


def _webdataset_tables(files: list[Path]) -> Iterator[Table]:
    """Yield the samples, some megabytes at a time. Raises InputError if no member is one that can be read."""
    skipped: dict[str, None] = {}
    any_read = False
    for file in files:
        for samples in _tar_pieces(file, skipped):
            any_read = True
            yield Table(_tar_columns(samples), notes=["read as samples of WebDataset"], shard=file.name)
    if not any_read:
        kinds = ", ".join(f".{kind}" for kind in list(skipped)[:8]) or "none"
        place = files[0] if len(files) == 1 else files[0].parent
        raise InputError(
            f"{shorten(str(place), 200)}: a tar file without members of token ids or text ({kinds}); .npy, .json "
            "and .txt are read"
        )


WEBDATASET = in_files(
    "webdataset", lambda head: head.startswith(TAR_MAGIC, TAR_MAGIC_AT), _webdataset_tables, _webdataset_rows, (".tar",)
)
"""Tar files of WebDataset: the members with the same name up to their first dot are a sample.

Source: https://github.com/webdataset/webdataset (webdataset/tariterators.py, group_by_keys; autodecode.py)
"""


@contextmanager
def _opened_tar(file: Path) -> Iterator[BinaryIO]:
    try:
        with open_input(file) as opened:
            yield opened
    except tarfile.TarError as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(file), 200)}: a broken tar file ({problem}); write it again") from None


# The members of a tar file. Python's tarfile takes some fifty microseconds for each, as long as counting 40,000 tokens.
# Headers of plain files are read here; a file with any other header is read by tarfile.


class _Member(NamedTuple):
    """A member that is a file: its name, and where its content lies."""

    name: str
    start: int
    size: int


TAR_BLOCK_BYTES = 512
"""Bytes of a header; contents are filled up to a multiple of them."""
HEADERS_AT_ONCE = 4096
"""Headers whose checksums are computed together."""
PLAIN = frozenset(b"0\0")
"""Types of members that are plain files."""
EXTENDED = ord("x")
"""The type of a header with further facts about the next member."""
IDLE_FACTS = re.compile(rb"(?:\d+ (?:mtime|atime|ctime|uid|gid|uname|gname|comment)=[^\n]*\n)*\0*")
"""Further facts that change neither its name nor its content: lines of their length, a name, = and a value."""


class _UnusualError(Exception):
    """A header is not that of a plain file, or its checksum is wrong."""


def _tar_members(file: BinaryIO) -> Iterator[_Member]:
    """Yield the members that are files. Raises tarfile.TarError if the file is broken."""
    try:
        found = list(_plain_members(file))
    except (_UnusualError, ValueError):
        yield from _members_by_tarfile(file)
        return
    yield from found


def _members_by_tarfile(file: BinaryIO) -> Iterator[_Member]:
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for member in archive:
            if member.isfile() and not member.issparse():
                yield _Member(member.name, member.offset_data, member.size)
        end = archive.offset
    file.seek(end)
    if any(file.read(TAR_BLOCK_BYTES)):  # tarfile takes a broken header for the end
        raise tarfile.ReadError(f"no header at byte {end:,}")


def _plain_members(file: BinaryIO) -> Iterator[_Member]:
    """Yield the members of a tar file of plain files alone. Raises _UnusualError or ValueError if it is another one."""
    size = file.seek(0, 2)
    data = mapped(file, np.dtype(np.uint8), 0, size)
    view, at, headers = data.data, 0, []
    while at + TAR_BLOCK_BYTES <= size:
        kind = view[at + 156]
        length = int(bytes(view[at + 124 : at + 136]).strip(b"\0 ") or b"0", 8)
        start = at + TAR_BLOCK_BYTES
        if length < 0:
            raise tarfile.ReadError(f"a size below zero at byte {at:,}")  # the walk would go back, and never end
        if not view[at] and not any(view[at : at + TAR_BLOCK_BYTES]):
            break  # two blocks of zeros end the file
        if start + length > size:
            raise _UnusualError
        headers.append(at)
        if kind in PLAIN:
            yield _Member(_member_name(view, at), start, length)
        elif kind != EXTENDED or IDLE_FACTS.fullmatch(view, start, start + length) is None:
            raise _UnusualError
        at = start + -(-length // TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES
    for first in range(0, len(headers), HEADERS_AT_ONCE):
        _check_sums(data, np.array(headers[first : first + HEADERS_AT_ONCE]))


def _member_name(view: memoryview, at: int) -> str:
    name = bytes(view[at : at + 100]).partition(b"\0")[0]
    if view[at + 345]:
        name = bytes(view[at + 345 : at + 500]).partition(b"\0")[0] + b"/" + name
    return name.decode("utf-8", "surrogateescape")


def _check_sums(data: Bytes, headers: Ints) -> None:
    """Raise _UnusualError unless the headers at these places have their checksums: of all bytes, its own as spaces."""
    blocks = data[: len(data) // TAR_BLOCK_BYTES * TAR_BLOCK_BYTES].reshape(-1, TAR_BLOCK_BYTES)[
        headers // TAR_BLOCK_BYTES
    ]
    stated = [int(field.tobytes().strip(b"\0 ") or b"0", 8) for field in blocks[:, 148:156]]
    blocks[:, 148:156] = ord(" ")
    if not np.array_equal(blocks.sum(axis=1, dtype=np.uint32), stated):
        raise _UnusualError


def _sample_of(name: str) -> tuple[str, str]:
    """Return the sample of a member and the rest of its name: up to the first dot of its file name."""
    folder, slash, file = name.rpartition("/")
    sample, _, rest = file.partition(".")
    return f"{folder}{slash}{sample}", rest


def _tar_pieces(file: Path, skipped: dict[str, None]) -> Iterator[list[dict[str, object]]]:
    samples: list[dict[str, object]] = []
    size, current = 0, ""
    with _opened_tar(file) as opened:
        data = mapped(opened, np.dtype(np.uint8), 0, opened.seek(0, 2))
        for member in _tar_members(opened):
            sample, rest = _sample_of(member.name)
            kind = rest.rpartition(".")[2].lower()
            if kind not in READ_MEMBERS or member.size > MAX_MEMBER:
                skipped.setdefault(kind)
                continue
            if sample != current and size > TAR_PIECE_BYTES:
                yield samples
                samples, size = [], 0
            if sample != current or not samples:
                samples.append({})
                current = sample
            size += member.size
            content = data[member.start : member.start + member.size]
            try:
                samples[-1] |= _decoded_member(content, rest, kind)
            except Exception as error:  # noqa: BLE001 - a hostile header makes NumPy raise anything
                raise InputError(
                    f"{shorten(str(file), 120)}: {shorten(member.name, 60)}: cannot be read "
                    f"({shorten(str(error), 100)}); write it again"
                ) from None
    if samples:
        yield samples


NPY_ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][iu][1248])', 'fortran_order': False, 'shape': \((\d{1,12}),\), \} *\n",
    re.DOTALL,
)
"""The header of an array of whole numbers with one dimension, as NumPy writes it
(https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html)."""
NPY_HEADER_BYTES = 128


def _decoded_member(content: Bytes, rest: str, kind: str) -> dict[str, object]:
    column = rest.removesuffix(f".{kind}") if rest != kind else kind
    if kind == "npy":
        return {"input_ids" if column == kind else column: _npy_array(content)}
    data = content.tobytes()
    if kind == "json":
        value = json.loads(data)
        if isinstance(value, dict):
            return value
        return {"input_ids" if column == kind else column: value}
    return {"text" if column == kind else column: data.decode("utf-8", "replace")}


def _npy_array(content: Bytes) -> npt.NDArray[np.generic]:
    usual = NPY_ARRAY.fullmatch(content[:NPY_HEADER_BYTES].data)
    if usual is None:
        return np.load(io.BytesIO(content.tobytes()), allow_pickle=False)  # type: ignore[no-any-return]
    return np.frombuffer(content, np.dtype(usual[1].decode()), int(usual[2]), NPY_HEADER_BYTES)


def _tar_columns(samples: list[dict[str, object]]) -> dict[str, Column]:
    columns = from_records(samples).columns
    return {name: _as_ragged(column) for name, column in columns.items()}


def _as_ragged(column: Column) -> Column:
    """Return arrays of whole numbers as rows; with samples that lack one, and other arrays, as lists."""
    if not isinstance(column, list):
        return column
    arrays = [
        array for array in column if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu"
    ]
    if arrays and len(arrays) == len(column):
        # Their headers state their byte order, so that every reader turns the ids round.
        flat = np.concatenate(arrays, dtype=np.result_type(*{array.dtype for array in arrays}).newbyteorder("="))
        return Ragged(flat, offsets_of(np.array([len(array) for array in arrays], np.int64)))
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in column]
