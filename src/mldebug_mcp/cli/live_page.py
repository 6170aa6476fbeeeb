"""The page of a run as it stands now: made anew when its log has grown."""

from __future__ import annotations

import time
from html import escape
from pathlib import Path

from mldebug_mcp.diagnose.diagnosis import diagnose
from mldebug_mcp.diagnose.watch import GOING_ON, SILENT
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.followed import FollowedRun
from mldebug_mcp.measure.beginning import has_finished
from mldebug_mcp.paths import expanded
from mldebug_mcp.report.diagnosis_html import diagnosis_html, live_html


class LivePage:
    """A page on a run that may still be going.

    Args:
        path: The log file or run folder, as the user named it.
        log: What reads it.
        reference: A run that went well, to compare with.
    """

    def __init__(self, path: str, log: FollowedRun, reference: Run | None = None) -> None:
        self._path, self._log, self._reference = path, log, reference
        self._come: tuple[int, float] | None = None
        self._grew = False
        self._html = ""

    def html(self) -> str:
        """Return the page, the same as before if nothing was written since."""
        try:
            run = self._log.read()
        except InputError as error:
            told = f"<h1>{escape(self._path)}</h1><p class=verdict>Waiting for a log: {escape(str(error))}</p>"
            return self._html if self._come is not None else live_html(self._path, [told])
        come = (run.records, run.last_step)
        if come != self._come:
            self._grew = self._grew or self._come is not None
            self._come = come
            self._html = self._page(run)
        return self._html

    def _page(self, run: Run) -> str:
        # The log of a run that is still going ends before its plan because it is not over.
        going_on = (self._grew or _was_just_written(expanded(self._path))) and not has_finished(run)
        answer = diagnose(run, self._reference, findings=[GOING_ON] if going_on else [])
        return diagnosis_html(answer, run, self._reference, live=True)


def _was_just_written(path: Path) -> bool:
    """Say whether a file, or one that stands in a folder, was written within the time after which a run is silent."""
    try:
        files = [one for one in path.iterdir() if one.is_file()] if path.is_dir() else [path]
        return any(time.time() - one.stat().st_mtime < SILENT for one in files)
    except OSError:
        return False
