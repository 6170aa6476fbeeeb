"""Paths as the user gives them, and the files of this package."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import shorten

# What users and agents write for a path → the path, and why one cannot be read.


_URL = regex(r"[A-Za-z][A-Za-z0-9+.-]+://")

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
