"""Records as JSON or YAML: lines of objects, recordings, one document, or a list of mappings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean, figure, shorten
from mldebug_mcp.logs.attempts import is_resume, tells_resume
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.endings import ErrorLines
from mldebug_mcp.logs.json_yaml import (
    closed,
    cut_off,
    holds_columns,
    listed_records,
    lists_records,
    objects_in,
    parse_document,
    parse_json,
    parse_object,
    printed_records,
    prints_records,
    streamed_records,
    streams_records,
)
from mldebug_mcp.logs.log_file import LogFile, ahead, blocks, is_fast, is_large, lines_of
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.run import Incident
from mldebug_mcp.logs.run_tables import ROWS_LOOKED_AT, advice_on_runs

if TYPE_CHECKING:
    from mldebug_mcp.logs.formats.frames import FastRecords


MAX_LAST_LINE = 64 * 1024
"""Bytes at the end of a log in which its last record is looked for ..."""
MAX_LAST_LINES = 10
"""... and lines."""


class JsonLinesReader:
    """JSON lines: one object per line, flat or nested, as most loggers of one's own write them.

    Large files go through polars (`frames`), a block of lines at a time; what it cannot read exactly as this module
    does comes back here.
    """

    NAME = "jsonl"

    @staticmethod
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
        if named_so or len(lines) > 1:
            return isinstance(first, dict)
        from mldebug_mcp.logs.documents import holds_runs

        return isinstance(first, dict) and not holds_columns(first) and not holds_runs(first)

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read every line that is an object; count the others in the notes.

        Raises:
            InputError: each line is a run.
        """
        parsed = map(parse_object, islice(file.head.splitlines(), ROWS_LOOKED_AT))
        if advice := advice_on_runs(record for record in parsed if record is not None):
            raise InputError(f"{file.name}: {advice}")
        records = Records(builder)
        if is_fast(file):
            records.take_blocks(blocks(file))
        else:
            records.take(file.lines())
        records.tell(builder)

    @staticmethod
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
        builder.skipped(self.broken - self._last_is_broken, "line(s) that are not JSON objects")
        empty = self.empty + (self._fast.empty if self._fast is not None else 0)
        builder.skipped(empty, "record(s) without a number")


def _last_record(block: bytes) -> dict[str, object]:
    """Return the last record of some lines as it was parsed, empty if there is none."""
    records = (parse_object(line) for line in reversed(lines_of(block)))
    return next((record for record in islice(records, MAX_LAST_LINES) if record is not None), {})


_SPECIAL = regex(rb'^\{"recorder".*$|^\{"step": \d+, "event".*$', re.MULTILINE)
_ROWS = regex(rb', "rows": \[([^\],]*)[^\]]*\]')
_STEP_OF_RECORD = regex(rb'\{"step": (\d+)')
ROW_AGAIN = "row_again"
"""How many recorded steps before the first row of a step was there; 0 where it was not."""
MAX_REMEMBERED_ROWS = 1_000_000
"""Rows that are remembered. Chosen: 100 MB, and a recording as large as one may be has not as many steps."""
_NAMED_OTHERWISE = {"data_length": "train_rows", "world": "world_size", "accumulation": "gradient_accumulation_steps"}
"""What the head of a recording calls a setting, where the settings have another name."""
_OF_SAMPLER = ("batch_size", "accumulation", "world", "seed", "drop_last")
MOST_NAMES = 8


class RecordingReader:
    """Recordings of `mldebug_mcp.recorder`: JSON lines of steps, between heads that tell settings and lines of events.

    The rows of batches are no metric: they are left out here, and looked up in the file where they are asked for. What
    stays of them is how many steps before the first row of a batch was in one before.
    """

    NAME = "recorder"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """Its first line is the head of a recording."""
        return file.head.startswith('{"recorder"')

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the steps, the settings in the heads, and what happened."""
        lines = RecordedLines(builder)
        for block in blocks(file):
            lines.take_block(block)
        lines.tell(builder)

    @staticmethod
    def follow(file: LogFile, builder: RunBuilder) -> RecordedLines:
        """Return what reads the lines as they come."""
        del file
        return RecordedLines(builder)


class RecordedLines:
    """Takes blocks of lines."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._records = Records(builder)
        self._heads = self._steps = 0
        self._last_step_by_rows: dict[bytes, int] = {}
        self._starts_anew, self._first = False, 0

    def take_block(self, block: bytes) -> None:
        """Take whole lines; the last one of a file may be cut."""
        for piece, special in _parted(block):
            if self._starts_anew or not self._first:
                self._begin(piece)
            bare = _ROWS.sub(self._repeated_rows, piece)
            if is_large(len(bare)):
                self._records.take_blocks([bare])
            elif bare.strip():
                self._records.take(lines_of(bare))
            special_record = parse_object(special.decode("utf-8", errors="replace")) if special else None
            if special_record is not None and "recorder" in special_record:
                self._head(special_record)
            elif special_record is not None:
                self._event(special_record)

    def tell(self, builder: RunBuilder) -> None:
        """Say in the notes what was no record."""
        self._records.tell(builder)

    def _repeated_rows(self, found: re.Match[bytes]) -> bytes:
        """Return what stands for the rows of a step: how many steps ago the first of them was there."""
        self._steps += 1
        if not found[1]:
            return b""
        before = self._last_step_by_rows.get(found[1], self._steps)
        if len(self._last_step_by_rows) < MAX_REMEMBERED_ROWS:
            self._last_step_by_rows[found[1]] = self._steps
        return b', "%s": %d' % (ROW_AGAIN.encode(), self._steps - before)

    def _begin(self, piece: bytes) -> None:
        """Say that a process which was started again resumes, if its steps go on behind the first one of all."""
        found = _STEP_OF_RECORD.search(piece)
        if found is None:
            return
        if self._starts_anew and int(found[1]) > self._first:
            self._builder.resumed()
        self._first, self._starts_anew = self._first or int(found[1]), False

    def _head(self, head: Mapping[str, object]) -> None:
        """Take settings; a head with a time that continues nothing is that of a process that starts."""
        sampler, recorded = head.get("sampler"), head.get("settings")
        settings: dict[str, object] = dict(recorded) if isinstance(recorded, dict) else {}
        found = {name: head[name] for name in ("data_length", "world") if name in head}
        if isinstance(sampler, dict):
            found |= {name: sampler[name] for name in _OF_SAMPLER if name in sampler}
        settings |= {_NAMED_OTHERWISE.get(name, name): value for name, value in found.items()}
        self._builder.configure(settings, "the recording")
        if "time" in head and not head.get("continued"):
            self._heads += 1
            if self._heads > 1:
                self._builder.new_part()
                self._starts_anew = True

    def _event(self, event: Mapping[str, object]) -> None:
        step = to_number(event.get("step"))
        if step is None:
            return
        if event.get("event") == "exception":
            self._builder.message(self._builder.rows + 1, clean(str(event.get("error", ""))))
            return
        text = event_text(event)
        if text:
            self._builder.incident(Incident(step, text, _places(event)))


def _parted(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what stands between the lines that are no records, each with the one behind it."""
    start = 0
    for found in _SPECIAL.finditer(block):
        yield block[start : found.start()], found[0]
        start = found.end() + 1
    yield block[start:], b""


def event_text(event: Mapping[str, object]) -> str:
    """Return what an event says, for people; "" where it says nothing."""
    what = event.get("event")
    value = to_number(event.get("value"))
    level = "unknown" if value is None else figure(value)
    if what == "spike":
        text = f"the recorder saw the loss jump to {level}"
    elif what == "nonfinite":
        text = f"{_lost_summary(level)}{_began(_places(event))}"
        note = event.get("note")
        text += f"; {shorten(clean(note), 120)}" if isinstance(note, str) else ""
    elif what in ("hang", "went_on"):
        from mldebug_mcp.logs.rank_recordings import NO_STEP, WENT_ON

        text = f"{WENT_ON} after {level} s"
        if what == "hang":
            text = f"{NO_STEP} {level} s{_lines(event.get('at'))}; the stacks are in {_name(event.get('stacks'))}"
    else:
        return ""
    batch = event.get("batch")
    return f"{text}; its batch is in {_name(batch)}" if isinstance(batch, str) else text


def _lines(at: object) -> str:
    """Say where the main thread stood."""
    lines = [_name(frame) for frame in at[:MOST_NAMES]] if isinstance(at, list) else []
    return f", at {' < '.join(lines)}" if lines else ""


def _lost_summary(level: str) -> str:
    if level in ("nan", "inf", "-inf"):
        return f"the recorder saw the loss become {level}"
    return f"the recorder saw gradients that are not finite, at a loss of {level}"


def _places(event: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return where values that are not finite began, by what they are; a loss without later values is alone."""
    began = event.get("began")
    if event.get("event") != "nonfinite" or not isinstance(began, dict):
        return {}
    found = {
        shorten(clean(str(what)), 20): tuple(_name(name) for name in names[:MOST_NAMES])
        for what, names in began.items()
        if isinstance(names, list) and names
    }
    value = event.get("value")
    if isinstance(value, float) and not math.isfinite(value):
        found["loss"] = ()
    return found


def _began(places: Mapping[str, tuple[str, ...]]) -> str:
    """Say where values that are not finite began."""
    parts = [f"{what} of {', '.join(names)}" for what, names in places.items() if names]
    return f"; not finite were the {'; '.join(parts)}" if parts else ""


def _name(text: object) -> str:
    return shorten(clean(str(text)), 80)


_LIST_OF_NUMBERS = regex(r"\s*+\[[\d\s.,eE+-]*+\]\s*+")


class JsonDocumentReader:
    """One JSON document: a list of records or numbers, an object of columns (a Keras history), curves, or a summary."""

    NAME = "json"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """It begins as a JSON object or list, or is a list of numbers under any name."""
        head = file.head.lstrip()
        if head[:1] not in ("{", "["):
            return False
        is_named = file.plain_name.endswith(".json") or head[:2] in ("[{", '{"', "{\n", "[\n")
        return is_named or (len(file.head) == file.size and _LIST_OF_NUMBERS.fullmatch(file.head) is not None)

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the records, wherever in the document they stand."""
        from mldebug_mcp.logs.documents import add_points, exported_tag, take_document
        from mldebug_mcp.logs.formats.table import named_by_its_file, rows_in, take_rows

        text = file.text()
        try:
            document = parse_document(text)
        except ValueError as error:
            records = _whole_items(text) if text.lstrip().startswith("[") else []
            begins_log = (
                str(error).startswith("Extra data")
                or text.lstrip("{ \t\r\n")[:1].isalpha()  # names without quotes
                or text.lstrip("{ \t\r\n").startswith("'")  # Python's dicts
                or '\n{"' in text  # objects that lost their closing brace
            )
            if not records and text.lstrip().startswith("{") and begins_log:
                from mldebug_mcp.logs.formats import text_log

                builder.formats[-1:] = [text_log.NAME]
                text_log.read(file, builder)  # a log that begins with the configuration, printed as JSON
                return
            if not records:
                raise InputError(
                    f"{file.name}: not valid JSON ({error}); if records follow one another, name it .jsonl"
                ) from None
            builder.note(cut_off(file.path.name, len(records)))
            document = records
        curve = exported_tag(document)
        if curve is not None:
            *_, metric = named_by_its_file(["step", "value"], file.path.stem)
            add_points(builder, {metric: curve})
            return
        rows = rows_in(document)
        if rows is not None:
            take_rows(rows, file, builder)
            return
        take_document(document, builder, file.name)


def _whole_items(text: str) -> list[object]:
    """Return the objects, or else the lists, of a list that is cut off."""
    items: list[object] = list(objects_in(text))
    if not items:
        with suppress(ValueError):
            whole = parse_document(closed(text))
            items = whole if isinstance(whole, list) else []
    return items


class YamlReader:
    """YAML records: a list of mappings that a loop appends to, or a stream of documents, each of them a record.

    A list is the document, or stands under a key of it, behind the configuration. Results that RLlib prints have an
    empty line between two. Lists of flat mappings (or of mappings in them) are read line by line: a file of any length
    costs no more than its lines. Anchors, tags and lists in brackets are not what loops append: such lines are counted
    and left out.
    """

    NAME = "yaml"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """It is a list of mappings or has one under a key, a stream of documents, or printed results."""
        return streams_records(file.head) or lists_records(file.head) or prints_records(file.head)

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Put each item of the list, or each document of the stream, into the builder as a record."""
        empty = left = 0
        listed = listed_records if lists_records(file.head) else printed_records
        records = streamed_records if streams_records(file.head) else listed
        for record in records(file.lines()):
            if record is None:
                left += 1
            else:
                empty += not builder.record(record)
        builder.skipped(left, "line(s) that are no keys of a record")
        builder.skipped(empty, "record(s) without a number")
