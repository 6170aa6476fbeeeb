"""What detectron2 prints to be copied: the task, the names and the values of an evaluation, in a line each.

Of a task that is a set of data alone: the scores of boxes and masks stand in a table of their own above.
"""

from __future__ import annotations

from mldebug_mcp.logs.lines.phases import names_evaluation
from mldebug_mcp.logs.names import canonical, is_telling
from mldebug_mcp.logs.numbers import parse_number

_MARK, _TASK = "copypaste: ", "Task: "


class CopyPaste:
    """The lines that are open. `take` one; the answer is its record, empty before the values, None if it is no part."""

    def __init__(self) -> None:
        self.open = False
        self._names: list[str] = []

    def take(self, line: str) -> dict[str, float] | None:
        """Take a line if it is one of them."""
        _, mark, said = line.partition(_MARK)
        if not mark or not (self.open or said.startswith(_TASK)):
            self.open = False
            return None
        if said.startswith(_TASK):
            self.open, self._names = names_evaluation(said.removeprefix(_TASK).strip()), []
            return {} if self.open else None
        cells = [cell.strip() for cell in said.split(",")]
        if not self._names:
            self._names, self.open = cells, any(map(is_telling, cells))
            return {}
        self.open = False
        numbers = zip(self._names, map(parse_number, cells), strict=False)
        return {canonical(f"eval_{name}"): number for name, number in numbers if number is not None}
