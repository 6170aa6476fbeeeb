"""A run that may still be going: a path that is read again and again, each time from where the last read ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mldebug_mcp.access import is_file
from mldebug_mcp.logs.roles.given import given_names
from mldebug_mcp.logs.run import Run, require_logged
from mldebug_mcp.logs.tail import FolderTail, LogTail


class FollowedRun:
    """A log file or a run folder; it may come into being later.

    Args:
        path: The file or folder.
        config: The training configuration, where it does not stand beside the log.
        run: Which run to read, of several.
        names: What names of the log mean that do not say it.

    Raises:
        InputError: a name is to mean what is no metric.
    """

    def __init__(
        self,
        path: str | Path,
        config: str | Path | None = None,
        run: str = "",
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._names = names or {}
        with given_names(self._names):
            pass  # refused at once, not at the first look
        self._path = path
        self._is_plain = config is None and not run
        self._tail: LogTail | None = None
        self._folder = FolderTail(path, config, run, self._names)

    def read(self) -> Run:
        """Return the run as it stands now; see `read_run` for what it raises."""
        if not (self._is_plain and is_file(Path(self._path))):
            return self._folder.read()
        self._tail = self._tail or LogTail(self._path)
        with given_names(self._names):
            run = self._tail.read()
        require_logged(self._names, run, str(self._path))
        return run
