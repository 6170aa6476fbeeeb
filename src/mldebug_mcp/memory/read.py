"""A path → what it says about memory: a snapshot's pickle, a gzip of one, or a text with some of the numbers."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError
from mldebug_mcp.memory.layout import tables_of
from mldebug_mcp.memory.safe_pickle import load
from mldebug_mcp.memory.snapshot import MemorySnapshot, snapshot_of
from mldebug_mcp.memory.tables import SnapshotTables
from mldebug_mcp.memory.texts import read_text
from mldebug_mcp.paths import expanded, unreadable
from mldebug_mcp.text import shorten

HEAD_BYTES = 4096
_ZIP = b"PK\x03\x04"


def read_memory(path: str | Path) -> MemorySnapshot:
    """Read a memory snapshot, or a text about memory.

    Args:
        path: The pickle of `torch.cuda.memory._dump_snapshot()`, a gzip of it, or a text file with
            `torch.cuda.memory_summary()`, a CUDA out-of-memory message or the output of `nvidia-smi`.

    Raises:
        InputError: it is none of these, cut off, corrupt, hostile or larger than the machine can hold.
    """
    file = expanded(path)
    name = shorten(str(path), 200)
    try:
        with open_input(file) as opened:
            size = os.fstat(opened.fileno()).st_size
            head = opened.read(HEAD_BYTES)
        if head.startswith(_ZIP):
            raise InputError(
                f"{name}: saved by torch.save (a zip archive); write the snapshot with "
                "torch.cuda.memory._dump_snapshot() or pickle.dump"
            )
        if _is_text(head):
            return read_text(file, name)
        with _no_collector():
            tables = _tables(file, size, str(path))
    except OSError as error:
        raise InputError(f"{unreadable(file, error)}; check the path") from None
    return snapshot_of(tables)


def _tables(file: Path, size: int, path: str) -> SnapshotTables:
    # The tree is several times the size of the tables, and is freed with this frame.
    tree, length = load(file, size)
    return tables_of(tree, path, length)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector from walking the tree again and again while it grows: nothing in it is garbage.

    A plain `pickle.load` spends most of its time on that.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _is_text(head: bytes) -> bool:
    """Tell text from a pickle; those of protocol 0 are printable too, but begin with a mark and an opcode."""
    if head[:1] in (b"\x80", b"\x1f") or b"\0" in head or head[:2] in (b"(d", b"(l"):
        return False
    control = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)
    return control * 50 < len(head)
