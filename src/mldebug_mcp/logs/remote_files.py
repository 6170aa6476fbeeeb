"""Logs that do not stand in a folder: in a zip archive, or where fsspec reaches (S3, Google Cloud Storage, memory).

What may be a log or a configuration is brought into a temporary folder, within bounds, and read there as any other;
the folder goes with the answer. A server with roots brings nothing from the network: it takes archives inside its
roots.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from mldebug_mcp.core import limits
from mldebug_mcp.core.access import Access, confined, current, is_folder, open_input
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.paths import expanded, make_folder, unreadable
from mldebug_mcp.core.text import counted, shorten
from mldebug_mcp.logs.files import MAX_DEPTH, home_of, may_be_log
from mldebug_mcp.logs.settings.files import FILE_NAMES

if TYPE_CHECKING:
    import zipfile

MOST_FILES = 50_000
MOST_BYTES = 4 * 1024**3
"""Bytes that are brought in at once; of an archive `TIMES_PACKED` times its own size at most."""
MAX_UNPACKED_FILES = 5_000
"""Files that are unpacked of an archive for the answer about one run, or about few of many. Chosen: some two seconds'
work, and as many files as 300 runs have."""
TIMES_PACKED = 200
"""Times its size that an archive may unpack to. Chosen: logs pack to a tenth, a very even one to a hundredth, a bomb to
a thousandth and less."""
LEAST_BYTES = 16 * 1024**2
"""Bytes that any archive may hold."""
CHUNK = 1024**2
EXTRAS = {"s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3"), "gs": ("gcsfs", "gcs"), "gcs": ("gcsfs", "gcs")}
"""The package that a scheme needs, and our extra that installs it."""
SCHEMES = ("memory", *EXTRAS)
_CONFIGURATIONS = frozenset(PurePosixPath(name).name for name in FILE_NAMES)
_SUFFIXES = (".yaml", ".yml", ".toml", ".ini", ".cfg")


def is_remote(path: str | Path) -> bool:
    """Say whether a path is one of these: a zip archive, or a URL that fsspec reads."""
    text = str(path)
    return text.lower().endswith(".zip") or "::" in text or _scheme(text) in ("zip", *SCHEMES)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files of an archive of very many are unpacked: those of some runs, whole.

    Args:
        run: The run that is asked for, which comes first.
        newest: Whether the newest runs are chosen, else the largest.
        notes: Gets what was left out.
    """

    run: str = ""
    newest: bool = False
    notes: list[str] = field(default_factory=list)

    def of(self, members: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
        """Return the members that are unpacked."""
        if len(members) <= MAX_UNPACKED_FILES:
            return members
        runs: dict[PurePosixPath, list[zipfile.ZipInfo]] = {}
        for member in members:
            runs.setdefault(home_of(PurePosixPath(member.filename)), []).append(member)
        chosen: list[zipfile.ZipInfo] = []
        for name in sorted(runs, key=lambda name: self._order(name, runs[name]), reverse=True):
            chosen += runs[name][: MAX_UNPACKED_FILES - len(chosen)]
            if len(chosen) == MAX_UNPACKED_FILES:
                break
        what = "newest" if self.newest else "largest"
        self.notes.append(
            f"only {len(chosen):,} of {len(members):,} files of the archive were unpacked, those of the {what} of "
            f"{counted(len(runs), 'folder')}; unpack it and name the folder, or name a folder in it (zip://FOLDER::…)"
        )
        return chosen

    def _order(self, name: PurePosixPath, members: list[zipfile.ZipInfo]) -> tuple[bool, object]:
        asked = bool(self.run) and name.match(self.run)
        return asked, max(member.date_time for member in members) if self.newest else sum(
            member.file_size for member in members
        )


@contextmanager
def brought_in(path: str | Path, choice: Choice | None = None) -> Iterator[str | Path]:
    """Yield a path in this machine's file system: the path itself, or a temporary folder with what it holds.

    Takes `runs.zip`, `zip://INNER::file:///runs.zip`, `memory://`, `s3://`, `gs://`, and archives in these
    (`zip://::s3://bucket/runs.zip`).
    Of an archive of very many files `choice` says what is unpacked; by default all of them are.

    Raises:
        InputError: it cannot be read, is not allowed, or holds too much.
        MissingExtraError: a package is missing.
    """
    if not is_remote(path) or ("://" not in str(path) and is_folder(expanded(path))):
        yield path
        return
    folder = Path(make_folder("mldebug-in-"))
    place = str(path)
    try:
        found = _bring(place, folder, choice)
        access = current()
        roots = None if access.roots is None else (*access.roots, str(folder.resolve()))
        with confined(Access(roots, access.pythons)):
            yield found
    except InputError as error:
        message = str(error)
        if str(folder) not in message:
            raise
        raise type(error)(message.replace(f"{folder}/", f"{place}: ").replace(str(folder), place)) from None
    finally:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _scheme(text: str) -> str:
    return text.partition("://")[0].lower() if "://" in text else ""


def _bring(place: str, folder: Path, choice: Choice | None) -> Path:
    """Bring what is at a place into a folder, and return the path of it there."""
    first, chained, archive = place.partition("::")
    if not chained:
        inner, archive = "", place
    elif _scheme(first) == "zip" and "::" not in archive:
        inner = first.partition("://")[2]
    else:
        raise InputError(
            f"{shorten(place, 200)}: not understood; chained URLs are written zip://INNER::URL-OF-THE-ARCHIVE"
        )
    if _scheme(archive) in SCHEMES:
        found = _fetched(archive, folder / "fetched")
        if not archive.lower().endswith(".zip"):
            return found
        with open_input(found) as file:
            return _unpacked(file, found.stat().st_size, inner, folder / "logs", place, choice=choice)
    if _scheme(archive) == "zip":
        raise InputError(f"{shorten(place, 200)}: no archive is named; write zip://INNER::file:///PATH/runs.zip")
    file_path = expanded(archive)
    try:
        with open_input(file_path) as file:
            return _unpacked(file, file_path.stat().st_size, inner, folder / "logs", place, choice=choice)
    except OSError as error:
        raise InputError(f"{unreadable(file_path, error)}; check the path") from None


def _unpacked(file: BinaryIO, size: int, inner: str, folder: Path, place: str, *, choice: Choice | None) -> Path:
    """Unpack what may be logs below a folder of an archive, counting what comes out of it."""
    import zipfile  # few logs are in an archive

    folder.mkdir()
    name, left = shorten(place, 200), max(LEAST_BYTES, min(MOST_BYTES, TIMES_PACKED * size))
    below = PurePosixPath(inner.strip("/"))
    try:
        with zipfile.ZipFile(file) as archive:
            members = [
                zip_info
                for zip_info in archive.infolist()
                if _is_wanted(zip_info.filename, below) and not zip_info.is_dir()
            ]
            chosen = members if choice is None else choice.of(members)
            _require_few(name, len(chosen))
            for member in chosen:
                left -= _copied(archive, member, _inside(folder, member.filename, below), left, name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        raise InputError(
            f"{name}: an archive that cannot be read ({shorten(str(error), 120)}); pack it again"
        ) from None
    if not members:
        raise InputError(f"{name}: no log in this archive{f' below {shorten(inner, 60)}' if inner else ''}")
    whole = folder / below.name
    return whole if len(members) == 1 and whole.is_file() else folder


def _copied(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, left: int, name: str) -> int:
    """Unpack a member and return its size; its own word for that is not taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    copied = 0
    with archive.open(member) as packed, path.open("wb") as out:
        while piece := packed.read(CHUNK):
            copied += len(piece)
            if copied > left:
                raise InputError(f"{name}: too much comes out of this archive; unpack it, and name the folder")
            limits.reading(len(piece))
            out.write(piece)
    with suppress(ValueError, OverflowError, OSError):  # which run is the newest
        when = time.mktime((*member.date_time, 0, 0, -1))
        os.utime(path, (when, when))
    checkpoint(f"unpacked {shorten(member.filename, 60)}")
    return copied


def _fetched(url: str, folder: Path) -> Path:
    """Bring what fsspec finds at a URL into a folder."""
    if current().roots is not None:
        raise InputError(
            f"{shorten(url, 200)}: a URL; nothing is fetched from the network by this server: save it and name the "
            "file, or use the command line"
        )
    folder.mkdir()
    files, root = _system(url)
    try:
        if files.isfile(root):
            target = folder / PurePosixPath(root).name
            _require_small(url, int(files.size(root)))
            files.get_file(root, str(target))
            return target
        found = files.find(root, maxdepth=MAX_DEPTH + 1, detail=True)
        below = PurePosixPath(root.strip("/"))
        wanted = {source: about for source, about in found.items() if _is_wanted(source.strip("/"), below)}
        _require_few(url, len(wanted))
        _require_small(url, sum(int(about.get("size") or 0) for about in wanted.values()))
        for number, source in enumerate(wanted, start=1):
            target = _inside(folder, source.strip("/"), below)
            target.parent.mkdir(parents=True, exist_ok=True)
            files.get_file(source, str(target))
            checkpoint(f"{number:,} of {len(wanted):,} files fetched")
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - each store has errors of its own
        why = shorten(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"{shorten(url, 200)}: cannot be fetched ({why}); check the URL and the credentials") from None
    if not wanted:
        raise InputError(f"{shorten(url, 200)}: no log there; name the folder that holds the logs")
    return folder


def _system(url: str) -> tuple[Any, str]:  # a file system of fsspec, which has no types
    scheme = _scheme(url)
    package, extra = EXTRAS.get(scheme, ("fsspec", "s3"))
    try:
        import fsspec.core
    except ImportError:
        raise MissingExtraError("fsspec", extra) from None
    try:
        files, root = fsspec.core.url_to_fs(url)
    except ImportError:
        raise MissingExtraError(package, extra) from None
    except ValueError as error:
        raise InputError(f"{shorten(url, 200)}: not understood ({shorten(str(error), 120)})") from None
    return files, str(root)


def _is_wanted(name: str, below: PurePosixPath) -> bool:
    """Say whether a file may be a log or a configuration, in the folder that is asked for, and not hidden."""
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.name or not path.is_relative_to(below):
        return False
    if path == below:
        return True
    hidden = any(part.startswith(".") and part not in (".hydra", "..") for part in path.parts)
    configures = path.name in _CONFIGURATIONS or path.suffix.lower() in _SUFFIXES
    return not hidden and "__MACOSX" not in path.parts and (configures or may_be_log(path))


def _inside(folder: Path, name: str, below: PurePosixPath) -> Path:
    """Return where a file goes: below the folder, whatever its name says."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = path.relative_to(below).parts or (path.name,)
    if any(part in ("..", "/") or "\0" in part or ":" in part for part in parts) or path.is_absolute():
        raise InputError(f"{shorten(name, 100)}: a name that leads out of its archive; pack it again")
    return folder.joinpath(*parts)


def _require_few(place: str, files: int) -> None:
    if files > MOST_FILES:
        raise InputError(f"{shorten(place, 200)}: {counted(files, 'file')} are too many at once; name a folder of it")


def _require_small(place: str, size: int) -> None:
    if size > MOST_BYTES:
        raise InputError(f"{shorten(place, 200)}: {size:,} bytes are too many at once; name a folder of it")
