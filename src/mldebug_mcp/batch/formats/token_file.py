"""Raw token ids one after the other, as nanoGPT's prepare.py and llm.c write them; no ids of documents, no labels.

A row is a window of `WINDOW` tokens, on all of which the model is trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.batch.table import Table
from mldebug_mcp.core.access import is_file, is_folder, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "tokens"
WINDOW = 1024
CHUNK_WINDOWS = 4096
LOOKED_AT = 1 << 16
"""Bytes that are looked at to tell ids of two bytes from ids of four."""
MOST_UPPER = 8
"""Upper halves of ids of four bytes stay below this: no vocabulary in use has more than half a million tokens."""
LEAST_COMMONEST = 0.01
"""Share of the commonest id in the first bytes of a file. In text it is several in a hundred, in other binary data far
less. Chosen by hand."""
_MAGIC: dict[int, np.dtype[np.uint16] | np.dtype[np.uint32]] = {
    20240520: np.dtype(np.uint16),
    20240801: np.dtype(np.uint32),
}
"""The first number of llm.c's header of 256 numbers of four bytes, for GPT-2's and Llama 3's tokens."""
HEADER_BYTES = 1024


@dataclass(frozen=True, slots=True)
class _Layout:
    dtype: np.dtype[np.uint16] | np.dtype[np.uint32]
    header: int


def matches(path: Path, head: bytes) -> bool:
    """A file named .bin that no other format claims, and whose ids are as unevenly common as those of any text."""
    if is_folder(path) or path.suffix != ".bin":
        return False
    if len(head) >= 4 and int(np.frombuffer(head[:4], "<i4")[0]) in _MAGIC:
        return True
    ids = np.frombuffer(head[: len(head) // 2 * 2], "<u2")
    return len(ids) > 0 and int(np.bincount(ids).max()) >= LEAST_COMMONEST * len(ids)


def rows(path: Path) -> int:
    """Return how many windows there are."""
    with open_input(path) as file:
        layout = _layout(file, path)
        size = file.seek(0, 2) - layout.header
    return max(1, size // layout.dtype.itemsize // WINDOW)


def tables(path: Path) -> Iterator[Table]:
    """Yield the windows, some thousands at a time; the last tokens, fewer than a window, are left out."""
    with open_input(path) as file:
        layout = _layout(file, path)
        file.seek(layout.header)
        note = f"read as ids of {layout.dtype.itemsize} bytes without documents, in rows of {WINDOW} tokens"
        first = True
        while content := file.read(CHUNK_WINDOWS * WINDOW * layout.dtype.itemsize):
            ids = np.frombuffer(content[: len(content) // layout.dtype.itemsize * layout.dtype.itemsize], layout.dtype)
            width = min(WINDOW, len(ids)) if first else WINDOW
            whole = len(ids) // width * width if width else 0
            if whole:
                windows = Ragged.rectangle(ids[:whole].astype(np.int32).reshape(-1, width))
                yield Table({"input_ids": windows, "labels": windows}, notes=[note])
            first = False


def _layout(file: BinaryIO, path: Path) -> _Layout:
    name = shorten(str(path), 200)
    if is_file(path.with_suffix(".idx")):
        raise InputError(f"{name}: data of Megatron's, with an .idx beside it; save a batch that its loader yields")
    file.seek(0)
    head = file.read(LOOKED_AT)
    magic = int(np.frombuffer(head[:4], "<i4")[0]) if len(head) >= HEADER_BYTES else 0
    if magic in _MAGIC:
        return _Layout(_MAGIC[magic], HEADER_BYTES)
    halves: npt.NDArray[np.uint16] = np.frombuffer(head[: len(head) // 4 * 4], "<u2")
    wide = len(halves) >= 4 and int(halves[1::2].max()) < MOST_UPPER <= int(halves[::2].max())
    return _Layout(np.dtype(np.uint32) if wide else np.dtype(np.uint16), 0)
