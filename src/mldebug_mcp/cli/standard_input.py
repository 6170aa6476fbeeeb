"""`-` for a path: what is piped into a command, kept in a file of its own while it is read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mldebug_mcp.errors import InputError
from mldebug_mcp.temporary import temporary_folder

STANDARD_INPUT = "standard input"
MAX_BYTES = 1024 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024


@contextmanager
def kept_input() -> Iterator[Path]:
    """Keep what comes in a folder of its own, so that no other file's configuration is taken for its own.

    Raises:
        InputError: more comes than `MAX_BYTES`, or what is done inside refuses it; the message calls it what it is.
    """
    with temporary_folder("mldebug-input-") as folder:
        path = Path(folder) / STANDARD_INPUT
        left = MAX_BYTES
        with path.open("wb") as kept:
            while piece := sys.stdin.buffer.read(_PIECE_BYTES):
                left -= kept.write(piece)
                if left < 0:
                    raise InputError(
                        f"{STANDARD_INPUT}: more than {MAX_BYTES:,} bytes; save it to a file, and name that"
                    )
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(str(path), STANDARD_INPUT)) from None
