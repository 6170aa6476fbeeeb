"""Raw token ids one after the other, as nanoGPT's prepare.py and llm.c write them; no ids of documents, no labels.

A row is a window of `WINDOW` tokens; the model is trained on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table
from mldebug_mcp.batch.formats.files import mapped
from mldebug_mcp.batch.sequences import Ragged
from mldebug_mcp.core.access import is_folder, open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "tokens"
ENDINGS = (".bin", ".npy")
DTYPES = ("uint8", "uint16", "int16", "uint32", "int32", "uint64", "int64", ">u2", ">u4", ">i4", ">u8", ">i8")
"""Types of ids that can be stated; those with > have the most significant byte first."""
STATED = "as you state"
"""Evidence of a type that the user states."""
WINDOW = 1024
CHUNK_WINDOWS = 8192
MAX_BYTES_FOR_WIDTH = 1 << 16
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
EVALUATION_MAGIC = 20240522
"""The first number of llm.c's evaluation files (dev/data/data_common.py, write_evalfile)."""
MOST_TEXT = 0.95
"""Share of printable bytes above which a file is text, not ids. Chosen by hand."""


LEAST_BITS = 0.5
"""Bits of entropy by which the more significant byte of ids varies less than the other. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class _Layout:
    dtype: np.dtype[np.integer]
    header: int
    evidence: str


def matches(path: Path, head: bytes) -> bool:
    """A file named .bin, or .npy without NumPy's header as OLMo writes it, that no other format claims.

    Its ids are as unevenly common as those of any text.
    """
    if is_folder(path) or path.suffix not in ENDINGS:
        return False
    if len(head) >= 4 and int(np.frombuffer(head[:4], "<i4")[0]) in (*_MAGIC, EVALUATION_MAGIC):
        return True
    if _is_text(head) or _has_offsets(head):
        return False
    ids = np.frombuffer(head[: len(head) // 2 * 2], "<u2")
    return len(ids) > 0 and int(np.bincount(ids).max()) >= LEAST_COMMONEST * len(ids)


def rows(path: Path, dtype: str = "", evidence: str = STATED) -> int:
    """Return how many windows there are; `dtype` is one of `DTYPES` that the user states."""
    with open_input(path) as file:
        layout = _layout(file, path, dtype, evidence)
        size = file.seek(0, 2) - layout.header
    return max(1, size // layout.dtype.itemsize // WINDOW)


def tables(path: Path, dtype: str = "", evidence: str = STATED) -> Iterator[Table]:
    """Yield the windows, some thousands at a time; the last tokens, fewer than a window, are their tail."""
    with open_input(path) as file:
        layout = _layout(file, path, dtype, evidence)
        width, size = layout.dtype.itemsize, file.seek(0, 2) - layout.header
        note = f"read as ids of {width} bytes ({layout.evidence}) without documents, in rows of {WINDOW} tokens"
        pieces = pieces_of_stream(file, layout.dtype, layout.header, size // width)
        for ids, is_last in pieces:
            yield table_of_stream(ids, note, size % width if is_last else 0)


def pieces_of_stream(
    file: BinaryIO, dtype: np.dtype[np.integer], start: int, tokens: int
) -> Iterator[tuple[npt.NDArray[np.integer], bool]]:
    """Yield the tokens of a file from a byte on, some millions at a time, and whether they are the last ones."""
    left = tokens
    while left:
        count = min(left, CHUNK_WINDOWS * WINDOW)
        count = left if left - count < WINDOW else count
        ids = mapped(file, dtype, start + (tokens - left) * dtype.itemsize, count)
        left = left - count if len(ids) == count else 0
        if len(ids):
            yield ids, not left


def table_of_stream(ids: npt.NDArray[np.integer], note: str, cut_off: int = 0) -> Table:
    """Return a piece of a stream of tokens as windows and a tail; fewer than a window are one row.

    `note` says how they were read; `cut_off` are bytes behind the last whole token.
    """
    windows = max(1, len(ids) // WINDOW)
    width = min(len(ids), WINDOW)
    rows = Ragged.rectangle(ids[: windows * width].reshape(windows, width))
    columns: dict[str, Column] = {"input_ids": rows, "labels": rows}
    return Table(columns, notes=[note], stream=ids, padded=False, tail=ids[windows * width :], cut_off=cut_off)


def inferred_type(path: Path) -> tuple[str, str]:
    """Return the type of the ids of a file, as numpy names it, and what shows it."""
    with open_input(path) as file:
        layout = _layout(file, path, "", "")
    return layout.dtype.str, layout.evidence


def has_header(path: Path) -> bool:
    """Return whether a file begins with the header of llm.c."""
    with open_input(path) as file:
        return int.from_bytes(file.read(4), "little") in _MAGIC


def _is_text(head: bytes) -> bool:
    printable = np.isin(np.frombuffer(head, np.uint8), [9, 10, 13, *range(32, 127)])
    return bool(printable.mean() > MOST_TEXT)


def _has_offsets(head: bytes) -> bool:
    """Say whether a file begins with a count and so many rising offsets: a chunk of LitData or a shard of MDS.

    Sources: litdata/streaming/writer.py (_create_chunk: the first offset is where the offsets end) and
    streaming/base/format/mds/writer.py (encode_joint_shard: JSON lies between the offsets and the first sample).
    """
    if head.startswith(b"LDFZ01"):  # litdata/streaming/framed_zstd.py
        return True
    numbers: npt.NDArray[np.uint32] = np.frombuffer(head[: len(head) // 4 * 4], "<u4")
    if len(numbers) < 3:
        return False
    count, after = int(numbers[0]), 4 * (int(numbers[0]) + 2)
    offsets = numbers[1 : count + 2].astype(np.int64)
    if not np.all(np.diff(offsets) >= 0):
        return False
    follows = head[after : after + 2]
    return int(offsets[0]) == after or (int(offsets[0]) > after and follows in (b'{"', b""))


def _layout(file: BinaryIO, path: Path, dtype: str, evidence: str) -> _Layout:
    name = shorten(str(path), 200)
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(MAX_BYTES_FOR_WIDTH)
    magic = int(np.frombuffer(head[:4], "<i4")[0]) if len(head) >= HEADER_BYTES else 0
    if magic == EVALUATION_MAGIC:
        raise InputError(f"{name}: an evaluation file of llm.c (multiple choice), not training text; name its .bin")
    if magic in _MAGIC:
        return _of_header(head, size, name)
    if dtype:
        return _Layout(np.dtype(dtype), 0, evidence)
    return _of_order(head, "<", "") or _of_order(head, ">", "most significant byte first, ") or _of_two_bytes(head)


def _of_order(head: bytes, order: Literal["<", ">"], stated: str) -> _Layout | None:
    """Return the layout if the upper half of 4 or 8 bytes in this byte order is empty, as that of any vocabulary is."""
    quarters: npt.NDArray[np.uint16] = np.frombuffer(head[: len(head) // 8 * 8], f"{order}u2").reshape(-1, 4)
    ranked = quarters if order == "<" else quarters[:, ::-1]
    if len(ranked) and int(ranked[:, 1].max()) < MOST_UPPER and not ranked[:, 2:].any():
        return _Layout(np.dtype(f"{order}i8"), 0, f"inferred: {stated}the upper half of all 8 bytes is 0")
    pairs = quarters.reshape(-1, 2)
    upper, lower = (pairs[:, 1], pairs[:, 0]) if order == "<" else (pairs[:, 0], pairs[:, 1])
    if len(pairs) >= 2 and int(upper.max()) < MOST_UPPER <= int(lower.max()):
        return _Layout(np.dtype(f"{order}u4"), 0, f"inferred: {stated}every second half is below {MOST_UPPER}")
    return None


def _of_two_bytes(head: bytes) -> _Layout:
    """Return ids of two bytes; the byte that varies less is the more significant one, as common ids are small."""
    pairs = np.frombuffer(head[: len(head) // 2 * 2], np.uint8).reshape(-1, 2)
    first, second = _entropy(pairs[:, 0]), _entropy(pairs[:, 1])
    if first + LEAST_BITS < second:
        return _Layout(
            np.dtype(">u2"),
            0,
            f"inferred: most significant byte first, as the first of two bytes holds {first:.1f} bits and the second "
            f"{second:.1f}; most trainers read the other order",
        )
    return _Layout(np.dtype("<u2"), 0, "inferred: neither 4 nor 8 bytes have an empty upper half")


def _entropy(values: npt.NDArray[np.uint8]) -> float:
    """Return the entropy of bytes in bits."""
    counts = np.bincount(values, minlength=1)
    shares = counts[counts > 0] / max(len(values), 1)
    return float(-(shares * np.log2(shares)).sum())


def _of_header(head: bytes, size: int, name: str) -> _Layout:
    """Return the layout that llm.c's header states. Raises InputError if it promises more tokens than are there."""
    magic, _, promised = np.frombuffer(head[:12], "<i4").tolist()
    dtype = _MAGIC[magic]
    there = (size - HEADER_BYTES) // dtype.itemsize
    if not 0 <= promised <= there:
        raise InputError(
            f"{name}: its header promises {promised:,} tokens, but {there:,} are there; copy or write the file again"
        )
    fewer = f", which promises {promised:,} of the {there:,} tokens" if promised < there else ""
    return _Layout(dtype, HEADER_BYTES, f"stated by llm.c's header{fewer}")
