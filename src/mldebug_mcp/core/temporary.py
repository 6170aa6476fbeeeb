"""Folders for temporary files; where none can be made, the error says why."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mldebug_mcp.core.errors import InputError


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
