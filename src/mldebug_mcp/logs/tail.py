"""A log that is still being written: each read goes on where the last one ended."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.blocks import BLOCK_BYTES
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.config import find_config, read_config
from mldebug_mcp.logs.folder import read_run
from mldebug_mcp.logs.readers import reader_of
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import shorten


class Follower(Protocol):
    """Takes the lines of a growing log."""

    def take_block(self, block: bytes) -> None:
        """Read whole lines."""

    def tell(self, builder: RunBuilder) -> None:
        """Say in the notes what was no record."""


@runtime_checkable
class _CanFollow(Protocol):
    def follow(self, file: LogFile, builder: RunBuilder) -> Follower: ...


class LogTail:
    """A growing log file.

    JSON lines, tables and Megatron logs are read from where the last read ended, without a last line that is only half
    written; a file of another format is read again when it has changed. A file that was replaced is begun anew.

    Args:
        path: The log file.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._follower: Follower | None = None
        self._builder = RunBuilder()
        self._identity = (0, 0)
        self._seen = (0, 0)
        self._run: Run | None = None
        self.position = 0
        """Bytes read so far."""

    def read(self) -> Run:
        """Return the run as it stands now; the same object if nothing was added.

        Raises:
            InputError: the file cannot be read or holds no metrics yet.
        """
        file = LogFile.open(self._path)
        status = self._path.stat()
        identity = (status.st_dev, status.st_ino)
        if identity != self._identity or file.size < self.position:
            self._begin(file)
            self._identity = identity
        seen = (file.size, status.st_mtime_ns)
        if self._run is None or seen != self._seen:
            self._run = self._grown(file) if self._follower is not None else read_run(self._path)
            self._seen = seen
        return self._run

    def _begin(self, file: LogFile) -> None:
        reader = reader_of(file)
        self._builder, self._run, self.position = RunBuilder(), None, 0
        self._builder.formats.append(reader.NAME)
        follows = isinstance(reader, _CanFollow) and file.encoding == "utf-8"
        self._follower = reader.follow(file, self._builder) if follows else None  # type: ignore[attr-defined]
        settings = find_config(self._path.parent)
        if settings is not None:
            self._builder.configure(read_config(settings))
            self._builder.note(f"configuration read from {settings.name}")

    def _grown(self, file: LogFile) -> Run:
        assert self._follower is not None  # noqa: S101 - a programming error
        before = self.position
        with file.path.open("rb") as stream:
            stream.seek(self.position)
            while data := stream.read(BLOCK_BYTES):
                whole = data.rfind(b"\n") + 1
                if not whole and len(data) < BLOCK_BYTES:
                    break
                if whole:  # a line longer than a block is left out
                    self._follower.take_block(data[:whole])
                self.position += whole or len(data)
                stream.seek(self.position)
        if self._run is not None and self.position == before:
            return self._run
        if not self._builder.records:
            raise InputError(f"{shorten(str(self._path), 200)}: no metrics in it yet; wait for the first log record")
        moment = self._builder.copy()
        self._follower.tell(moment)
        return moment.build(str(self._path))
