"""Records that are drawn over several lines: boxes, tables, and the bars of rich and fastprogress."""

from __future__ import annotations

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.lines.bars import bar_in, is_fastprogress
from mldebug_mcp.logs.lines.boxes import Box
from mldebug_mcp.logs.lines.copy_paste import CopyPaste
from mldebug_mcp.logs.lines.frameworks import name_framework
from mldebug_mcp.logs.lines.prefixes import without_prefix
from mldebug_mcp.logs.lines.records import Records
from mldebug_mcp.logs.lines.rich_bars import RichBar
from mldebug_mcp.logs.lines.said import drawing_of
from mldebug_mcp.logs.lines.tables import Table
from mldebug_mcp.logs.names import is_telling


class Structures:
    """Gathers their lines and gives whole ones to the records.

    Args:
        builder: Gets notes and the framework.
        records: Where the records go.
    """

    def __init__(self, builder: RunBuilder, records: Records) -> None:
        self._builder = builder
        self._records = records
        self._box = Box()
        self._rich = RichBar()
        self._copied = CopyPaste()
        self.table = Table()

    def is_open(self, *, but_for_table: bool = False) -> bool:
        """Say whether one goes on in the next line; the open table does not count, if `but_for_table`."""
        return self._box.open or self._rich.open or self._copied.open or (self.table.open and not but_for_table)

    def take(self, number: int, line: str) -> bool:
        """Take a line; return whether it is part of a structure."""
        if self._in_rich_bar(number, line) or is_fastprogress(line):
            return True
        copied = self._copied.take(line)
        if copied is not None:
            if copied:
                self._records.assembler.whole(number, copied)
            return True
        message = without_prefix(line).message
        if self._in_box(number, message):
            return True
        bar = bar_in(line)
        cells = bar.head if bar is not None and not bar.around else message
        row = self.table.take(cells) if message.strip() else None
        if row and (self.table.tells or any(map(is_telling, row))):
            self._records.bars.end()
            self._records.assembler.whole(number, row)
        return row is not None

    def end(self) -> None:
        """End what is open."""
        self._box.end()
        self._end_box(0)
        self._rich.end()
        self._end_rich_bar(0)
        if self.table.guessed:
            self._builder.note(f"rows without names are read as {self.table.guessed}")

    def _in_rich_bar(self, number: int, line: str) -> bool:
        taken = self._rich.take(line)
        self._end_rich_bar(number)
        return taken

    def _end_rich_bar(self, number: int) -> None:
        if self._rich.done:
            name_framework(self._builder, f"{self._rich.done.head} [{self._rich.done.metrics}")
            drawing = drawing_of(self._rich.done)
            if drawing.telling:
                self._records.bars.take(number, drawing)
            self._rich.done = None

    def _in_box(self, number: int, message: str) -> bool:
        taken = self._box.take(message)
        self._end_box(number)
        return taken

    def _end_box(self, number: int) -> None:
        if self._box.done:
            self._records.assembler.whole(number, self._box.done)
            self._box.done = None
