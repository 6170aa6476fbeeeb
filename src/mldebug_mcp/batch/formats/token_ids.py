"""Corpora of token ids: raw ones, with the indexes of Megatron and datatrove, and folders of such shards."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table
from mldebug_mcp.batch.formats.files import (
    STREAM_ROW_TOKENS,
    Format,
    mapped,
    pieces_of_stream,
    table_of_stream,
    without_held_out,
)
from mldebug_mcp.batch.formats.tensors import NPZ
from mldebug_mcp.batch.sequences import Ints, Ragged, offsets_of
from mldebug_mcp.core.access import is_file, is_folder, matching, open_input, read_bytes
from mldebug_mcp.core.arrays import entropy
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

TOKEN_ENDINGS = (".bin", ".npy")
DTYPES = ("uint8", "uint16", "int16", "uint32", "int32", "uint64", "int64", ">u2", ">u4", ">i4", ">u8", ">i8")
"""Types of ids that can be stated; those with > have the most significant byte first."""
STATED = "as you state"
"""Evidence of a type that the user states."""
MAX_BYTES_FOR_WIDTH = 1 << 16
"""Bytes that are looked at to tell ids of two bytes from ids of four."""
MOST_UPPER = 8
"""Upper halves of ids of four bytes stay below this: no vocabulary in use has more than half a million tokens."""
LEAST_COMMONEST = 0.01
"""Share of the commonest id in the first bytes of a file. In text it is several in a hundred, in other binary data far
less. Chosen by hand."""
_LLMC_MAGIC: dict[int, np.dtype[np.uint16] | np.dtype[np.uint32]] = {
    20240520: np.dtype(np.uint16),
    20240801: np.dtype(np.uint32),
}
"""The first number of llm.c's header of 256 numbers of four bytes, for GPT-2's and Llama 3's tokens."""
LLMC_HEADER_BYTES = 1024
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


def _token_matches(path: Path, head: bytes) -> bool:
    """A file named .bin, or .npy without NumPy's header as OLMo writes it, that no other format claims.

    Its ids are as unevenly common as those of any text.
    """
    if is_folder(path) or path.suffix not in TOKEN_ENDINGS:
        return False
    if len(head) >= 4 and int(np.frombuffer(head[:4], "<i4")[0]) in (*_LLMC_MAGIC, EVALUATION_MAGIC):
        return True
    if _is_text(head) or _has_offsets(head):
        return False
    ids = np.frombuffer(head[: len(head) // 2 * 2], "<u2")
    return len(ids) > 0 and int(np.bincount(ids).max()) >= LEAST_COMMONEST * len(ids)


def _token_rows(path: Path, dtype: str = "", evidence: str = STATED) -> int:
    with open_input(path) as file:
        layout = _layout(file, path, dtype, evidence)
        size = file.seek(0, 2) - layout.header
    return max(1, size // layout.dtype.itemsize // STREAM_ROW_TOKENS)


def _token_tables(path: Path, dtype: str = "", evidence: str = STATED) -> Iterator[Table]:
    """Yield the windows, some thousands at a time; the last tokens, fewer than a window, are their tail."""
    with open_input(path) as file:
        layout = _layout(file, path, dtype, evidence)
        width, size = layout.dtype.itemsize, file.seek(0, 2) - layout.header
        rows = f"without documents, in rows of {STREAM_ROW_TOKENS} tokens"
        note = f"read as ids of {width} bytes ({layout.evidence}) {rows}"
        pieces = pieces_of_stream(file, layout.dtype, layout.header, size // width)
        for ids, is_last in pieces:
            yield table_of_stream(ids, note, size % width if is_last else 0)


TOKENS = Format("tokens", _token_matches, _token_tables, _token_rows)
"""Raw token ids one after the other, as nanoGPT's prepare.py and llm.c write them; no ids of documents, no labels.

A row is a window of `STREAM_ROW_TOKENS` tokens; the model is trained on all of them.
"""


def tokens_of(dtype: str, evidence: str = STATED) -> Format:
    """Return the format of raw token ids of a type, one of `DTYPES`, that the user states, or other evidence."""
    rows = partial(_token_rows, dtype=dtype, evidence=evidence)
    return TOKENS._replace(rows=rows, tables=partial(_token_tables, dtype=dtype, evidence=evidence))


def inferred_type(path: Path) -> tuple[str, str]:
    """Return the type of the ids of a file, as numpy names it, and what shows it."""
    with open_input(path) as file:
        layout = _layout(file, path, "", "")
    return layout.dtype.str, layout.evidence


def has_header(path: Path) -> bool:
    """Return whether a file begins with the header of llm.c."""
    with open_input(path) as file:
        return int.from_bytes(file.read(4), "little") in _LLMC_MAGIC


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
    magic = int(np.frombuffer(head[:4], "<i4")[0]) if len(head) >= LLMC_HEADER_BYTES else 0
    if magic == EVALUATION_MAGIC:
        raise InputError(f"{name}: an evaluation file of llm.c (multiple choice), not training text; name its .bin")
    if magic in _LLMC_MAGIC:
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
    first, second = (entropy(np.bincount(pairs[:, side]), max(1, len(pairs))) for side in (0, 1))
    if first + LEAST_BITS < second:
        return _Layout(
            np.dtype(">u2"),
            0,
            f"inferred: most significant byte first, as the first of two bytes holds {first:.1f} bits and the second "
            f"{second:.1f}; most trainers read the other order",
        )
    return _Layout(np.dtype("<u2"), 0, "inferred: neither 4 nor 8 bytes have an empty upper half")


def _of_header(head: bytes, size: int, name: str) -> _Layout:
    """Return the layout that llm.c's header states. Raises InputError if it promises more tokens than are there."""
    magic, _, promised = np.frombuffer(head[:12], "<i4").tolist()
    dtype = _LLMC_MAGIC[magic]
    there = (size - LLMC_HEADER_BYTES) // dtype.itemsize
    if not 0 <= promised <= there:
        raise InputError(
            f"{name}: its header promises {promised:,} tokens, but {there:,} are there; copy or write the file again"
        )
    fewer = f", which promises {promised:,} of the {there:,} tokens" if promised < there else ""
    return _Layout(dtype, LLMC_HEADER_BYTES, f"stated by llm.c's header{fewer}")


MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
_MEGATRON_HEADER = struct.Struct("<9sQBQQ")
_MEGATRON_DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""The index's codes of the integer types of tokens."""
CHUNK_TOKENS = 8 * 1024 * 1024
"""Tokens that one piece holds at least, unless the corpus ends before."""


@dataclass(frozen=True, slots=True)
class _MegatronIndex:
    dtype: np.dtype[np.integer]
    sequences: int
    offsets: Ints
    """Tokens before each document, and of all together."""


def _pieces_of_documents(file: BinaryIO, dtype: np.dtype[np.integer], offsets: Ints) -> Iterator[tuple[int, Ragged]]:
    """Yield the documents of a file, some millions of tokens at a time, each piece with the tokens before it.

    The offsets are the tokens before each document, and of all together.
    """
    first = 0
    while first < len(offsets) - 1:
        start = int(offsets[first])
        last = max(first + 1, int(np.searchsorted(offsets[1:], start + CHUNK_TOKENS)))
        ids = mapped(file, dtype, start * dtype.itemsize, int(offsets[last]) - start)
        yield start, Ragged(ids, offsets[first : last + 1] - start)
        first = last


def _megatron_matches(path: Path, head: bytes) -> bool:
    """An index, or the `.bin` next to one."""
    if is_folder(path):
        return False
    return head.startswith(MEGATRON_MAGIC) or (path.suffix == ".bin" and is_file(path.with_suffix(".idx")))


def _megatron_tables(path: Path) -> Iterator[Table]:
    """Yield the documents, some millions of tokens at a time. Raises InputError if the two files contradict."""
    index, data = _megatron_index(path), path.with_suffix(".bin")
    name = shorten(str(data), 200)
    if not is_file(data):
        raise InputError(f"{name}: this file is missing next to its index; copy both files into one folder")
    documents, promised = len(index.offsets) - 1, int(index.offsets[-1]) * index.dtype.itemsize
    with open_input(data) as file:
        there = file.seek(0, 2)
        if there != promised:
            raise InputError(
                f"{name}: it holds {there:,} bytes, but its index promises {promised:,}; write both files again"
            )
        sequences = f" in {index.sequences:,} sequences" * (index.sequences != documents)
        listed = f"{counted(documents, 'document')}{sequences}"
        note = f"read as {index.dtype.name} ids of {listed}, as the index states"
        for _, rows in _pieces_of_documents(file, index.dtype, index.offsets):
            yield Table({"input_ids": rows, "labels": rows}, notes=[note], padded=False)


MEGATRON = Format("megatron", _megatron_matches, _megatron_tables, lambda path: len(_megatron_index(path).offsets) - 1)
"""Megatron's tokenized corpora: token ids in a `.bin`, and where each sequence lies in the `.idx` next to it.

Layout: https://github.com/NVIDIA/Megatron-LM/blob/core_v0.16.1/megatron/core/datasets/indexed_dataset.py
"""


def _megatron_index(path: Path) -> _MegatronIndex:
    index = path.with_suffix(".idx")
    name = shorten(str(index), 200)
    with open_input(index) as file:
        size = file.seek(0, 2)
        file.seek(0)
        head = file.read(_MEGATRON_HEADER.size)
        if len(head) < _MEGATRON_HEADER.size or not head.startswith(MEGATRON_MAGIC):
            raise InputError(f"{name}: not an index of Megatron, or cut off; preprocess the data again")
        _, version, code, sequences, documents = _MEGATRON_HEADER.unpack(head)
        if version != 1 or code not in _MEGATRON_DTYPES:
            raise InputError(
                f"{name}: version {version} and type code {code} of Megatron's index are not those of token ids; "
                "preprocess the data again"
            )
        needed = _MEGATRON_HEADER.size + sequences * 12 + documents * 8
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
    return _MegatronIndex(np.dtype(_MEGATRON_DTYPES[code]), sequences, offsets_of(lengths)[firsts])


MAX_INDEX_BYTES = 1024**3
MAX_LOSS_BYTES = 8 * 1024**3
MAX_METADATA_BYTES = 64 * 1024
_DATATROVE_WIDTHS: Mapping[int, np.dtype[np.integer]] = {2: np.dtype("<u2"), 4: np.dtype("<u4")}


def _datatrove_matches(path: Path, _: bytes) -> bool:
    """A `.ds` with its index next to it."""
    return path.suffix == ".ds" and not is_folder(path) and is_file(_index_of(path))


def _datatrove_tables(path: Path) -> Iterator[Table]:
    """Yield the documents, some millions of tokens at a time. Raises InputError if the files contradict."""
    offsets, width = _document_offsets(path), _stated_width(path)
    name = shorten(str(path), 200)
    with open_input(path) as file:
        size = file.seek(0, 2)
        tokens = int(offsets[-1])
        fitting = [bytes_ for bytes_ in _DATATROVE_WIDTHS if bytes_ * tokens == size]
        if not fitting or width not in {None, *fitting}:
            raise InputError(
                f"{name}: its index ends at token {tokens:,}, but it holds {size:,} bytes"
                f"{'' if width is None else f', of {width} bytes each by its metadata'}; write the files again"
            )
        dtype: np.dtype[np.integer] = _DATATROVE_WIDTHS[fitting[0]]
        note = f"read as {dtype.name} ids of {counted(len(offsets) - 1, 'document')}, as size and index state"
        mask = _loss_mask(path, tokens)
        for start, rows in _pieces_of_documents(file, dtype, offsets):
            trained: dict[str, Column] = {"labels": rows}
            if mask is not None:
                trained = {"loss_mask": Ragged(mask[start : start + len(rows.flat)], rows.offsets)}
            yield Table({"input_ids": rows, **trained}, notes=[note], padded=False)


DATATROVE = Format("datatrove", _datatrove_matches, _datatrove_tables, lambda path: len(_document_offsets(path)) - 1)
"""Token files of datatrove: ids in a `.ds`, ends of documents in `.ds.index`, the width of ids in `.ds.metadata`.

Layout: TokenizedFile in
https://github.com/huggingface/datatrove/blob/main/src/datatrove/pipeline/tokens/tokenizer.py
"""


def _index_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def _document_offsets(path: Path) -> Ints:
    """Return the tokens before each document, and of all together."""
    content = read_bytes(_index_of(path), MAX_INDEX_BYTES)
    offsets = np.append(0, np.frombuffer(content[: len(content) // 8 * 8], "<i8")).astype(np.int64)
    if len(content) % 8 or np.any(np.diff(offsets) < 0):
        raise InputError(f"{shorten(str(_index_of(path)), 200)}: not rising numbers of 8 bytes; write the index again")
    return offsets


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


SHARD_ENDINGS = (".bin", ".ds", ".npy")
HEAD_BYTES = 4096
_SHARD_FORMATS = (NPZ, MEGATRON, DATATROVE, TOKENS)


def _shards_matches(path: Path, _: bytes) -> bool:
    """A folder whose files of token ids have one ending, and the first of them a format that is known."""
    files = _shards_to_read(path) if is_folder(path) else []
    return bool(files) and _shard_format(files[0]) is not None


def _shards_rows(path: Path, dtype: str = "") -> int | None:
    """Return how many rows there are, or None where the shards are arrays, which tell it when they are read."""
    files = _shards_to_read(path)
    found = _of_stated_type(_known_format(files[0], dtype), files, dtype, path)
    return None if found is NPZ else sum(found.rows(file) or 0 for file in files)


def _shards_tables(path: Path, dtype: str = "") -> Iterator[Table]:
    """Yield the content of the shards in the order of their names. Raises InputError if one has another format."""
    files = _shards_to_read(path)
    found = _known_format(files[0], dtype)
    read_as = _of_stated_type(found, files, dtype, path)
    _check_indexes(path)
    looks = _unlike(files) if found is TOKENS and not dtype else []
    looks += _without_header(files) if found is TOKENS else []
    note = f"read as one corpus of {counted(len(files), 'shard')} ({found.name})"
    for file in files:
        other = _known_format(file, dtype)
        if other is not found:
            raise InputError(
                f"{shorten(str(file), 200)}: its format is {other.name}, that of the shards before it "
                f"{found.name}; give shards of one format as one folder"
            )
        for table in read_as.tables(file):
            yield replace(table, notes=[note, *looks, *table.notes], shard=file.name)


def _shards_in(folder: Path) -> list[Path]:
    """Return the shards in a folder; none if it holds files of several endings."""
    found = [files for ending in SHARD_ENDINGS if (files := matching(folder, ending))]
    return found[0] if len(found) == 1 else []


SHARDS = Format("shards", _shards_matches, _shards_tables, _shards_rows, (*SHARD_ENDINGS, ".idx"), _shards_in)
"""A folder of shards of token ids, all of one format: Megatron's, datatrove's, NumPy's or raw `.bin` files."""


def shards_of(dtype: str) -> Format:
    """Return the format of shards of raw ids of a stated type, one of `DTYPES`."""
    return SHARDS._replace(rows=partial(_shards_rows, dtype=dtype), tables=partial(_shards_tables, dtype=dtype))


def _shards_to_read(folder: Path) -> list[Path]:
    return without_held_out(_shards_in(folder))


def _size(file: Path) -> int:
    with open_input(file) as opened:
        return opened.seek(0, 2)


def _unlike(files: Sequence[Path]) -> list[str]:
    """Return the note that some shards of raw ids look like another type than the one with which all are read."""
    dtype, _ = _shown_type(files)
    others = {file.name: shown for file in files if (shown := inferred_type(file)[0]) != dtype}
    if not others:
        return []
    name, shown = next(iter(others.items()))
    return [
        f"{counted(len(others), 'shard')} of {len(files)} alone would be read as another type than the others "
        f"({shorten(name, 60)} as {np.dtype(shown).name}); all are read as {np.dtype(dtype).name}"
    ]


def _without_header(files: Sequence[Path]) -> list[str]:
    """Return the note that some shards of raw ids lack the header that others have."""
    without = [file.name for file in files if not has_header(file)]
    if not without or len(without) == len(files):
        return []
    return [
        f"{counted(len(without), 'shard')} of {len(files)} lack the header of llm.c that the others have "
        f"({shorten(without[0], 60)}): their first bytes are read as ids"
    ]


def _check_indexes(folder: Path) -> None:
    """Raise InputError if an index has no data next to it, as then a part of the corpus is missing."""
    of_megatron = [index.with_suffix(".bin") for index in matching(folder, ".idx")]
    of_datatrove = [index.with_suffix("") for index in matching(folder, ".ds.index")]
    for data in (*of_megatron, *of_datatrove):
        if not is_file(data):
            raise InputError(
                f"{shorten(str(data), 200)}: this file is missing next to its index; copy both files into one folder"
            )


def _shown_type(files: Sequence[Path]) -> tuple[str, str]:
    """Return the type of raw ids as the largest shard shows it, and what shows it: it is the same in all shards."""
    return inferred_type(max(files, key=_size))


def _of_stated_type(found: Format, files: Sequence[Path], dtype: str, path: Path) -> Format:
    """Return the format of shards with the type of raw ids that the user states, or that they show.

    Raises InputError if the user states it and the shards state their own.
    """
    if found is TOKENS:
        return tokens_of(dtype) if dtype else tokens_of(*_shown_type(files))
    if dtype:
        raise InputError(f"{shorten(str(path), 200)}: {found.name} states the type of its ids; leave out dtype")
    return found


def _known_format(file: Path, dtype: str) -> Format:
    """Return the format of a shard: raw ids where their type is stated. Raises InputError if it is not known."""
    found = _shard_format(file) or (TOKENS if dtype else None)
    if found is None:
        raise InputError(
            f"{shorten(str(file), 200)}: no format of shards that is known; state dtype if it holds raw ids"
        )
    return found


def _shard_format(file: Path) -> Format | None:
    with open_input(file) as opened:
        head = opened.read(HEAD_BYTES)
    return next((shard_format for shard_format in _SHARD_FORMATS if head and shard_format.matches(file, head)), None)
