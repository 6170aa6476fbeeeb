"""JSON lines: one object per line, flat or nested, as most loggers of one's own write them.

Large files go through polars (`fast_jsonl`), a block of lines at a time; what it cannot read exactly as this module
does comes back here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import clean
from mldebug_mcp.logs.attempts import is_resume, tells_resume
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.documents import holds_runs
from mldebug_mcp.logs.endings import ErrorLines
from mldebug_mcp.logs.json_yaml import holds_columns, parse_json, parse_object
from mldebug_mcp.logs.log_file import LogFile, ahead, blocks, is_fast, is_large, lines_of
from mldebug_mcp.logs.run_tables import ROWS_LOOKED_AT, advice_on_runs

if TYPE_CHECKING:
    from mldebug_mcp.logs.formats.frames import FastRecords

NAME = "jsonl"
MAX_LAST_LINE = 64 * 1024
"""Bytes at the end of a log in which its last record is looked for ..."""
MAX_LAST_LINES = 10
"""... and lines."""


def matches(file: LogFile) -> bool:
    """Its first line that is not empty is a whole JSON object (no lone one of columns), or its name says so."""
    named_so = file.plain_name.endswith((".jsonl", ".ndjson"))
    lines = [line for line in file.head.splitlines() if line.strip()][:2]
    if not lines or not lines[0].lstrip().startswith("{"):
        return False
    try:
        first = parse_json(lines[0])
    except ValueError:
        return named_so
    if len(lines) > 1 and not named_so and not lines[1].lstrip().startswith("{"):
        return False  # the configuration, above a log of text
    is_document = len(lines) == 1 and (holds_columns(first) or holds_runs(first))
    return isinstance(first, dict) and (named_so or not is_document)


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read every line that is an object; count the others in the notes.

    Raises:
        InputError: each line is a run.
    """
    parsed = map(parse_object, islice(file.head.splitlines(), ROWS_LOOKED_AT))
    first = [record for record in parsed if record is not None]
    if advice := advice_on_runs(first):
        raise InputError(f"{file.name}: {advice}")
    records = Records(builder)
    if is_fast(file):
        records.take_blocks(blocks(file))
    else:
        records.take(file.lines())
    records.tell(builder)


def follow(file: LogFile, builder: RunBuilder) -> Records:
    """Return what reads the lines as they come."""
    del file
    return Records(builder)


class Records:
    """Takes lines one by one and counts what is not a record."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._fast: FastRecords | None = None
        self._last_is_broken = False
        self._last: Mapping[str, object] = {}
        self._errors = ErrorLines()
        self.broken = 0
        self.empty = 0

    def take(self, lines: Iterable[str]) -> dict[str, object]:
        """Read lines; return one value of each key in them that is not null."""
        values: dict[str, object] = {}
        for line in lines:
            if not line.strip():
                continue
            record = parse_object(line)
            self._last_is_broken = record is None and line.lstrip().startswith("{")
            if record is None:
                self._take_text(clean(line))
                continue
            self._last = record
            if is_resume(record):
                self._builder.resumed()
                continue
            self.empty += not self._builder.record(record)
            if not record.keys() <= values.keys():
                values |= {key: value for key, value in record.items() if value is not None and key not in values}
        return values

    def _take_text(self, line: str) -> None:
        """Take a line of text between the records or below them: a resume, or what a process wrote when it failed."""
        self.broken += 1
        if self._errors.goes_on(line):
            self._builder.message_goes_on(line)
        elif self._errors.take(line):
            self._builder.message(self._builder.rows + self.broken, line, self._errors.code)
        elif tells_resume(line, begun=bool(self._builder.rows)):
            self._builder.resumed()

    def take_blocks(self, blocks: Iterable[bytes]) -> None:
        """Read blocks of lines through polars, as far as that goes."""
        from mldebug_mcp.logs.formats.frames import FastRecords

        fast = self._fast = self._fast or FastRecords(self._builder)
        last = b""
        for block, parsed in ahead(fast.knowing(blocks), fast.parse):
            for lines in fast.take(block, parsed):
                fast.learn(self.take(lines_of(lines)))
            last = block[-MAX_LAST_LINE:]
        self._last = _last_record(last)
        self._last_is_broken = self._last_is_broken and not fast.took_last

    def take_block(self, block: bytes) -> None:
        """Read a block of lines as a growing file hands it out, mostly a small one."""
        if is_large(len(block)):
            self.take_blocks([block])
        else:
            self.take(lines_of(block))

    def tell(self, builder: RunBuilder) -> None:
        """Say in the notes what was no record."""
        builder.ends_with(self._last)
        if self._last_is_broken:
            builder.note(
                "the last line is cut off: a record is still being written, or the run was killed while writing"
            )
        broken = self.broken - self._last_is_broken
        if broken:
            builder.note(f"skipped {broken} line(s) that are not JSON objects")
        empty = self.empty + (self._fast.empty if self._fast is not None else 0)
        if empty:
            builder.note(f"skipped {empty} record(s) without a number")


def _last_record(block: bytes) -> dict[str, object]:
    """Return the last record of some lines as it was parsed, empty if there is none."""
    records = (parse_object(line) for line in reversed(lines_of(block)))
    return next((record for record in islice(records, MAX_LAST_LINES) if record is not None), {})
