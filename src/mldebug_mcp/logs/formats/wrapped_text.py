"""JSON lines that each wrap a line of text, as Docker, Kubernetes and cloud logging keep what a program printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import parse_object
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.names.metrics import is_telling, numbers_in

NAME = "text"

_FIELDS = ("log", "message", "msg", "line", "text", "textPayload", "content")
"""What the field is called that holds the line, the surest first."""
_LOOKED_AT = 200
"""Lines that are looked at for one that tells a metric."""


def matches(file: LogFile) -> bool:
    """Its first lines are objects of text and no metrics, and a text among them tells one."""
    lines = [line for line in file.head.splitlines()[:_LOOKED_AT] if line.strip()]
    if not lines or not lines[0].startswith("{"):
        return False
    records = [record for line in lines if (record := parse_object(line)) is not None]
    if 2 * len(records) < len(lines) or any(_tells(record) or not _field(record) for record in records):
        return False
    from mldebug_mcp.logs.text.parsed_line import content_of  # the shapes of lines take long to load

    contents = (content_of(line) for record in records for line in _lines(record))
    parts = ((line_content.record, line_content.plain, line_content.drawing) for line_content in contents)
    return any(
        record is not None or any(part is not None and part.telling for part in (plain, drawing))
        for record, plain, drawing in parts
    )


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the lines as text; what is not an object is one by itself."""
    from mldebug_mcp.logs.formats.text_log import Text

    text = Text(builder)
    text.take_lines(_printed(file.lines()))
    text.end()


def _printed(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        record = parse_object(line)
        yield from [line] if record is None else _lines(record)


def _lines(record: Mapping[str, object]) -> list[str]:
    field = _field(record)
    return str(record[field]).splitlines() if field else []


def _field(record: Mapping[str, object]) -> str:
    """Return the field that holds a line, "" if none does."""
    return next((field for field in _FIELDS if isinstance(record.get(field), str)), "")


def _tells(record: Mapping[str, object]) -> bool:
    return any(is_telling(name) for name, _ in numbers_in(record))
