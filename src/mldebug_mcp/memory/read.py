"""A path → what is known of the memory: a snapshot's pickle, a gzip of one, or a text that says some of it."""

from __future__ import annotations

import stat
from pathlib import Path

from mldebug_mcp.errors import InputError
from mldebug_mcp.memory.layout import tables_of
from mldebug_mcp.memory.safe_pickle import load
from mldebug_mcp.memory.snapshot import MemorySnapshot, snapshot_of
from mldebug_mcp.memory.texts import read_text
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
    file = Path(path).expanduser()
    name = shorten(str(path), 200)
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{name}: not a regular file; name a snapshot's pickle")
        with file.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
        if not head:
            raise InputError(f"{name}: the file is empty")
        if head.startswith(_ZIP):
            raise InputError(
                f"{name}: saved by torch.save (a zip archive); write the snapshot with "
                f"torch.cuda.memory._dump_snapshot() or "
                "pickle.dump"
            )
        if _is_text(head):
            return read_text(file, name)
        tree, length = load(file, status.st_size)
    except OSError as error:
        reason = (
            "no such file; check the path"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read ({error.strerror or error})"
        )
        raise InputError(f"{name}: {reason}") from None
    tables = tables_of(tree, str(path), length)
    del tree  # several times the size of the tables
    return snapshot_of(tables)


def _is_text(head: bytes) -> bool:
    """Tell text from a pickle; those of protocol 0 are printable too, but begin with a mark and an opcode."""
    if head[:1] in (b"\x80", b"\x1f") or b"\0" in head or head[:2] in (b"(d", b"(l"):
        return False
    control = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)
    return control * 50 < len(head)
