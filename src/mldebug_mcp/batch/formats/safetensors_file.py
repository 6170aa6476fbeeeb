"""Safetensors: a JSON header and raw numbers. Read here, because the format is that simple and bfloat16 needs care."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.columns import Column, Table
from mldebug_mcp.core.access import open_input
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

NAME = "safetensors"
MAX_HEADER = 100 * 1024 * 1024
"""Bytes of a header; the limit of the format's own library."""
MAX_TENSOR_BYTES = 8 * 1024**3
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "u1",
}  # fmt: skip


def matches(path: Path, head: bytes) -> bool:
    """A length of eight bytes and a JSON object."""
    del path
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < MAX_HEADER


def rows(path: Path) -> None:
    """One piece holds them all."""
    del path


def tables(path: Path) -> Iterator[Table]:
    """Yield the tensors as one table."""
    name = shorten(str(path), 200)
    with open_input(path) as file:
        if os.fstat(file.fileno()).st_size > MAX_TENSOR_BYTES:
            raise InputError(f"{name}: more than 8 GiB in one batch; save fewer rows")
        size = int.from_bytes(file.read(8), "little")
        try:
            header = json.loads(file.read(size))
            entries = {str(key): value for key, value in header.items() if key != "__metadata__"}
            columns: dict[str, Column] = {key: _tensor(file, 8 + size, entry) for key, entry in entries.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
            problem = shorten(str(error), 120)
            raise InputError(f"{name}: a broken safetensors file ({problem}); save the batch again") from None
    yield Table(columns)


def _tensor(file: BinaryIO, base: int, entry: dict[str, object]) -> npt.NDArray[np.generic]:
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in _TYPES or not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise ValueError(f"a tensor of type {kind}")
    begin, end = offsets
    dtype = np.dtype(_TYPES[str(kind)])
    if min([0, begin, end - begin, *shape]) < 0 or math.prod(shape) * dtype.itemsize != end - begin:
        raise ValueError("a tensor whose size is not that of its shape")
    file.seek(base + begin)
    data = file.read(end - begin)
    if len(data) != end - begin:
        raise ValueError("the file is cut off")
    array: npt.NDArray[np.generic] = np.frombuffer(data, dtype).reshape(shape)
    # A bfloat16 is the upper half of a float32.
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else array
