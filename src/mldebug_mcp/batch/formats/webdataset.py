"""Tar files of WebDataset: the members with the same name up to their first dot are a sample.

Source: https://github.com/webdataset/webdataset (webdataset/tariterators.py, group_by_keys; autodecode.py)
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table, from_records
from mldebug_mcp.batch.formats.files import files_to_read, mapped
from mldebug_mcp.batch.formats.tf_example import Bytes
from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.core.access import is_folder, matching, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "webdataset"
MAGIC = b"ustar"
MAGIC_AT = 257
PIECE_BYTES = 64 * 1024**2
"""Bytes of members that one piece holds at least, unless the file ends before."""
MAX_MEMBER = 1024**3
READ = ("npy", "json", "txt")


def matches(path: Path, head: bytes) -> bool:
    """A tar file, or a folder of them."""
    if is_folder(path):
        return bool(matching(path, ".tar"))
    return head[MAGIC_AT : MAGIC_AT + len(MAGIC)] == MAGIC


def rows(path: Path) -> int:
    """Return how many samples there are."""
    count = 0
    for file in files_to_read(path, files_in):
        with _opened(file) as opened:
            count += len({_split(member.name)[0] for member in _members(opened)})
    return count


def tables(path: Path) -> Iterator[Table]:
    """Yield the samples, some megabytes at a time. Raises InputError if no member is one that can be read."""
    files = files_to_read(path, files_in)
    skipped: dict[str, None] = {}
    any_read = False
    for file in files:
        for samples in _pieces(file, skipped):
            any_read = True
            yield Table(_columns(samples), notes=["read as samples of WebDataset"], shard=file.name)
    if not any_read:
        kinds = ", ".join(f".{kind}" for kind in list(skipped)[:8]) or "none"
        raise InputError(
            f"{shorten(str(path), 200)}: a tar file without members of token ids or text ({kinds}); .npy, .json and "
            ".txt are read"
        )


def files_in(folder: Path) -> list[Path]:
    """Return the files of this format in a folder."""
    return matching(folder, ".tar")


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
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


BLOCK = 512
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


def _members(file: BinaryIO) -> Iterator[_Member]:
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
    if any(file.read(BLOCK)):  # tarfile takes a broken header for the end
        raise tarfile.ReadError(f"no header at byte {end:,}")


def _plain_members(file: BinaryIO) -> Iterator[_Member]:
    """Yield the members of a tar file of plain files alone. Raises _UnusualError or ValueError if it is another one."""
    size = file.seek(0, 2)
    data = mapped(file, np.dtype(np.uint8), 0, size)
    view, at, headers = data.data, 0, []
    while at + BLOCK <= size:
        kind = view[at + 156]
        length = int(bytes(view[at + 124 : at + 136]).strip(b"\0 ") or b"0", 8)
        start = at + BLOCK
        if length < 0:
            raise tarfile.ReadError(f"a size below zero at byte {at:,}")  # the walk would go back, and never end
        if not view[at] and not any(view[at : at + BLOCK]):
            break  # two blocks of zeros end the file
        if start + length > size:
            raise _UnusualError
        headers.append(at)
        if kind in PLAIN:
            yield _Member(_name(view, at), start, length)
        elif kind != EXTENDED or IDLE_FACTS.fullmatch(view, start, start + length) is None:
            raise _UnusualError
        at = start + -(-length // BLOCK) * BLOCK
    for first in range(0, len(headers), HEADERS_AT_ONCE):
        _check_sums(data, np.array(headers[first : first + HEADERS_AT_ONCE]))


def _name(view: memoryview, at: int) -> str:
    name = bytes(view[at : at + 100]).partition(b"\0")[0]
    if view[at + 345]:
        name = bytes(view[at + 345 : at + 500]).partition(b"\0")[0] + b"/" + name
    return name.decode("utf-8", "surrogateescape")


def _check_sums(data: Bytes, headers: Ints) -> None:
    """Raise _UnusualError unless the headers at these places have their checksums: of all bytes, its own as spaces."""
    blocks = data[: len(data) // BLOCK * BLOCK].reshape(-1, BLOCK)[headers // BLOCK]
    stated = [int(field.tobytes().strip(b"\0 ") or b"0", 8) for field in blocks[:, 148:156]]
    blocks[:, 148:156] = ord(" ")
    if not np.array_equal(blocks.sum(axis=1, dtype=np.uint32), stated):
        raise _UnusualError


def _split(name: str) -> tuple[str, str]:
    """Return the sample of a member and the rest of its name: up to the first dot of its file name."""
    folder, slash, file = name.rpartition("/")
    sample, _, rest = file.partition(".")
    return f"{folder}{slash}{sample}", rest


def _pieces(file: Path, skipped: dict[str, None]) -> Iterator[list[dict[str, object]]]:
    samples: list[dict[str, object]] = []
    size, current = 0, ""
    with _opened(file) as opened:
        data = mapped(opened, np.dtype(np.uint8), 0, opened.seek(0, 2))
        for member in _members(opened):
            sample, rest = _split(member.name)
            kind = rest.rpartition(".")[2].lower()
            if kind not in READ or member.size > MAX_MEMBER:
                skipped.setdefault(kind)
                continue
            if sample != current and size > PIECE_BYTES:
                yield samples
                samples, size = [], 0
            if sample != current or not samples:
                samples.append({})
                current = sample
            size += member.size
            content = data[member.start : member.start + member.size]
            try:
                samples[-1] |= _decoded(content, rest, kind)
            except Exception as error:  # noqa: BLE001 - a hostile header makes NumPy raise anything
                raise InputError(
                    f"{shorten(str(file), 120)}: {shorten(member.name, 60)}: cannot be read "
                    f"({shorten(str(error), 100)}); write it again"
                ) from None
    if samples:
        yield samples


ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][iu][1248])', 'fortran_order': False, 'shape': \((\d{1,12}),\), \} *\n",
    re.DOTALL,
)
"""The header of an array of whole numbers with one dimension, as NumPy writes it
(https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html)."""
HEADER_BYTES = 128


def _decoded(content: Bytes, rest: str, kind: str) -> dict[str, object]:
    column = rest.removesuffix(f".{kind}") if rest != kind else kind
    if kind == "npy":
        return {"input_ids" if column == kind else column: _array(content)}
    data = content.tobytes()
    if kind == "json":
        value = json.loads(data)
        if isinstance(value, dict):
            return value
        return {"input_ids" if column == kind else column: value}
    return {"text" if column == kind else column: data.decode("utf-8", "replace")}


def _array(content: Bytes) -> npt.NDArray[np.generic]:
    usual = ARRAY.fullmatch(content[:HEADER_BYTES].data)
    if usual is None:
        return np.load(io.BytesIO(content.tobytes()), allow_pickle=False)  # type: ignore[no-any-return]
    return np.frombuffer(content, np.dtype(usual[1].decode()), int(usual[2]), HEADER_BYTES)


def _columns(samples: list[dict[str, object]]) -> dict[str, Column]:
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
