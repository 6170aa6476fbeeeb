"""Lines of a shape that is known: matched by its template, and converted together while they follow one another."""

from __future__ import annotations

from copy import deepcopy

from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.drawn import DrawnBars
from mldebug_mcp.logs.lines.parsed import Parsed
from mldebug_mcp.logs.lines.template import Template, learn

MAX_TEMPLATES = 8
"""Shapes of lines that are remembered at a time."""
MAX_TOGETHER = 4096
"""Lines of one shape that are converted together."""


class AlikeLines:
    """Learns the shapes of lines and takes those that have one.

    Args:
        records: Where the records go.
        bars: What bars have drawn before such a line ends with it.
    """

    def __init__(self, records: Assembler, bars: DrawnBars) -> None:
        self._records = records
        self._bars = bars
        self._templates: list[Template] = []
        self._seen: set[tuple[str, ...]] = set()
        self._rows: list[tuple[str, ...]] = []
        self._of: Template | None = None
        self._line = 0

    def __deepcopy__(self, memo: dict[int, object]) -> AlikeLines:
        # A copy is made to end a text that goes on: it learns nothing more.
        other = AlikeLines(deepcopy(self._records, memo), deepcopy(self._bars, memo))
        other._templates, other._seen, other._of = self._templates, self._seen, self._of
        other._rows, other._line = self._rows.copy(), self._line
        return other

    def take(self, number: int, line: str) -> bool:
        """Take a line if its shape is known."""
        for template in self._templates:
            match = template.pattern.fullmatch(line)
            if match is not None:
                self._take(number, template, match.groups())
                return True
        return False

    def end(self) -> None:
        """Give the lines that wait to the records."""
        if self._rows and self._of is not None:
            # The last one stays open: what follows may belong to its step.
            self._records.many(self._of, self._rows[:-1])
            self._records.take(self._line, self._of.parsed(self._rows[-1]))
        self._rows, self._of = [], None

    def learn(self, line: str, parsed: Parsed) -> None:
        """Learn the shape of a line that was parsed, when its like has come before."""
        shape = tuple(parsed.metrics)
        if shape not in self._seen:
            self._seen.add(shape)
            return
        template = learn(line, parsed)
        if template is not None:
            self._templates = [template, *self._templates[: MAX_TEMPLATES - 1]]

    def _take(self, number: int, template: Template, texts: tuple[str, ...]) -> None:
        if template is not self._of or len(self._rows) >= MAX_TOGETHER:
            self.end()
            self._bars.end()
            self._of = template
            self._templates.remove(template)
            self._templates.insert(0, template)
        self._rows.append(texts)
        self._line = number
