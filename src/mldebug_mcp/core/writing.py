"""Writing: folders for temporary files, and a line that is added to a file which several processes write.

Where nothing can be written, the error says why.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

_FLAGS = (
    os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
)  # fmt: skip
_FAR = 1 << 62
"""Where a byte is locked on Windows: far behind what is written."""


def make_folder(prefix: str, inside: str | None = None) -> str:
    """Make a folder for temporary files, which whoever asks for it removes.

    Raises:
        InputError: none can be made.
    """
    try:
        return tempfile.mkdtemp(prefix=prefix, dir=inside)
    except OSError as error:
        raise InputError(f"no folder for temporary files can be made: {_why(error)}") from None


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Give a folder that is removed with all that is in it; raises as `make_folder` does."""
    folder = make_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _why(error: OSError) -> str:
    with suppress(ImportError):
        import resource

        if resource.getrlimit(resource.RLIMIT_FSIZE)[0] == 0:
            return "this process may write no file, as its limit on file sizes is 0; raise it (ulimit -f unlimited)"
    return f"{error.strerror or error}; make room, or name another place in TMPDIR"


def append_line(file: Path, line: str) -> None:
    """Add a line to a file, which is made if it is not there; no line of another process is lost or cut.

    The file is locked while the line is written. Where a writer before was stopped in the middle of a line, the new one
    begins on a line of its own.

    Args:
        file: The file; links are not followed.
        line: The line, without its end.

    Raises:
        InputError: it cannot be written.
    """
    try:
        descriptor = os.open(file, _FLAGS, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(f"{shorten(str(file), 200)}: not a regular file; move it away")
            with _locked(descriptor):
                size = os.lseek(descriptor, 0, os.SEEK_END)
                before = b"" if not size else _last_byte(descriptor, size)
                data = (b"" if before in (b"", b"\n") else b"\n") + line.encode() + b"\n"
                while data:
                    data = data[os.write(descriptor, data) :]
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(
            f"{shorten(str(file), 200)}: cannot be written ({error.strerror or error}); the folder of the run must be "
            "writable, and the file no link"
        ) from None


def _last_byte(descriptor: int, size: int) -> bytes:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def _locked(descriptor: int) -> Iterator[None]:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    @contextmanager
    def _locked(descriptor: int) -> Iterator[None]:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
