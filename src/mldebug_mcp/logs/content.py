"""The bytes of a log, wherever they are: in one file or in rotated parts, each of them compressed or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.decoding.replayed import replayed
from mldebug_mcp.logs.decoding.unpack import PIECE_BYTES, SIGNATURE_BYTES, packing_of, unpacked
from mldebug_mcp.text import shorten


@dataclass(frozen=True, slots=True)
class Content:
    """The content of files, one behind the other.

    Args:
        paths: The files.
        problems: What was found to be wrong with them while they were read, for the notes.
    """

    paths: tuple[Path, ...]
    problems: list[str] = field(default_factory=list)

    def stream(self) -> BinaryIO:
        """Open the content; raises as `open_input` does."""
        if len(self.paths) > 1:
            return replayed(self._one_by_one)
        file = open_input(self.paths[0])
        packing = packing_of(file.read(SIGNATURE_BYTES))
        file.seek(0)
        if not packing:
            return file
        file.close()
        return replayed(lambda: self._pieces(self.paths[0]))

    def _one_by_one(self) -> Iterator[bytes]:
        *older, newest = self.paths
        for path in older:
            try:
                yield from self._pieces(path)
            except (InputError, OSError) as error:
                self._remark(f"{shorten(path.name, 100)}: this rotated part is left out ({shorten(str(error), 160)})")
        yield from self._pieces(newest)

    def _pieces(self, path: Path) -> Iterator[bytes]:
        file = open_input(path)
        packing = packing_of(file.read(SIGNATURE_BYTES))
        file.seek(0)
        if packing:
            yield from unpacked(file, packing, shorten(str(path), 200), lambda why: self._cut(path, why))
            return
        with file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def _cut(self, path: Path, why: str) -> None:
        self._remark(f"{shorten(path.name, 100)}: only its beginning could be unpacked ({why})")

    def _remark(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)
