"""Tar files of WebDataset: the members with the same name up to their first dot are a sample.

Source: https://github.com/webdataset/webdataset (webdataset/tariterators.py, group_by_keys; autodecode.py)
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mldebug_mcp.batch.formats.splits import without_held_out
from mldebug_mcp.batch.sequences import Ragged, offsets_of
from mldebug_mcp.batch.table import Column, Table, from_records
from mldebug_mcp.core.access import is_folder, matching, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "webdataset"
MAGIC, MAGIC_AT = b"ustar", 257
CHUNK_BYTES = 64 * 1024**2
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
    for file in _files(path):
        with _opened(file) as archive:
            count += len({_split(member.name)[0] for member in archive if member.isfile()})
    return count


def tables(path: Path) -> Iterator[Table]:
    """Yield the samples, some megabytes at a time. Raises InputError if no member is one that can be read."""
    files = _files(path)
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


def _files(path: Path) -> list[Path]:
    return without_held_out(files_in(path)) if is_folder(path) else [path]


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with open_input(file) as opened, tarfile.open(fileobj=opened, mode="r:") as archive:
            yield archive
    except tarfile.TarError as error:
        problem = shorten(str(error), 120)
        raise InputError(f"{shorten(str(file), 200)}: a broken tar file ({problem}); write it again") from None


def _split(name: str) -> tuple[str, str]:
    """Return the sample of a member and the rest of its name: up to the first dot of its file name."""
    folder, slash, file = name.rpartition("/")
    sample, _, rest = file.partition(".")
    return f"{folder}{slash}{sample}", rest


def _pieces(file: Path, skipped: dict[str, None]) -> Iterator[list[dict[str, object]]]:
    samples: list[dict[str, object]] = []
    size, current = 0, ""
    with _opened(file) as archive:
        for member in archive:
            sample, rest = _split(member.name)
            kind = rest.rpartition(".")[2].lower()
            if not member.isfile() or member.issparse() or kind not in READ or member.size > MAX_MEMBER:
                skipped.setdefault(kind)
                continue
            if sample != current and size > CHUNK_BYTES:
                yield samples
                samples, size = [], 0
            if sample != current or not samples:
                samples.append({})
                current = sample
            content = archive.extractfile(member)
            data = b"" if content is None else content.read()
            size += len(data)
            samples[-1] |= _decoded(data, rest, kind, f"{shorten(str(file), 120)}: {shorten(member.name, 60)}")
    if samples:
        yield samples


def _decoded(data: bytes, rest: str, kind: str, name: str) -> dict[str, object]:
    column = rest.removesuffix(f".{kind}") if rest != kind else kind
    try:
        if kind == "npy":
            return {"input_ids" if column == kind else column: np.load(io.BytesIO(data), allow_pickle=False)}
        if kind == "json":
            value = json.loads(data)
            if isinstance(value, dict):
                return value
            return {"input_ids" if column == kind else column: value}
    except Exception as error:  # noqa: BLE001 - a hostile header makes NumPy raise anything, down to errors of syntax
        raise InputError(f"{name}: cannot be read ({shorten(str(error), 100)}); write it again") from None
    return {"text" if column == kind else column: data.decode("utf-8", "replace")}


def _columns(samples: list[dict[str, object]]) -> dict[str, Column]:
    columns = from_records(samples).columns
    return {name: _as_ragged(column) for name, column in columns.items()}


def _as_ragged(column: Column) -> Column:
    if not isinstance(column, list):
        return column
    arrays = [one for one in column if isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "iu"]
    if arrays and len(arrays) == len(column):
        return Ragged(np.concatenate(arrays), offsets_of(np.array([len(array) for array in arrays], np.int64)))
    return column
