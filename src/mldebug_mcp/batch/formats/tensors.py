"""Tensors and arrays by name: archives of NumPy, safetensors, what `torch.save` writes, and batches as printed."""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table, from_mapping, from_records
from mldebug_mcp.batch.formats.files import STREAM_ROW_TOKENS, Format, pieces_of_stream, table_of_stream
from mldebug_mcp.batch.sequences import as_integers
from mldebug_mcp.core.access import is_folder, open_input, read_bytes
from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.limits import unhurried
from mldebug_mcp.core.text import counted, shorten

Number = TypeVar("Number", bound=np.generic)

# Looking into a zip archive without unpacking it.


MAX_FIRST_MEMBERS = 8
"""Members of an archive by whose names it is recognised."""
MAX_UNPACKED_BYTES = 8 * 1024**3
"""Bytes that an archive may hold unpacked: a small file can unpack to any size."""
FREE_BYTES = 64 * 1024**2
TIMES_UNPACKED = 100
"""Above `FREE_BYTES`, at most so many times the size of the file: token ids that are mostly padding shrink to a
thirtieth. Files of arrays hold their numbers once, so that this bounds them too."""


def first_members(path: Path) -> list[str] | None:
    """Return the names of the first members of a zip archive, or None if it cannot be read as one."""
    try:
        with open_input(path) as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()[:MAX_FIRST_MEMBERS]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def check_size(file: BinaryIO, name: str) -> None:
    """Raise InputError if an archive would unpack to too much; other files are left alone."""
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > MAX_UNPACKED_BYTES:
        raise InputError(f"{name}: unpacks to more than 8 GiB; give it as parquet")
    check_times(unpacked, file, name)


def check_times(unpacked: int, file: BinaryIO, name: str) -> None:
    """Raise InputError if a file stands for many times its own bytes."""
    size = file.seek(0, os.SEEK_END)
    if unpacked > max(FREE_BYTES, TIMES_UNPACKED * size):
        raise InputError(f"{name}: {size:,} bytes that stand for {unpacked:,}; save what is in it as parquet")


ARRAY_MAGIC = b"\x93NUMPY"


def _npz_matches(path: Path, head: bytes) -> bool:
    """An .npy file, or a zip archive that is named .npz or holds .npy members."""
    if head.startswith(ARRAY_MAGIC):
        return True
    if not head.startswith(b"PK"):
        return False
    if path.suffix == ".npz":
        return True
    members = first_members(path)
    return members is not None and all(member.endswith(".npy") for member in members)


def _npz_tables(path: Path) -> Iterator[Table]:
    """Yield the archive as one table.

    A bare array is taken as input_ids; one without rows is a shard of a corpus if it is longer than a window of
    `STREAM_ROW_TOKENS` tokens, and is cut into such windows.
    """
    name = shorten(str(path), 200)
    try:
        with open_input(path) as file:
            check_size(file, name)
            stream = _stream_of_array(file)
            if stream is not None:
                yield from stream
                return
            columns = _arrays_in(file)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile header makes NumPy raise anything, down to errors of syntax
        problem = shorten(str(error), 120)
        raise InputError(f"{name}: not an archive of plain arrays ({problem}); save it with numpy.savez") from None
    yield Table(columns)


NPZ = Format("npz", _npz_matches, _npz_tables)
"""NumPy archives: arrays by name. Pickled objects inside are refused."""


def _stream_of_array(file: BinaryIO) -> Iterator[Table] | None:
    """Return the pieces of a bare array of one dimension that is longer than a window; None for other content.

    Raises:
        InputError: it holds fractions.
        ValueError: its header is broken, or it promises more than the file holds.
    """
    file.seek(0)
    is_array = file.read(len(ARRAY_MAGIC)) == ARRAY_MAGIC
    file.seek(0)
    if not is_array:
        return None
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    start, size = file.tell(), file.seek(0, 2)
    file.seek(0)
    if len(shape) != 1 or shape[0] <= STREAM_ROW_TOKENS or dtype.kind not in "iuf":
        return None
    if size - start < shape[0] * dtype.itemsize:
        raise ValueError(f"{shape[0]:,} numbers are promised, and {(size - start) // dtype.itemsize:,} are there")
    return _pieces_of_array(file, dtype, start, shape[0])


def _pieces_of_array(file: BinaryIO, dtype: np.dtype[Any], start: int, tokens: int) -> Iterator[Table]:
    note = f"read as whole numbers (stated by the file) without documents, in rows of {STREAM_ROW_TOKENS} tokens"
    for numbers, _ in pieces_of_stream(file, dtype, start, tokens):
        try:
            ids = as_integers(numbers)
        except ValueError as error:
            raise InputError(f"{shorten(str(file.name), 200)}: {error}; give token ids as whole numbers") from None
        yield table_of_stream(_native(ids), note)


def _arrays_in(file: BinaryIO) -> dict[str, Column]:
    loaded = np.load(file, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return {"input_ids": _native(loaded)}
    columns = {str(name): loaded[name] for name in loaded.files}
    if not all(isinstance(column, np.ndarray) for column in columns.values()):
        raise ValueError("a member is not an array")
    return {name: _native(column) for name, column in columns.items()}


def _native(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return an array in this machine's byte order: its file states its own, so that every reader turns it round."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


MAX_HEADER = 100 * 1024 * 1024
"""Bytes of a header; the limit of the format's own library."""
MAX_TENSOR_BYTES = 8 * 1024**3
_SAFETENSORS_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "u1",
}  # fmt: skip


def _safetensors_matches(_: Path, head: bytes) -> bool:
    """A length of eight bytes and a JSON object."""
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < MAX_HEADER


def _safetensors_tables(path: Path) -> Iterator[Table]:
    name = shorten(str(path), 200)
    with open_input(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_TENSOR_BYTES:
            raise InputError(f"{name}: more than 8 GiB in one batch; save fewer rows")
        size = int.from_bytes(file.read(8), "little")
        try:
            header = json.loads(file.read(size))
            entries = {str(key): value for key, value in header.items() if key != "__metadata__"}
            columns: dict[str, Column] = {key: _safetensor(file, 8 + size, entry) for key, entry in entries.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
            problem = shorten(str(error), 120)
            raise InputError(f"{name}: a broken safetensors file ({problem}); save the batch again") from None
    yield Table(columns)


SAFETENSORS = Format("safetensors", _safetensors_matches, _safetensors_tables)
"""Safetensors: a JSON header and raw numbers.

Read here, because the format is that simple and bfloat16 needs care.
"""


def _safetensor(file: BinaryIO, base: int, entry: dict[str, object]) -> npt.NDArray[np.generic]:
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if (
        kind not in _SAFETENSORS_TYPES
        or not isinstance(shape, list)
        or not isinstance(offsets, list)
        or len(offsets) != 2
    ):
        raise ValueError(f"a tensor of type {kind}")
    begin, end = offsets
    dtype = np.dtype(_SAFETENSORS_TYPES[str(kind)])
    if min([0, begin, end - begin, *shape]) < 0 or math.prod(shape) * dtype.itemsize != end - begin:
        raise ValueError("a tensor whose size is not that of its shape")
    file.seek(base + begin)
    data = file.read(end - begin)
    if len(data) != end - begin:
        raise ValueError("the file is cut off")
    array: npt.NDArray[np.generic] = np.frombuffer(data, dtype).reshape(shape)
    # A bfloat16 is the upper half of a float32.
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else array


Loaded: TypeAlias = Any
"""What torch loaded: tensors, numbers and text, nested in dicts and lists."""


def _torch_matches(path: Path, head: bytes) -> bool:
    """A zip archive or a pickle that is named as torch's files are, or an archive with torch's members."""
    if path.suffix in (".pt", ".pth", ".bin") and (head.startswith(b"PK") or head[:1] == b"\x80"):
        return True
    return head.startswith(b"PK") and any(member.endswith("data.pkl") for member in first_members(path) or ())


def _torch_tables(path: Path) -> Iterator[Table]:
    name = shorten(str(path), 200)
    try:
        with unhurried():
            import torch
    except ImportError:
        raise MissingExtraError("torch (or save the batch as safetensors or npz)", "probe") from None
    try:
        with open_input(path) as file:
            check_size(file, name)
            file.seek(0)
            value = torch.load(file, map_location="cpu", weights_only=True)
            # A view of a few numbers can say that it has any number of them.
            check_times(sum(tensor.numel() * tensor.element_size() for tensor in _tensors(value)), file, name)
        value = _numbers(_named(value))
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile or broken file makes torch raise anything
        problem = shorten(str(error).split("\n", 1)[0], 120)
        raise InputError(
            f"{name}: not a file of plain tensors, so nothing in it was run ({problem}); "
            "save a dict of tensors, or use mldebug_mcp.capture.save_batch"
        ) from None
    if isinstance(value, list) and value and all(isinstance(record, dict) for record in value):
        yield from_records([{key: _plain_lists(item) for key, item in record.items()} for record in value])
    elif isinstance(value, Mapping):
        yield from_mapping({str(key): item for key, item in value.items()})
    elif hasattr(value, "shape"):
        yield from_mapping({"x" if value.dtype.kind == "f" else "input_ids": value})
    else:
        raise InputError(f"{name}: holds {type(value).__name__}, not a batch; save a dict of tensors")


TORCH = Format("pt", _torch_matches, _torch_tables)
"""Files of `torch.save`: plain tensors only, through torch's own restricted loader (`weights_only=True`)."""
MOST_PARTS = 3
"""Tensors of one shape up to which they are inputs and labels, not rows. Chosen: a loader yields two or three."""


def _named(value: Loaded) -> Loaded:
    """Return what a data loader yields without names, inputs first and labels last, by names that the checks know."""
    import torch

    if not isinstance(value, (list, tuple)) or not value:
        return value
    samples = [row for row in value if isinstance(row, (list, tuple)) and row and isinstance(row[0], torch.Tensor)]
    if len(samples) == len(value) and len({len(sample) for sample in samples}) == 1:
        value = [list(part) for part in zip(*value, strict=True)]
    elif not isinstance(value[0], torch.Tensor):
        return value
    elif len(value) > MOST_PARTS and len({getattr(part, "shape", None) for part in value}) == 1:
        return {"x": torch.stack(value)}
    names = ["x", *(f"x{place}" for place in range(1, len(value) - 1)), *(["y"] if len(value) > 1 else [])]
    return dict(zip(names, value, strict=True))


def _tensors(value: Loaded) -> Iterator[Loaded]:
    """Yield the tensors in dicts and lists."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _numbers(value: Loaded) -> Loaded:
    """Return tensors as arrays, wherever they stand in dicts and lists."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = torch.view_as_real(value) if value.is_complex() else value
        return (value.float() if value.is_floating_point() else value).cpu().numpy()
    if isinstance(value, Mapping):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [
            _plain_lists(_numbers(mapping)) if not isinstance(mapping, Mapping) else _numbers(mapping)
            for mapping in value
        ]
    return value


def _plain_lists(value: Loaded) -> Loaded:
    return value.tolist() if hasattr(value, "tolist") else value


# Batches as programs print them: tensors, lists behind a name, and the lines in which trainers show an example.

_COLUMNS = {
    "input_ids": "input_ids", "tokens": "input_ids", "label_ids": "labels", "labels_ids": "labels", "labels": "labels",
    "attention_mask": "attention_mask", "input_mask": "attention_mask", "input_masks": "attention_mask",
    "token_type_ids": "token_type_ids", "segment_ids": "token_type_ids", "position_ids": "position_ids",
    "loss_mask": "loss_mask", "decoder_input_ids": "decoder_input_ids",
}  # fmt: skip
"""Our name of a column by the one that is printed, in lower case."""
_ANY_COLUMN = "|".join(sorted(_COLUMNS, key=len, reverse=True))
_CALL = r"(?:\b(?:[a-z]{1,8}\.){0,2}(?:tensor|array|devicearray|tensorimpl|parameter)\(\s{0,8})?"
_NUMBER = r"-?\d{1,19}(?:\.\d{0,19})?"
_VALUE = re.compile(
    rf"(?<![\w.])(?P<name>{_ANY_COLUMN})['\"]?\]?\s{{0,4}}[:=]?\s{{0,8}}"
    rf"(?:{_CALL}(?P<list>\[)|(?P<bare>{_NUMBER}(?: {_NUMBER}){{3,}})[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
"""A column and its numbers: "'labels': tensor([[", "[LABELS_IDS] [-100, 5]", "input_ids: 101 2045 103"."""
_ALONE = re.compile(rf"{_CALL}(?P<list>\[\[\s{{0,8}}\d)", re.IGNORECASE)
"""A matrix without a name."""
_LABEL_AND_TOKEN = re.compile(r"\((?P<label>-100|\d{1,9}), (?P<token>\d{1,9})\)")
"""Label and token, behind each text, as axolotl shows an example: "Hello(9906, 9906) !(-100, 0)"."""
MIN_PAIRS = 4
"""Pairs in a line that shows an example; chosen: prose has fewer."""
_OF_LIST = re.compile(r"[\[\]]|\.\.\.|…|True|False|[^\s\d,.+-]")
"""What is neither a number nor between two in a list; anything but its brackets ends it."""
MAX_BYTES = 64 * 1024 * 1024
MAX_EXAMPLES = 10_000
"""Columns, or examples, of a text that are read. Chosen: people paste one to a hundred."""
WRITE_WHOLE = (
    "print() left numbers out ('...'): save the batch itself, with torch.save(batch, 'batch.pt'), or print it after "
    "torch.set_printoptions(threshold=10**7)"
)


def _printed_matches(path: Path, head: bytes) -> bool:
    """It is text, no JSON, and a column or a line of pairs begins in it."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if is_folder(path) or b"\0" in head or re.match(rb'(?:\{|\[\s*\{)\s*"', start) or _is_list_of_json(start):
        return False
    text = head.decode("utf-8", "replace")
    return bool(_VALUE.search(text) or _ALONE.search(text) or any(map(_shows_pairs, text.splitlines())))


def _printed_tables(path: Path) -> Iterator[Table]:
    """Yield the text as one table. Raises InputError where numbers were left out, or columns do not fit."""
    name = shorten(str(path), 200)
    text = read_bytes(path, MAX_BYTES, "save the batch itself").decode("utf-8", "replace")
    columns, notes = _columns_in(text, name)
    columns = columns or _pairs_in(text)
    if not columns:
        raise InputError(f"{name}: no column of numbers is in it; save the batch itself, with torch.save")
    sizes = {column: len(rows) for column, rows in columns.items()}
    if len(set(sizes.values())) > 1:
        differ = ", ".join(f"{column} {size}" for column, size in sizes.items())
        raise InputError(f"{name}: the printed columns have different numbers of rows ({differ}); save the batch")
    rows = next(iter(sizes.values()))
    yield Table(dict(columns), notes=[f"read {counted(rows, 'row')} as a program printed them", *notes])


PRINTED = Format("printed", _printed_matches, _printed_tables)
"""A text in which a program printed a batch, or a trainer an example: all of the numbers have to be there."""


def _is_list_of_json(start: bytes) -> bool:
    """Say whether a text begins with a list that JSON has too: a line of a log, "[INFO]", is none."""
    return re.match(rb"\[\s*(?:\[|\]|-?\d[\d.eE+-]*\s*[,\]])", start) is not None


def _shows_pairs(line: str) -> bool:
    return len(list(islice(_LABEL_AND_TOKEN.finditer(line), MIN_PAIRS))) == MIN_PAIRS


def _columns_in(text: str, name: str) -> tuple[dict[str, list[object]], list[str]]:
    """Return the columns of all batches in a text, the rows of each below those before it, and notes."""
    notes: list[str] = []
    batches: list[dict[str, list[object]]] = [{}]
    found = list(islice(_VALUE.finditer(text), MAX_EXAMPLES))
    for match in found:
        column = _COLUMNS[match["name"].lower()]
        bare: list[object] = [*map(_number, (match["bare"] or "").split())]
        value = _list_at(text, match.start("list"), name) if match["list"] else bare
        if match["bare"] and column == "labels" and IGNORED_LABEL not in value:
            notes = [
                f"left out {match['name']}: TensorFlow programs mask their loss by input_mask, not by {IGNORED_LABEL}"
            ]
        elif value:
            if column in batches[-1]:
                batches.append({})
            batches[-1][column] = value
    if not found and (alone := _ALONE.search(text)) and (ids := _list_at(text, alone.start("list"), name)):
        batches[-1]["input_ids"] = ids
    columns: dict[str, list[object]] = {}
    for batch in batches:
        rows = next((len(value) for value in batch.values() if isinstance(value[0], list)), 0)
        for column, value in batch.items():
            one_each = isinstance(value[0], list) or len(value) == rows
            columns.setdefault(column, []).extend(value if one_each else [value])
    return columns, notes


def _list_at(text: str, start: int, name: str) -> list[object]:
    """Return the list that begins at a place, empty if it holds anything but numbers and lists of them."""
    depth, end = 0, start
    for part in _OF_LIST.finditer(text, start):
        if part[0] in ("...", "…"):
            raise InputError(f"{name}: {WRITE_WHOLE}")
        if part[0] not in ("[", "]", "True", "False"):
            return []
        depth += {"[": 1, "]": -1}.get(part[0], 0)
        end = part.end()
        if depth == 0:
            break
    if depth:
        return []
    written = text[start:end].replace("True", "1").replace("False", "0")
    written = re.sub(r"(?<=[\d\]])\s+(?=[-\d\[])", ", ", re.sub(r"(?<=\d)\.(?!\d)", ".0", written))
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return []
    return [_whole_mask(row) for row in value] if isinstance(value, list) else []


def _whole_mask(value: object) -> object:
    """Return the numbers of a mask, printed as "1.", as whole ones."""
    if isinstance(value, list):
        return [_whole_mask(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _pairs_in(text: str) -> dict[str, list[object]]:
    """Return the examples of a text that shows label and token behind each piece of text, one on each line."""
    examples = [
        [(int(pair["label"]), int(pair["token"])) for pair in _LABEL_AND_TOKEN.finditer(line)]
        for line in islice(filter(_shows_pairs, text.splitlines()), MAX_EXAMPLES)
    ]
    if not examples:
        return {}
    return {
        "input_ids": [[token for _, token in example] for example in examples],
        "labels": [[label for label, _ in example] for example in examples],
    }
