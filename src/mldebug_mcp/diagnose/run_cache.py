"""Answers about runs whose files have not changed since: a file of JSON lines, one per place of a folder."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mldebug_mcp import __version__
from mldebug_mcp.diagnose.calibrate import FILE
from mldebug_mcp.diagnose.levels import Answered
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.run_folders import RunFolder
from mldebug_mcp.models.runs import RunRow
from mldebug_mcp.text import shorten

CACHE_VARIABLE = "MLDEBUG_MCP_CACHE"
"""The folder for the answers of `mldebug-mcp runs`, or "off"."""
MAX_CACHE_BYTES = 1024**3
"""A run takes some two kilobytes, so this holds half a million. Chosen."""
WAY_OUT = f"name another folder in {CACHE_VARIABLE}, or switch it off with --no-cache"


def cache_file(path: str) -> Path | None:
    """Return the file of the user that keeps the answers about a folder; None where that is switched off.

    It lies in the folder that the environment variable MLDEBUG_MCP_CACHE names ("off" switches the cache off), else in
    the user's folder for caches.

    Raises:
        InputError: the user has no home folder.
    """
    named = os.environ.get(CACHE_VARIABLE, "")
    if named == "off":
        return None
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    usual = home if home.is_absolute() else Path("~/.cache")  # a relative one is ignored, as its specification demands
    try:
        folder = (Path(named) if named else usual / "mldebug-mcp").expanduser()
    except RuntimeError:
        raise InputError(f"the answers are not kept for the next call: there is no home folder; {WAY_OUT}") from None
    name = hashlib.blake2b(os.path.realpath(path).encode(errors="surrogateescape"), digest_size=12).hexdigest()
    return folder / f"runs-{name}.jsonl"


def fingerprint(place: RunFolder) -> str:
    """Return what changes with the files of a place, with its name, and with the version that judges them."""
    digest = hashlib.blake2b(f"{__version__}\0{FILE.stat().st_mtime_ns}\0{place.folder}".encode(), digest_size=16)
    for file in sorted((*place.all_files(), *(one.path for one in place.config()))):
        try:
            status = file.stat()
        except OSError:  # it was removed meanwhile
            continue
        digest.update(f"\0{file}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="surrogateescape"))
    return digest.hexdigest()


class RunCache:
    """Answers by fingerprint, in memory and in a file.

    The file holds nothing that cannot be made again. So one that cannot be read counts as empty, one that cannot be
    written is left as it is, and `notes` says so.

    Args:
        file: Where they are kept; None keeps them for this call alone.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._kept: dict[str, list[Answered]] = {}
        self._asked: set[str] = set()
        self._changed = False
        self.notes: list[str] = []
        if file is not None:
            self._read(file)

    def __contains__(self, mark: object) -> bool:
        return mark in self._kept

    def keep(self, mark: str, answers: Sequence[Answered]) -> None:
        """Keep what was found at a place."""
        self._kept[mark] = list(answers)
        self._asked.add(mark)
        self._changed = True

    def answers(self, mark: str) -> list[Answered]:
        """Return what was found at a place."""
        self._asked.add(mark)
        return self._kept[mark]

    def write(self) -> None:
        """Write the answers that were asked for, in one step: a reader sees the old file or the new one."""
        if self._file is None or not self._changed:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("wb", dir=self._file.parent, delete=False) as file:
                try:
                    file.writelines(_line(mark, self._kept[mark]) for mark in sorted(self._asked))
                    file.flush()
                    os.replace(file.name, self._file)  # noqa: PTH105 - of a name
                except BaseException:
                    os.unlink(file.name)  # noqa: PTH108 - of a name
                    raise
        except OSError as error:
            self.notes.append(
                f"the answers are not kept for the next call: {shorten(str(self._file), 200)} cannot be written "
                f"({error.strerror or error}); {WAY_OUT}"
            )

    def _read(self, file: Path) -> None:
        try:
            size = file.stat().st_size
            if not file.is_file():  # a pipe would be waited for; what stands in the way is noted where it is written
                return
            lines = file.read_bytes().splitlines() if size <= MAX_CACHE_BYTES else [b"too large"]
        except FileNotFoundError:
            return
        except OSError as error:
            self.notes.append(
                f"the answers of earlier calls are not used: {shorten(str(file), 200)} cannot be read "
                f"({error.strerror or error}); {WAY_OUT}"
            )
            return
        for line in lines:
            entry = _entry(line)
            if entry is not None:
                self._kept[entry[0]] = entry[1]
        if len(self._kept) < len(lines):
            self._changed = True
            self.notes.append("the cache of earlier answers was damaged; runs whose answers were lost are read again")


def _line(mark: str, answers: Sequence[Answered]) -> bytes:
    rows = [[one.name, dict(one.row) | {"ranks": _ranks(one.row)}, dict(one.settings)] for one in answers]
    content = json.dumps([mark, rows]).encode()
    return b"%s %s\n" % (_digest(content), content)


def _ranks(row: RunRow) -> dict[str, object] | None:
    return None if row.ranks is None else dict(row.ranks)


def _entry(line: bytes) -> tuple[str, list[Answered]] | None:
    """Return the fingerprint and the answers of a line; None unless it is as it was written."""
    digest, _, content = line.partition(b" ")
    if digest != _digest(content):
        return None
    try:
        mark, rows = json.loads(content)
        return str(mark), [Answered(name, RunRow.model_validate(row), settings) for name, row, settings in rows]
    except (ValueError, TypeError):
        return None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()
