"""Token files of datatrove: ids in a `.ds`, where each document ends in `.ds.index`, and their width in `.ds.metadata`.

Layout: https://github.com/huggingface/datatrove/blob/main/src/datatrove/pipeline/tokens/tokenizer.py (TokenizedFile)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table
from mldebug_mcp.batch.formats.files import mapped
from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.core.access import is_file, is_folder, open_input, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

NAME = "datatrove"
CHUNK_TOKENS = 8 * 1024 * 1024
"""Tokens that one piece holds at least, unless the corpus ends before."""
MAX_INDEX_BYTES = 1024**3
MAX_LOSS_BYTES = 8 * 1024**3
MAX_METADATA_BYTES = 64 * 1024
_WIDTHS: Mapping[int, np.dtype[np.integer]] = {2: np.dtype("<u2"), 4: np.dtype("<u4")}


def matches(path: Path, head: bytes) -> bool:
    """A `.ds` with its index next to it."""
    del head
    return path.suffix == ".ds" and not is_folder(path) and is_file(_index_of(path))


def rows(path: Path) -> int:
    """Return how many documents the index lists."""
    return len(_ends(path))


def tables(path: Path) -> Iterator[Table]:
    """Yield the documents, some millions of tokens at a time. Raises InputError if the files contradict."""
    ends, width = _ends(path), _stated_width(path)
    name = shorten(str(path), 200)
    with open_input(path) as file:
        size = file.seek(0, 2)
        tokens = int(ends[-1]) if len(ends) else 0
        fitting = [bytes_ for bytes_ in _WIDTHS if bytes_ * tokens == size]
        if not fitting or width not in {None, *fitting}:
            raise InputError(
                f"{name}: its index ends at token {tokens:,}, but it holds {size:,} bytes"
                f"{'' if width is None else f', of {width} bytes each by its metadata'}; write the files again"
            )
        dtype: np.dtype[np.integer] = _WIDTHS[fitting[0]]
        note = f"read as {dtype.name} ids of {counted(len(ends), 'document')}, as size and index state"
        mask = _loss_mask(path, tokens)
        first = 0
        while first < len(ends):
            start = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, start + CHUNK_TOKENS)))
            lengths = np.diff(ends[first:last], prepend=start)
            ids = mapped(file, dtype, start * dtype.itemsize, int(lengths.sum()))
            documents = Ragged(ids, offsets_of(lengths))
            trained: dict[str, Column] = {"labels": documents}
            if mask is not None:
                trained = {"loss_mask": Ragged(mask[start : start + len(ids)], documents.offsets)}
            yield Table({"input_ids": documents, **trained}, notes=[note], padded=False)
            first = last


def _index_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def _ends(path: Path) -> Ints:
    content = read_bytes(_index_of(path), MAX_INDEX_BYTES)
    ends = np.frombuffer(content[: len(content) // 8 * 8], "<i8").astype(np.int64)
    if len(content) % 8 or np.any(np.diff(ends, prepend=0) < 0):
        raise InputError(f"{shorten(str(_index_of(path)), 200)}: not rising numbers of 8 bytes; write the index again")
    return ends


def _loss_mask(path: Path, tokens: int) -> npt.NDArray[np.uint8] | None:
    """Return which tokens are trained on, where a `.ds.loss` says it with a byte for each; None without it."""
    loss = path.with_name(f"{path.name}.loss")
    if not is_file(loss):
        return None
    mask = np.frombuffer(read_bytes(loss, MAX_LOSS_BYTES), np.uint8)
    if len(mask) != tokens:
        raise InputError(
            f"{shorten(str(loss), 200)}: it holds {len(mask):,} bytes for {tokens:,} tokens; write the files again"
        )
    return mask


def _stated_width(path: Path) -> int | None:
    """Return the bytes of a token by the metadata, whose first line ends in `|2` or `|4`; None without it."""
    metadata = path.with_name(f"{path.name}.metadata")
    if not is_file(metadata):
        return None
    first_line = read_bytes(metadata, MAX_METADATA_BYTES).split(b"\n", 1)[0]
    width = first_line.rpartition(b"|")[2]
    return int(width) if width in {b"2", b"4"} else None
