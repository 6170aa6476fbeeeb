"""Recordings of `mldebug_mcp.recorder`: JSON lines of steps, between heads that tell settings and lines of events.

The rows of batches are no metric: they are left out here, and looked up in the file where they are asked for. What
stays of them is how many steps before the first row of a batch was in one before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean, figure, shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.formats.jsonl import Records
from mldebug_mcp.logs.json_yaml import parse_object
from mldebug_mcp.logs.log_file import LogFile, blocks, is_large, lines_of
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.rank_recordings import NO_STEP, WENT_ON
from mldebug_mcp.logs.run import Incident

NAME = "recorder"
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


def matches(file: LogFile) -> bool:
    """Its first line is the head of a recording."""
    return file.head.startswith('{"recorder"')


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the steps, the settings in the heads, and what happened."""
    lines = RecordedLines(builder)
    for block in blocks(file):
        lines.take_block(block)
    lines.tell(builder)


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
            bare = _ROWS.sub(self._again, piece)
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

    def _again(self, found: re.Match[bytes]) -> bytes:
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
        text = f"{_lost(level)}{_began(_places(event))}"
        note = event.get("note")
        text += f"; {shorten(clean(note), 120)}" if isinstance(note, str) else ""
    elif what == "hang":
        text = f"{NO_STEP} {level} s{_lines(event.get('at'))}; the stacks are in {_name(event.get('stacks'))}"
    elif what == "went_on":
        text = f"{WENT_ON} after {level} s"
    else:
        return ""
    batch = event.get("batch")
    return f"{text}; its batch is in {_name(batch)}" if isinstance(batch, str) else text


def _lines(at: object) -> str:
    """Say where the main thread stood."""
    lines = [_name(frame) for frame in at[:MOST_NAMES]] if isinstance(at, list) else []
    return f", at {' < '.join(lines)}" if lines else ""


def _lost(level: str) -> str:
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
