"""Megatron's tokenized corpora: token ids in a `.bin`, and where each sequence lies in the `.idx` next to it.

Layout: https://github.com/NVIDIA/Megatron-LM/blob/core_v0.16.1/megatron/core/datasets/indexed_dataset.py
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mldebug_mcp.batch.columns import Table
from mldebug_mcp.batch.formats.files import mapped
from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.core.access import is_file, is_folder, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

NAME = "megatron"
MAGIC = b"MMIDIDX\x00\x00"
_HEADER = struct.Struct("<9sQBQQ")
_DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""The index's codes of the integer types of tokens."""
CHUNK_TOKENS = 8 * 1024 * 1024
"""Tokens that one piece holds at least, unless the corpus ends before."""


@dataclass(frozen=True, slots=True)
class _Index:
    dtype: np.dtype[np.integer]
    sequences: int
    lengths: Ints
    """Tokens of each document: of its sequences together."""


def matches(path: Path, head: bytes) -> bool:
    """An index, or the `.bin` next to one."""
    if is_folder(path):
        return False
    return head.startswith(MAGIC) or (path.suffix == ".bin" and is_file(path.with_suffix(".idx")))


def rows(path: Path) -> int:
    """Return how many documents the index lists."""
    return len(_index(path).lengths)


def tables(path: Path) -> Iterator[Table]:
    """Yield the documents, some millions of tokens at a time. Raises InputError if the two files contradict."""
    index, data = _index(path), path.with_suffix(".bin")
    name = shorten(str(data), 200)
    if not is_file(data):
        raise InputError(f"{name}: this file is missing next to its index; copy both files into one folder")
    promised = int(index.lengths.sum()) * index.dtype.itemsize
    with open_input(data) as file:
        there = file.seek(0, 2)
        if there != promised:
            raise InputError(
                f"{name}: it holds {there:,} bytes, but its index promises {promised:,}; write both files again"
            )
        ends = np.cumsum(index.lengths)
        first = 0
        while first < len(ends):
            start = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, start + CHUNK_TOKENS)))
            lengths = index.lengths[first:last]
            ids = mapped(file, index.dtype, start * index.dtype.itemsize, int(lengths.sum()))
            documents = Ragged(ids, offsets_of(lengths))
            sequences = f" in {index.sequences:,} sequences" * (index.sequences != len(ends))
            note = f"read as {index.dtype.name} ids of {counted(len(ends), 'document')}{sequences}, as the index states"
            yield Table({"input_ids": documents, "labels": documents}, notes=[note], padded=False)
            first = last


def _index(path: Path) -> _Index:
    index = path.with_suffix(".idx")
    name = shorten(str(index), 200)
    with open_input(index) as file:
        size = file.seek(0, 2)
        file.seek(0)
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size or not head.startswith(MAGIC):
            raise InputError(f"{name}: not an index of Megatron, or cut off; preprocess the data again")
        _, version, code, sequences, documents = _HEADER.unpack(head)
        if version != 1 or code not in _DTYPES:
            raise InputError(
                f"{name}: version {version} and type code {code} of Megatron's index are not those of token ids; "
                "preprocess the data again"
            )
        needed = _HEADER.size + sequences * 12 + documents * 8
        if size < needed:
            raise InputError(f"{name}: it holds {size:,} of at least {needed:,} bytes; copy the index again")
        lengths = np.frombuffer(file.read(sequences * 4), "<i4").astype(np.int64)
        file.seek(sequences * 8, 1)
        firsts = np.frombuffer(file.read(documents * 8), "<i8").astype(np.int64)
    if sequences and int(lengths.min()) < 0:
        raise InputError(f"{name}: it lists a sequence of negative length; preprocess the data again")
    if not len(firsts) or firsts[0] != 0 or firsts[-1] != sequences or np.any(np.diff(firsts) < 0):
        raise InputError(
            f"{name}: its documents do not begin at sequences from 0 to {sequences:,}; preprocess the data again"
        )
    starts = offsets_of(lengths)
    return _Index(np.dtype(_DTYPES[code]), sequences, np.diff(starts[firsts]))
