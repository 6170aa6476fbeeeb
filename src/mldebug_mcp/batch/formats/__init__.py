"""The file formats of batches and data sets: one small module each, listed in `READERS`, most particular first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from mldebug_mcp.batch.formats import (
    arrow_folder,
    csv_file,
    datatrove,
    json_file,
    jsonl,
    litdata,
    mds,
    megatron,
    npz,
    parquet,
    safetensors_file,
    shards,
    token_file,
    torch_file,
)
from mldebug_mcp.batch.table import Part, Table
from mldebug_mcp.core.access import is_folder, open_input, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import unreadable
from mldebug_mcp.core.text import shorten


class Format(Protocol):
    """What a format's module offers."""

    NAME: str

    def matches(self, path: Path, head: bytes) -> bool:
        """Say from its name and first bytes whether a file or folder has this format."""

    def rows(self, path: Path) -> int | None:
        """Return how many rows there are, or None where one piece holds them all."""

    def tables(self, path: Path) -> Iterator[Table]:
        """Yield the content piece by piece. Raises InputError, ValueError or OSError if it cannot be read."""


class PartedFormat(Format, Protocol):
    """What the module of a format offers whose parts can be read separately."""

    def parts(self, path: Path) -> list[Part]:
        """Return its parts, in order."""

    def part_tables(self, part: Part) -> Iterator[Table]:
        """Yield the content of a part, in the pieces in which `tables` yields it."""


READERS: tuple[Format, ...] = (
    litdata, mds, arrow_folder, parquet, npz, torch_file, safetensors_file, megatron, datatrove, csv_file, jsonl,
    json_file, token_file, shards,
)  # fmt: skip
IN_PARTS: Mapping[str, PartedFormat] = {reader.NAME: reader for reader in (arrow_folder, parquet)}
"""Readers by name, of the formats whose parts can be read separately."""
HEAD_BYTES = 4096
KINDS = (
    "JSON, JSONL, CSV, parquet, an Arrow file or save_to_disk folder, safetensors, npz, a .pt of plain tensors, "
    "Megatron's .bin and .idx, datatrove's .ds, a folder of MDS or LitData, a .bin of token ids, "
    "or a folder of such shards"
)


def format_of(path: Path) -> Format:
    """Return the reader of a file or folder.

    Raises:
        InputError: it does not exist, is empty, or is in no known format.
    """
    name = shorten(str(path), 200)
    require(path)
    folder = is_folder(path)
    try:
        head = b"" if folder else _head(path)
    except OSError as error:
        raise InputError(f"{unreadable(path, error)}; check the path") from None
    if not folder and not head.strip():
        raise InputError(f"{name}: the file is empty; save the batch again, as {KINDS}")
    found = next((reader for reader in READERS if reader.matches(path, head)), None)
    if found is None:
        what = "a folder without Arrow, parquet or JSON lines files" if folder else "not a format of batches"
        raise InputError(f"{name}: {what}; give {KINDS}, or save one with mldebug_mcp.capture.save_batch")
    return found


def _head(path: Path) -> bytes:
    with open_input(path) as file:
        return file.read(HEAD_BYTES)
