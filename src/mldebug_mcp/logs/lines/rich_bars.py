"""Lightning's bar as Rich draws it: the metrics behind it are wrapped over the lines below, in their own column."""

from __future__ import annotations

import re

from mldebug_mcp.logs.lines.bars import MAX_METRICS, Bar

_BAR = re.compile(
    r"Epoch (?P<epoch>\d+)/(?:\d+|-\d+)\s+(?:[━╸╺─]+\s+)?(?P<at>\d+)/(?P<total>\d+)\s+\d+:\d\d:\d\d\s+•\s+[-:\d]+"
    r"\s+[\d.]+(?:it|s)/(?:s|it)\s*(?P<metrics>.*)"
)
_COLUMN = " " * 20
MAX_LINES = 100
"""Lines over which the metrics of one bar may be wrapped."""


class RichBar:
    """Gathers a bar and the lines of its metrics. `take` a line; when the bar has ended, `done` holds it."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._metrics: list[str] = []
        self.done: Bar | None = None

    @property
    def open(self) -> bool:
        """Whether metrics of a bar may follow."""
        return self._bar is not None

    def take(self, line: str) -> bool:
        """Take a line if it belongs to a bar."""
        if self._bar is not None and line.startswith(_COLUMN) and len(self._metrics) < MAX_LINES:
            self._metrics.append(line.strip())
            return True
        self.end()
        match = _BAR.match(line) if line.startswith("Epoch ") else None
        if match is None:
            return False
        self._bar = Bar(f"Epoch {match['epoch']}:", int(match["at"]), int(match["total"]), "", "")
        self._metrics = [match["metrics"]]
        return True

    def end(self) -> None:
        """End the bar that is open, if one is."""
        if self._bar is not None:
            self.done = self._bar._replace(metrics=" ".join(self._metrics)[:MAX_METRICS])
        self._bar, self._metrics = None, []
