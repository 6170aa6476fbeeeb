"""Which files may be read. Every file and folder that a user names is opened here, within limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from mldebug_mcp.core import limits
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import shorten

# Opening files that are named from outside: regular files only and, where a server has roots, only inside them.
#
# Somebody who can write beside the files could swap one for a link between the check and the opening. So the file that
# is checked is the file that is opened: on Linux a path is first held without opening it (`O_PATH`), then what is held
# is checked, and then opened. Elsewhere the file is opened and then compared with the one that was checked.


ROOTS_VARIABLE = "MLDEBUG_MCP_ROOTS"
LONGEST_PATH = 4096
"""Characters: Linux takes no longer one (PATH_MAX)."""
SPARSE_BYTES = 256 * 1024 * 1024
SPARSE_SHARE = 100
"""A file larger than `SPARSE_BYTES`with less than one part in `SPARSE_SHARE` on the disk is made of holes.
Chosen by hand: no file system compresses a log that far."""
_BY_PLACE = hasattr(os, "O_PATH") and Path("/proc/self/fd").is_dir()
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NOT_ON_DISK = ("/proc", "/sys")


class OutsideError(InputError):
    """A path leads outside the folders that may be read."""


class EmptyFileError(InputError):
    """A file holds nothing."""


@dataclass(frozen=True, slots=True)
class Access:
    """What may be read, and which interpreters a probe may run.

    Args:
        roots: Resolved folders whose content may be read; None if everything may be, as on the command line.
        pythons: Interpreters or folders of environments outside the roots that a probe may run.
        links: Links out of the roots that were found in folders and skipped, for the notes.
    """

    roots: tuple[str, ...] | None = None
    pythons: tuple[str, ...] = ()
    links: list[str] = field(default_factory=list, compare=False)

    def allows(self, real: str) -> bool:
        """Return whether a resolved path may be read."""
        if self.roots is None:
            return True
        inside = any(_is_below(real, root) for root in self.roots)
        return inside and not any(_is_below(real, place) for place in _NOT_ON_DISK)


_ACCESS: ContextVar[Access] = ContextVar("access", default=Access())  # noqa: B039 - the default is never changed


def access_from(roots: Sequence[str] = (), pythons: Sequence[str] = ()) -> Access:
    """Return what a server may read: the folders given, else those of the environment, else its working directory.

    Raises:
        InputError: one of them is not a folder.
    """
    named = list(roots) or [part for part in os.environ.get(ROOTS_VARIABLE, "").split(os.pathsep) if part]
    if not named and Path.cwd() != Path(Path.cwd().anchor):  # some clients start their servers in /, which is no choice
        named = [os.curdir]
    found = []
    for root in named:
        place = os.path.realpath(expanded(root))
        if not Path(place).is_dir():
            raise InputError(f"{shorten(root, 200)}: no such folder; --root and {ROOTS_VARIABLE} take folders")
        found.append(place)
    return Access(tuple(dict.fromkeys(found)), tuple(str(expanded(python)) for python in pythons))


@contextmanager
def confined(access: Access) -> Iterator[None]:
    """Read only what is allowed, in this task and the threads it hands work to."""
    token = _ACCESS.set(Access(access.roots, access.pythons))
    try:
        yield
    finally:
        _ACCESS.reset(token)


def current() -> Access:
    """Return what may be read now."""
    return _ACCESS.get()


def links_left_out() -> list[str]:
    """Return notes on the links out of the roots that were found since the last call."""
    links = current().links
    found = [shorten(Path(link).name, 60) for link in dict.fromkeys(links)]
    links.clear()
    if not found:
        return []
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return [f"left out, as links that lead out of the allowed roots: {', '.join(found[:5])}{more}"]


def open_input(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a regular, non-empty file inside the roots.

    Raises:
        InputError: it is not one, or lies outside the roots.
        OSError: it cannot be opened.
    """
    require(path)
    descriptor = _open_held(path, folder=False) if _BY_PLACE else _open_and_compare(path)
    try:
        status = os.fstat(descriptor)
        _check_content(path, status)
        limits.reading(status.st_size, (status.st_dev, status.st_ino))
        return os.fdopen(descriptor, "rb", buffering)
    except BaseException:
        os.close(descriptor)
        raise


def head_of(path: Path, size: int) -> bytes:
    """Return the first bytes of a file, none of one that is empty, cannot be read, or lies outside the roots."""
    try:
        with open_input(path) as file:
            return file.read(size)
    except (InputError, OSError):
        return b""


def read_bytes(path: Path, limit: int, instead: str = "name another file") -> bytes:
    """Return the content of a file; raises InputError if it has more bytes than `limit`, and as `open_input` does."""
    with open_input(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise InputError(
                f"{shorten(str(path), 200)}: too large to read whole, with more than {limit:,} bytes; {instead}"
            )
        return file.read(size)  # no more: memory is claimed for all that is asked for, before anything is read


def library_path(file: BinaryIO) -> str:
    """Return a path by which a library can open a file that is open here: this very file, even if it was swapped."""
    return f"/proc/self/fd/{file.fileno()}" if _BY_PLACE else str(file.name)


def is_file(path: Path) -> bool:
    """Return whether a path is a regular file that may be read."""
    return _has_kind(path, stat.S_ISREG)


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder that may be read."""
    return _has_kind(path, stat.S_ISDIR)


def require(path: Path) -> None:
    """Raise OutsideError if a path leads outside the roots, whether or not it exists; InputError if it can be none."""
    if "\0" in str(path):
        raise InputError(f"{shorten(str(path), 200)}: not a usable path; it holds a NUL byte")
    access = current()
    if access.roots is not None and not access.allows(_real(path)):
        raise OutsideError(_outside(path, access))


@contextmanager
def held_folder(folder: Path) -> Iterator[int | Path]:
    """Hold a folder that may be read, and yield what `os.scandir` takes for that very folder.

    Raises:
        OutsideError: the folder lies outside the roots.
        OSError: it cannot be read.
    """
    require(folder)
    if not _BY_PLACE:  # folders cannot be opened everywhere
        _check_kind(folder, folder.stat().st_mode, folder=True)
        yield folder
        return
    descriptor = _open_held(folder, folder=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_held(path: Path, *, folder: bool) -> int:
    """Return a descriptor of what is at a path now, if it is of the kind and may be read."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        _check_kind(path, os.fstat(place).st_mode, folder=folder)
        access = current()
        descriptor = f"/proc/self/fd/{place}"
        if not access.allows(str(Path(descriptor).readlink())):
            raise OutsideError(_outside(path, access))
        return os.open(descriptor, _READ)
    finally:
        os.close(place)


def _open_and_compare(path: Path) -> int:
    """Return a descriptor of a file, where it cannot be held first."""
    real = _real(path)
    _check_kind(path, os.stat(real).st_mode, folder=False)  # noqa: PTH116 - a resolved path, as text
    descriptor = os.open(real, _READ | getattr(os, "O_NOFOLLOW", 0))
    if not current().allows(os.path.realpath(real)) or not os.path.samestat(os.fstat(descriptor), os.lstat(real)):
        os.close(descriptor)
        raise OutsideError(_outside(path, current()))
    return descriptor


def _check_kind(path: Path, mode: int, *, folder: bool) -> None:
    if folder and not stat.S_ISDIR(mode):
        raise NotADirectoryError(20, "not a folder", str(path))
    if not folder and not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a device, pipe or socket"
        raise InputError(f"{shorten(str(path), 200)}: not a regular file but {what}; name a file")


def _check_content(path: Path, status: os.stat_result) -> None:
    size = status.st_size
    if size == 0:
        raise EmptyFileError(
            f"{shorten(str(path), 200)}: the file is empty; wait for the first record or name another file"
        )
    if size > SPARSE_BYTES and getattr(status, "st_blocks", size) * 512 * SPARSE_SHARE < size:
        raise InputError(
            f"{shorten(str(path), 200)}: {size:,} bytes, nearly all of them holes; copy its content to a new file and "
            "name that"
        )


def _has_kind(path: Path, kind: Callable[[int], bool]) -> bool:
    try:
        access = current()
        if access.roots is not None and not access.allows(_real(path)):
            if path.is_symlink():
                access.links.append(str(path))
            return False
        return kind(path.stat().st_mode)
    except (OSError, ValueError, InputError):
        return False


def _real(path: Path) -> str:
    try:
        # Resolving a path takes time in proportion to the square of its length.
        if len(str(path)) <= LONGEST_PATH:
            return os.path.realpath(path)
    except (OSError, ValueError):
        pass
    raise InputError(f"{shorten(str(path), 200)}: not a usable path; check its length and characters")


def _is_below(real: str, root: str) -> bool:
    return real == root or real.startswith(root.rstrip(os.sep) + os.sep)


def _outside(path: Path, access: Access) -> str:
    roots = ", ".join(shorten(root, 100) for root in access.roots or ())
    allowed = (
        f"this server may read only in {roots}" if roots else "this server was started in / and may read nothing yet"
    )
    return (
        f"{shorten(str(path), 200)}: outside the allowed roots: {allowed}; to allow more, start it with --root DIR "
        f"(repeatable) or set {ROOTS_VARIABLE}=DIR, or use the command line, which may read everything"
    )


# Listing the folders that are named from outside, in bounded time and only inside the roots of `access`.


MAX_ENTRIES = 20_000
"""Entries of a folder that are read."""


def entries(folder: Path, limit: int = MAX_ENTRIES) -> list[Path]:
    """Return the entries of a folder, sorted by name; only some if there are more than `limit`.

    Raises:
        OutsideError: the folder lies outside the roots.
        OSError: it cannot be read.
    """
    return [folder / name for name, _ in _listed(folder, limit)]


_Kind: TypeAlias = Literal["file", "folder", "other"]
"""What an entry of a folder is by the listing; a link is another thing, wherever it leads to."""


def _listed(folder: Path, limit: int) -> list[tuple[str, _Kind]]:
    """Return the names in a folder with their kinds, sorted."""
    with held_folder(folder) as place, os.scandir(place) as entered:
        listed = sorted((entry.name, _kind(entry)) for entry in islice(entered, limit))
    limits.listing(1 + len(listed))
    return listed


def _kind(entry: os.DirEntry[str]) -> _Kind:
    if entry.is_file(follow_symlinks=False):
        return "file"
    return "folder" if entry.is_dir(follow_symlinks=False) else "other"


def matching(folder: Path, ending: str) -> list[Path]:
    """Return the files in a folder whose names have an ending, sorted by name; none if it cannot be read.

    Hidden files are left out: what systems and libraries keep next to data, such as `._train.bin`, is not data.
    """
    try:
        found = [path for path in entries(folder) if path.name.endswith(ending) and not path.name.startswith(".")]
        return [path for path in found if is_file(path)]
    except (OSError, InputError):
        return []


def walk(
    folder: Path,
    depth: int = 6,
    enters: Callable[[Path], bool] = lambda _: True,
    notes: list[str] | None = None,
    most: int | None = None,
) -> Iterator[Path]:
    """Yield the files in a folder and below it, shallow ones first; links to folders are not followed.

    Args:
        folder: The folder.
        depth: Levels that are read, its own included.
        enters: Whether to descend into a folder below it.
        notes: Gets a note if there are more than `most` entries, and of each folder that may not be read.
        most: Entries that are looked at, by default `MAX_ENTRIES`; and half as many below a level that takes them
            all, so that a folder of very many folders is not one without files.
    """
    most = MAX_ENTRIES if most is None else most
    left, reserve = most, most // 2
    level = [folder]
    for _ in range(depth):
        below: list[Path] = []
        is_cut = False
        for place in level:
            found = _readable(place, left + 1, notes)
            is_cut = len(found) > left
            found = found[:left]
            left -= len(found)
            for name, kind in found:
                path = place / name
                if kind == "file" or (kind == "other" and is_file(path)):  # what is in a folder may be read with it
                    yield path
                elif kind == "folder" and enters(path):
                    below.append(path)
            if is_cut:
                break
        if is_cut:
            if notes is not None and reserve:
                notes.append(
                    f"only {most:,} entries of the folder were looked at; name the log itself if it was not found"
                )
            left, reserve = reserve, 0
        level = below


def _readable(folder: Path, limit: int, notes: list[str] | None) -> list[tuple[str, _Kind]]:
    """Return the names in a folder with their kinds; none of one that may not be read, which is noted."""
    try:
        return _listed(folder, limit)
    except (OSError, InputError) as error:
        if notes is not None and isinstance(error, PermissionError):
            notes.append(f"{shorten(str(folder), 120)}: this folder may not be read, and was left out")
        return []
