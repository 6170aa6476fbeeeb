"""What was recorded of a log, or of one attempt in it, before names and steps are settled."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from mldebug_mcp.logs.attempt import Message
from mldebug_mcp.logs.columns import Column, Columns, stretches_of
from mldebug_mcp.logs.endings import Tail
from mldebug_mcp.logs.process_starts import Start


@dataclass(slots=True)
class Recorded:
    """Columns by the names that they were logged with, and what stood between the records.

    Args:
        columns: Values with the row, the index of the record, of each.
        rows: Records and events.
        events: Rows of events, ascending: they do not count as records.
        breaks: Rows at which the readers saw another file or table begin.
        resumes: Rows before which the log tells of a resume, in words.
        starts: Programs that started again.
        messages: Lines that read like errors.
        tail: The end of the text, for how it ends.
    """

    columns: Columns = field(default_factory=dict)
    rows: int = 0
    events: list[int] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    resumes: list[int] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    tail: Tail = field(default_factory=Tail)

    @property
    def records(self) -> int:
        """Rows that are no events; of a log of nothing but events, those."""
        return self.rows - len(self.events) or self.rows

    def records_before(self, row: int) -> int:
        """Return how many records stand before a row."""
        return row - bisect_left(self.events, row) if self.rows > len(self.events) else row

    def copy(self) -> Recorded:
        """Return a copy that can be settled or added to."""
        return Recorded(
            {name: column.copy() for name, column in self.columns.items()},
            self.rows, list(self.events), list(self.breaks), list(self.resumes), list(self.starts),
            list(self.messages), self.tail,
        )  # fmt: skip

    def between(self, columns: Columns, first: int, last: int, messages: list[Message]) -> Recorded:
        """Return some columns of the rows first <= row < last, counted from 0 again, with the messages of those."""

        def inside(rows: list[int]) -> list[int]:
            return [row - first for row in rows if first <= row < last]

        cut = {name: _between(column, first, last) for name, column in columns.items()}
        kept = {name: column for name, column in cut.items() if len(column)}
        return Recorded(
            kept, last - first, inside(self.events), inside(self.breaks), inside(self.resumes), [], messages,
            self.tail if last == self.rows else Tail(),
        )  # fmt: skip


def _between(column: Column, first: int, last: int) -> Column:
    rows, values = column.arrays()
    low, high = column.before(first), column.before(last)
    part = Column()
    if high > low:
        part.extend(stretches_of(rows[low:high] - first), values[low:high])
    return part
