"""What a command reads. These are several paths named at once, and standard input."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import shorten
from mldebug_mcp.core.writing import temporary_folder
from mldebug_mcp.logs.remote_files import is_remote

# Several runs named at once: paths, and patterns that a shell was told to leave alone.


def matching(patterns: Sequence[str]) -> list[str]:
    """Return the paths that are meant, each once: a pattern such as `runs/*/log.jsonl` stands for all that match it.

    Raises:
        InputError: nothing matches a pattern.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if is_remote(pattern):
            found[pattern] = None
            continue
        place = expanded(pattern)
        if not glob.has_magic(pattern) or place.exists():  # a folder may be called run[1]
            found[pattern] = None
            continue
        matches = sorted(glob.glob(str(place), recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not matches:
            raise InputError(f"{shorten(pattern, 200)}: no file or folder matches this pattern; check it with ls")
        found |= dict.fromkeys(matches)
    return list(found)


# `-` for a path: what is piped into a command, kept in a file of its own while it is read.


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
