"""Writing the pages and pictures that the user asked for by name."""

from __future__ import annotations

import secrets
from pathlib import Path

from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8. One that is there stays as it was until the new one is whole.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        _replace(Path(path).resolve(), content.encode() if isinstance(content, str) else content)
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{shorten(str(path), 200)}: cannot be written ({why}); name another file") from None


def _replace(path: Path, content: bytes) -> None:
    """Write a file next to the one to be replaced, then put it in its place."""
    if path.exists() and not path.is_file():  # a terminal, a pipe or a folder: there is nothing to keep
        path.write_bytes(content)
        return
    beside = path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            file.write(content)
        if path.exists():
            beside.chmod(path.stat().st_mode)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
