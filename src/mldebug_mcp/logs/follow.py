"""A run that may still be going: a path that is read again and again, each time from where the last read ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from mldebug_mcp.core.access import EmptyFileError, is_file
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import replace
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.endings import tail_of
from mldebug_mcp.logs.formats import TOO_LONG, Reader, reader_of
from mldebug_mcp.logs.kinds import concluded
from mldebug_mcp.logs.log_file import BLOCK_BYTES, HEAD_BYTES, LogFile, first_line_end, whole_lines
from mldebug_mcp.logs.names.grammar import given_names
from mldebug_mcp.logs.read import ONLY_ERRORS, configured, read_log_file, read_run, settings_files_of
from mldebug_mcp.logs.run import Run, require_logged
from mldebug_mcp.logs.settings import Settings
from mldebug_mcp.logs.settings.files import read_found
from mldebug_mcp.logs.settings.printed import settings_in_head

_KNOWN_BY = 1024
"""First bytes by which a file is known again."""


@runtime_checkable
class TakesLines(Protocol):
    """Reads a growing log of lines."""

    def take_block(self, block: bytes) -> None:
        """Read whole lines."""

    def tell(self, builder: RunBuilder) -> None:
        """Finish a builder that is thrown away: give it what is still open, and say in its notes what was no record."""


class TakesBytes(Protocol):
    """Reads a growing log of any kind."""

    block_bytes: int

    def take(self, data: bytes) -> int:
        """Read the whole records at the beginning of `data`; return where to go on, 0 if more is needed first."""

    def tell(self, builder: RunBuilder) -> None:
        """Finish a builder that is thrown away."""


@runtime_checkable
class _CanFollow(Protocol):
    def follow(self, file: LogFile, builder: RunBuilder) -> TakesLines | TakesBytes: ...


class _Lines:
    """Hands whole lines to their reader; those that are too long are left out, as `blocks` does."""

    def __init__(self, reader: TakesLines) -> None:
        self.block_bytes = BLOCK_BYTES
        self._reader = reader
        self._inside_long = False
        self._skipped = 0

    def take(self, data: bytes) -> int:
        if self._inside_long:
            end = first_line_end(data)
            self._inside_long = not end
            return end or len(data)
        whole = whole_lines(data)
        if whole:
            self._reader.take_block(whole)
        elif len(data) == BLOCK_BYTES:
            self._skipped += 1
            self._inside_long = True
            return len(data)
        return len(whole)

    def tell(self, builder: RunBuilder) -> None:
        self._reader.tell(builder)
        builder.skipped(self._skipped, TOO_LONG)


class LogTail:
    """A growing log file.

    Text of any framework, JSON lines, tables and TensorBoard event files are read from where the last read ended; a
    last line or record that is only half written waits for the next read. A file of another format is read again when
    it has changed. A file that was replaced, cut short or written anew is begun anew, and the notes say so.

    Args:
        path: The log file.
        configured: Take the configuration that stands next to it.
    """

    def __init__(self, path: str | Path, *, configured: bool = True) -> None:
        self._path = Path(path)
        self._configured = configured
        self.holds_runs = False
        """Whether it holds several runs, one of them read."""
        self._reader: Reader | None = None
        self._follower: TakesBytes | None = None
        self._builder = RunBuilder()
        self._of_files: tuple[Settings, tuple[str, ...]] = (Settings(), ())
        self._identity = (0, 0)
        self._beginning = b""
        self._state = (0, 0)
        self._run: Run | None = None
        self._restarts = 0
        self.position = 0
        """Bytes read so far."""

    def read(self) -> Run:
        """Return the run as it stands now; the same object if nothing was added.

        Raises:
            InputError: the file cannot be read or holds no metrics yet.
        """
        try:
            file = _without_half_line(LogFile.open(self._path))
        except EmptyFileError:
            self._identity = (0, 0)  # emptied: however alike it begins, what comes next is another log
            raise
        if self._reader is None:
            self._begin(file)
        elif not self._has_only_grown(file):
            self._restarts += 1
            self._begin(file)
        elif self._state[0] < HEAD_BYTES and (
            reader_of(file) is not self._reader or (self._follower is not None and self._cannot_follow(file))
        ):
            self._begin(file)  # the beginning alone had looked like another format
        self._identity = file.identity
        self._beginning = _beginning(file, _KNOWN_BY)
        state = (file.size, file.modified)
        if self._run is None or state != self._state:
            self._state = state
            self._run = self._noted(self._whole_run()) if self._follower is None else self._grown(file)
        return self._run

    def _whole_run(self) -> Run:
        if self._configured:
            return read_run(self._path)
        run, self.holds_runs = read_log_file(self._path)
        return run

    def _has_only_grown(self, file: LogFile) -> bool:
        """Say whether the file has only grown since it was last read."""
        begins_alike = _beginning(file, len(self._beginning)) == self._beginning
        return file.identity == self._identity and file.size >= self._state[0] and begins_alike

    @staticmethod
    def _cannot_follow(file: LogFile) -> bool:
        """Say whether the bytes of a file are not its text: then it is read whole each time."""
        return not file.binary and not file.is_plain

    def _begin(self, file: LogFile) -> None:
        reader = self._reader = reader_of(file)
        self._builder, self._run, self._follower, self.position = RunBuilder(), None, None, 0
        self._builder.formats.append(reader.NAME)
        if isinstance(reader, _CanFollow) and not self._cannot_follow(file):
            follower = reader.follow(file, self._builder)
            self._follower = _Lines(follower) if isinstance(follower, TakesLines) else follower
            self.position = len("\ufeff".encode()) if file.encoding == "utf-8-sig" else 0
        self._of_files = read_found(settings_files_of(self._path) if self._configured else ())

    def _grown(self, file: LogFile) -> Run:
        assert self._follower is not None  # noqa: S101 - a programming error
        before = self.position
        with file.stream() as stream:
            stream.seek(self.position)
            while (left := file.size - self.position) > 0:
                taken = self._follower.take(stream.read(min(self._follower.block_bytes, left)))
                if not taken:
                    break
                self.position += taken
                stream.seek(self.position)
        if self._run is not None and self.position == before:
            return self._run
        moment = self._builder.copy()
        self._follower.tell(moment)
        moment.ends(tail_of(file))
        moment.configure(settings_in_head(file.head))
        run = configured(moment.build(str(self._path)), *self._of_files)
        self.holds_runs = moment.holds_runs
        if not run.series and not run.messages:
            raise InputError(f"{shorten(str(self._path), 200)}: no metrics in it yet; wait for the first log record")
        return self._noted(concluded(run) if run.series else replace(run, notes=(*run.notes, ONLY_ERRORS)))

    def _noted(self, run: Run) -> Run:
        if not self._restarts:
            return run
        note = (
            f"the file was replaced, cut short or written anew {self._restarts} time(s): it is read from its beginning"
        )
        return replace(run, notes=(*run.notes, note))


def _without_half_line(file: LogFile) -> LogFile:
    """Return the file with a head that ends at a line end, if it has one: half a line misleads."""
    if file.size < HEAD_BYTES:
        end = max(file.head.rfind("\n"), file.head.rfind("\r", 0, -1)) + 1
        file.head = file.head[:end] or file.head
    return file


def _beginning(file: LogFile, count: int) -> bytes:
    with file.stream() as stream:
        return stream.read(count)


class FollowedRun:
    """A log file or a run folder whose logs grow; it may come into being later.

    Each log is read from where its last read ended, and none that has not changed.

    Args:
        path: The file or folder.
        config: The training configuration, where it does not stand next to the log.
        run: Which run to read, of several.
        names: What names of the log mean that do not say it.

    Raises:
        InputError: a name is to mean something other than a metric.
    """

    def __init__(
        self,
        path: str | Path,
        config: str | Path | None = None,
        run: str = "",
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._path, self._config, self._run, self._names = path, config, run, names or {}
        with given_names(self._names):
            pass  # refused at once, not at the first look
        self._tail: LogTail | None = None
        self._tails: dict[Path, LogTail] = {}
        self._known: dict[tuple[Path, ...], tuple[tuple[int, ...], tuple[Run, bool] | InputError]] = {}

    def read(self) -> Run:
        """Return the run as it stands now; see `read_run` for what it raises."""
        if self._config is not None or self._run or not is_file(Path(self._path)):
            return read_run(self._path, self._config, self._run, self._names, read_log=self._log)
        self._tail = self._tail or LogTail(self._path)
        with given_names(self._names):
            run = self._tail.read()
        require_logged(self._names, run, str(self._path))
        return run

    def _log(self, path: Path, wanted: str = "", more: Sequence[Path] = ()) -> tuple[Run, bool]:
        files = (path, *more)
        states = [file.stat() for file in files]
        stamp = tuple(number for state in states for number in (state.st_ino, state.st_size, state.st_mtime_ns))
        before = self._known.get(files)
        if before is None or before[0] != stamp:
            before = self._known[files] = (stamp, self._read(path, wanted, more))
        if isinstance(before[1], InputError):
            raise before[1]
        return before[1]

    def _read(self, path: Path, wanted: str, more: Sequence[Path]) -> tuple[Run, bool] | InputError:
        try:
            if more or wanted:
                return read_log_file(path, wanted, more)
            tail = self._tails.setdefault(path, LogTail(path, configured=False))
            return tail.read(), tail.holds_runs
        except InputError as error:  # what is no log is not read again either
            return error
