"""Paths as the user gives them, the files of this package, and where it may write."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import shorten

# What users and agents write for a path → the path, and why one cannot be read.


_URL = regex(r"[A-Za-z][A-Za-z0-9+.-]+://", needs="://")

_TEXT = regex(r"\n|^\s*[\[{]")
"""What a log or a record holds and the name of no file: lines, or JSON."""


def expanded(path: str | Path) -> Path:
    """Return a path with `~` as the home folder, or that of a file: URL; with the name of nobody it stays as it is.

    Raises:
        InputError: it is empty, holds a NUL byte, or is a URL of something that is not here.
    """
    text = str(path)
    if not text.strip():
        raise InputError("the path is empty; name a file or folder, or '.' for the working directory")
    if _URL.match(text):
        path = _of_url(text)
    if "\0" in str(path):
        raise InputError(f"{shorten(text, 200)}: not a usable path (it holds a NUL byte); name a file or folder")
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _of_url(text: str) -> str:
    """Return the path that a file: URL names on this machine."""
    try:
        url = urlsplit(text)
    except ValueError as error:  # brackets where a host stands
        raise InputError(f"{shorten(text, 200)}: not a usable URL ({error}); name a file or folder") from None
    if url.scheme.lower() != "file" or url.netloc not in ("", "localhost"):
        raise InputError(f"{shorten(text, 200)}: a URL; nothing is fetched from the network: save it and name the file")
    return unquote(url.path)


def unreadable(path: str | Path, error: OSError) -> str:
    """Say why a path cannot be read; of a relative one that is not there, in which folder it was looked for."""
    name = shorten(str(path), 200)
    if isinstance(error, FileNotFoundError) and _TEXT.search(str(path)):
        return f"{name}: that is text and no path: save it to a file first"
    if isinstance(error, FileNotFoundError):
        return f"{name}: no such file or folder{_looked_in(Path(path))}"
    if isinstance(error, PermissionError):
        return f"{name}: no permission to read it; make it readable or copy it"
    return f"{name}: cannot be read ({error.strerror or error})"


def _looked_in(path: Path) -> str:
    try:
        return "" if path.is_absolute() else f" in {shorten(str(Path.cwd()), 200)}"
    except OSError:  # the working directory itself is gone
        return ""


# Where answers are kept that cost time or money to make again.


CACHE_VARIABLE = "MLDEBUG_MCP_CACHE"
"""The folder for what is kept, or "off"."""


def cache_folder() -> Path | None:
    """Return the folder for what is kept between calls; None where that is switched off.

    It is the one that the environment variable MLDEBUG_MCP_CACHE names ("off" switches it off), else that of the user's
    folder for caches.

    Raises:
        InputError: the user has no home folder.
    """
    named = os.environ.get(CACHE_VARIABLE, "")
    if named == "off":
        return None
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    usual = home if home.is_absolute() else Path("~/.cache")  # a relative one is ignored, as its specification demands
    try:
        return (Path(named) if named else usual / "mldebug-mcp").expanduser()
    except RuntimeError:
        raise InputError("no home folder is known") from None


# Where the knowledge files are: inside an installed package, or at the root of the repository.


_PACKAGE = Path(__file__).parent.parent


def knowledge_folder() -> Path:
    """Return the folder of SKILL.md, PLAYBOOK.md, references and evidence."""
    installed = _PACKAGE / "data"
    return installed if installed.is_dir() else _PACKAGE.parent.parent


# Folders for temporary files, and a line that is added to a file which several processes write. Where nothing can be
# written, the error says why.


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
    import tempfile  # few commands need one

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
        import shutil

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
