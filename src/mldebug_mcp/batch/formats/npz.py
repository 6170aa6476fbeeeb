"""NumPy archives: arrays by name. Pickled objects inside are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from mldebug_mcp.access import open_input
from mldebug_mcp.batch.formats.archive import check_size, first_members
from mldebug_mcp.batch.table import Column, Table
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

NAME = "npz"


def matches(path: Path, head: bytes) -> bool:
    """An .npy file, or a zip archive that is named .npz or holds .npy members."""
    if head.startswith(b"\x93NUMPY"):
        return True
    if not head.startswith(b"PK"):
        return False
    if path.suffix == ".npz":
        return True
    members = first_members(path)
    return members is not None and all(member.endswith(".npy") for member in members)


def rows(path: Path) -> None:
    """One piece holds them all."""
    del path


def tables(path: Path) -> Iterator[Table]:
    """Yield the archive as one table. A bare array is taken as input_ids."""
    name = shorten(str(path), 200)
    try:
        with open_input(path) as file:
            check_size(file, name)
            file.seek(0)
            columns = _columns(file)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile header makes NumPy raise anything, down to errors of syntax
        problem = shorten(str(error), 120)
        raise InputError(f"{name}: not an archive of plain arrays ({problem}); save it with numpy.savez") from None
    yield Table(columns)


def _columns(file: BinaryIO) -> dict[str, Column]:
    loaded = np.load(file, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return {"input_ids": loaded}
    columns = {str(name): loaded[name] for name in loaded.files}
    if not all(isinstance(column, np.ndarray) for column in columns.values()):
        raise ValueError("a member is not an array")
    return columns
