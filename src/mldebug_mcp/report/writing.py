"""Writing the pages and pictures that the user asked for by name."""

from __future__ import annotations

from pathlib import Path

from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{shorten(str(path), 200)}: cannot be written ({why}); name another file") from None
