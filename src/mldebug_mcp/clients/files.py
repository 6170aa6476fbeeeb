"""Read and replace a client's configuration file: whole or not at all, with a backup, through links."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from mldebug_mcp.errors import InputError

LARGEST = 16 * 2**20
"""Bytes. The largest configuration seen (Claude Code's, with its history) had a few MiB."""


def read_text(path: Path) -> str:
    """Return the file's text, with its line ends and byte order mark as they are; empty if there is no file.

    Raises:
        InputError: if it is not a readable text file.
    """
    try:
        status = path.stat()  # links that lead in a circle raise here
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise InputError(
                f"{path} is not a configuration file of at most {LARGEST // 2**20} MiB and was left alone; look at "
                "what it is"
            )
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; it was left alone: save it as UTF-8 first") from None
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path} cannot be read ({error}); it was left alone") from None


def replace_text(path: Path, before: str, after: str) -> Path | None:
    """Replace a file's text and return the backup; None if there was nothing to keep.

    The new text is written beside the file and takes its place at once. A link stays: the file that it leads to is
    replaced. Permissions stay, missing folders are made.

    Raises:
        InputError: if it cannot be written, or if the file has changed since it was read.
    """
    try:
        real = path.resolve()
        real.parent.mkdir(parents=True, exist_ok=True)
        old = real.stat() if real.exists() else None
        new = _write_beside(real, after, old)
        try:
            if read_text(real) != before:
                raise InputError(f"{path} has just been changed by another program; run the command again")
            backup = keep_copy(path, before)
            new.replace(real)
        finally:
            new.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path} cannot be written ({error}); use --print and paste it by hand") from None
    return backup


def keep_copy(path: Path, text: str) -> Path | None:
    """Write the text of an existing file to a new name beside it: no backup is ever overwritten."""
    real = path.resolve()
    if not real.exists():
        return None
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        copy = real.with_name(f"{real.name}.{stamp}{f'-{number}' if number > 1 else ''}.backup")
        if not copy.exists():
            return _write_beside(real, text, real.stat()).replace(copy)
    raise InputError(f"{real.parent} is full of backups of {real.name}; remove some first")


def _write_beside(path: Path, text: str, like: os.stat_result | None) -> Path:
    """Write a new file with the owner and permissions of another, or those of any new file."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new = Path(name)
    if like is None:
        withheld = os.umask(0)
        os.umask(withheld)
        new.chmod(0o666 & ~withheld)
        return new
    if sys.platform != "win32" and (like.st_uid, like.st_gid) != (os.getuid(), os.getgid()):
        os.chown(new, like.st_uid, like.st_gid)
    new.chmod(stat.S_IMODE(like.st_mode))
    return new
