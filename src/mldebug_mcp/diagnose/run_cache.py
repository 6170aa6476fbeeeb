"""Answers about runs whose files have not changed since: a file of JSON lines, one per place of a folder."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mldebug_mcp import __version__
from mldebug_mcp.diagnose.calibrate import FILE
from mldebug_mcp.diagnose.levels import Answered
from mldebug_mcp.logs.run_folders import RunFolder
from mldebug_mcp.models.runs import RunRow


def fingerprint(place: RunFolder) -> str:
    """Return what changes with the files of a place, with its name, and with the version that judges them."""
    digest = hashlib.blake2b(f"{__version__}\0{FILE.stat().st_mtime_ns}\0{place.folder}".encode(), digest_size=16)
    for file in sorted((*place.all_files(), *(one.path for one in place.config()))):
        status = file.stat()
        digest.update(f"\0{file}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="surrogateescape"))
    return digest.hexdigest()


class RunCache:
    """Answers by fingerprint, in memory and in a file.

    A file that cannot be read counts as empty: it holds nothing that cannot be made again.

    Args:
        file: Where they are kept; None keeps them for this call alone.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._kept: dict[str, list[Answered]] = {}
        self._asked: set[str] = set()
        self._changed = False
        if file is not None and file.is_file():
            self._kept = dict(_read(file))

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
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self._file.parent, delete=False) as file:
            for mark in sorted(self._asked):
                rows = [[one.name, dict(one.row), dict(one.settings)] for one in self._kept[mark]]
                file.write(json.dumps([mark, rows]) + "\n")
        os.replace(file.name, self._file)  # noqa: PTH105 - of a name


def _read(file: Path) -> Iterator[tuple[str, list[Answered]]]:
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            mark, rows = json.loads(line)
            yield str(mark), [Answered(name, RunRow.model_validate(row), settings) for name, row, settings in rows]
        except (ValueError, TypeError):
            continue
