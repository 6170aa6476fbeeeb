"""Lines of text inside of another form: notebooks, the logs of containers, and the lines of MLPerf."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import parse_document, parse_object
from mldebug_mcp.logs.log_file import BLOCK_BYTES, HEAD_BYTES, LogFile, pieces
from mldebug_mcp.logs.names.metrics import is_telling, numbers_in
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.settings.printed import settings_in_head

_FIELDS = ("log", "message", "msg", "line", "text", "textPayload", "content")
"""What the field is called that holds the line, the surest first."""
_LOOKED_AT = 200
"""Lines that are looked at for one that tells a metric."""


class WrappedTextReader:
    """JSON lines that each wrap a line of text, as Docker, Kubernetes and cloud logging keep what a program printed."""

    NAME = "text"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """Its first lines are objects of text and no metrics, and a text among them tells one."""
        lines = [line for line in file.head.splitlines()[:_LOOKED_AT] if line.strip()]
        if not lines or not lines[0].startswith("{"):
            return False
        records = []
        for record in map(parse_object, lines):
            if record is not None and (not _field(record) or _has_telling_metric(record)):
                return False
            records += [record] if record is not None else []
        if 2 * len(records) < len(lines):
            return False
        from mldebug_mcp.logs.text.parsed_line import content_of  # the shapes of lines take long to load

        contents = (content_of(line) for record in records for line in _lines(record))
        parts = ((line_content.record, line_content.plain, line_content.drawing) for line_content in contents)
        return any(
            record is not None or any(part is not None and part.telling for part in (plain, drawing))
            for record, plain, drawing in parts
        )

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the lines as text; what is not an object is one by itself."""
        from mldebug_mcp.logs.formats.text_log import read_lines

        read_lines(_unwrapped(file.lines()), builder)


def _unwrapped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        record = parse_object(line)
        yield from [line] if record is None else _lines(record)


def _lines(record: Mapping[str, object]) -> list[str]:
    field = _field(record)
    return str(record[field]).splitlines() if field else []


def _field(record: Mapping[str, object]) -> str:
    """Return the field that holds a line, "" if none does."""
    return next((field for field in _FIELDS if isinstance(record.get(field), str)), "")


def _has_telling_metric(record: Mapping[str, object]) -> bool:
    return any(is_telling(name) for name, _ in numbers_in(record))


MOST_PARTS = 2000
"""Cells that are a part each; what those after them printed is one more. People's notebooks have some hundred."""
_CELL = regex(r"<t[dh]\b[^<>]*>")
_TAG = regex(r"<[^<>]*>")


class NotebookReader:
    """Jupyter notebooks: what their cells printed, cell by cell, each as a log of text.

    Read are streams, results and tracebacks, and tables of HTML, in which the Trainer of Transformers and fastai show
    their progress. Each cell may train anew: steps that begin again in another cell are another part. Source:
    https://nbformat.readthedocs.io/en/latest/format_description.html (version 4).
    """

    NAME = "notebook"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """Its name says so, and it begins as an object."""
        return file.plain_name.lower().endswith(".ipynb") and file.head.lstrip().startswith("{")

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read what the cells printed, in the order of the cells."""
        try:
            document = parse_document(file.text())
        except ValueError as error:
            raise InputError(f"{file.name}: not valid JSON ({error}); save the notebook again") from None
        cells = document.get("cells") if isinstance(document, dict) else None
        if not isinstance(cells, list):
            raise InputError(
                f"{file.name}: no cells in it, as of nbformat 4; open and save it in Jupyter, or export the log"
            )
        telling = (printed for cell in cells if (printed := _printed(cell)))
        for printed in islice(telling, MOST_PARTS):
            _take(printed, builder)
        rest = list(chain.from_iterable(telling))
        if rest:
            builder.note(
                f"more than {MOST_PARTS:,} cells printed something: what those after them printed is read as one"
            )
            _take(rest, builder)


def _take(printed: list[str], builder: RunBuilder) -> None:
    """Take what was printed as a part of its own."""
    builder.new_part()
    shown = "\n".join(printed)
    builder.configure(settings_in_head(shown[:HEAD_BYTES]))
    from mldebug_mcp.logs.formats.text_log import Text  # its many shapes of lines take long to load

    text = Text(builder)
    for block in pieces(shown.encode(errors="replace"), BLOCK_BYTES):
        text.take_block(block)
    text.end()


def _printed(cell: object) -> list[str]:
    """Return what a cell printed, output by output."""
    outputs = cell.get("outputs") if isinstance(cell, dict) else None
    if not isinstance(outputs, list):
        return []
    shown = (_shown_of(output) for output in outputs if isinstance(output, dict))
    return [text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n") for text in shown if text]


def _shown_of(output: Mapping[str, object]) -> str:
    """Return the lines of an output; the data of a result are the same thing in several forms."""
    data = output.get("data")
    if isinstance(data, dict):
        markup = _joined(data.get("text/html"))
        return "\n".join(_rows(markup)) if markup else _joined(data.get("text/plain"))
    if output.get("output_type") == "error":
        traceback = output.get("traceback")
        lines = [line for line in traceback if isinstance(line, str)] if isinstance(traceback, list) else []
        return "\n".join(lines) or f"{output.get('ename')}: {output.get('evalue')}"
    return _joined(output.get("text"))


def _joined(text: object) -> str:
    """Return a text that is stored whole or as a list of lines with their ends."""
    if isinstance(text, list):
        return "".join(line for line in text if isinstance(line, str))
    return text if isinstance(text, str) else ""


def _rows(markup: str) -> Iterator[str]:
    """Yield the rows of the tables in HTML, their cells parted by tabs.

    A table whose first column has no name is one of data: pandas shows the index of its rows there.
    """
    for table in markup.split("<table")[1:]:
        rows = [[_cell_text(cell) for cell in _CELL.split(row)[1:]] for row in table.split("<tr")[1:]]
        if rows and rows[0] and rows[0][0]:
            yield from map("\t".join, rows)


def _cell_text(cell: str) -> str:
    """Return what a reader sees of a cell, in one line."""
    import html  # its table of entities is long

    return " ".join(html.unescape(_TAG.sub("", cell)).split())


_MLLOG_MARK = ":::MLL"
_LINE = regex(r":::MLL(?:OG)? (?:[\d.]{1,30} (?P<key>\w{1,100}): )?(?P<object>\{.*)")
_INTERVALS = ("INTERVAL_START", "INTERVAL_END")
_PLACES = {
    "step": "step", "step_num": "step", "iteration": "step", "epoch": "epoch", "epoch_num": "epoch",
    "samples": "samples", "samples_count": "samples",
}  # fmt: skip
"""What the metadata of a value may say of where in the training it stands."""


class MllogReader:
    """Logs of MLPerf: lines of `:::MLLOG {...}` (`:::MLL` in older ones) among whatever else a program prints.

    A number that names where in the training it stands is a record; any other value is a setting.
    Source: https://github.com/mlcommons/training_policies/blob/master/training_rules.adoc and
    https://github.com/mlcommons/logging (mlperf_logging/mllog).
    """

    NAME = "mllog"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """Its mark stands in the beginning."""
        return _MLLOG_MARK in file.head

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the lines with the mark, and the others as text."""
        from mldebug_mcp.logs.formats.text_log import read_lines  # its many shapes of lines take long to load

        read_lines(_plain(file.lines(), builder), builder)


def _plain(lines: Iterator[str], builder: RunBuilder) -> Iterator[str]:
    """Yield every line, a record of MLPerf as a line that holds just that; its settings go to the builder.

    Values at one place that follow one another are one record.
    """
    broken = 0
    here: dict[str, float] = {}
    for line in lines:
        marked = _LINE.search(line) if _MLLOG_MARK in line else None
        entry = parse_object(marked["object"].rstrip()) if marked is not None else None
        broken += marked is not None and entry is None
        place, numbers = _record({"key": marked["key"], **entry}, builder) if marked and entry else ({}, {})
        if here and (not place.items() <= here.items() or not here.keys().isdisjoint(numbers) or marked is None):
            yield json.dumps(here)
            here = {}
        if marked is None:
            yield line
        elif numbers:
            here |= place | numbers
    if here:
        yield json.dumps(here)
    builder.skipped(broken, "line(s) of MLPerf that are cut off or no JSON")


def _record(entry: Mapping[str, object], builder: RunBuilder) -> tuple[dict[str, float], dict[str, float]]:
    """Return where a value was measured, and the value; both empty if there is none: then it is kept as a setting."""
    key, value, metadata = entry.get("key"), entry.get("value"), entry.get("metadata")
    if not isinstance(key, str) or value is None or entry.get("event_type") in _INTERVALS:
        return {}, {}
    place = _place(metadata) if isinstance(metadata, dict) else {}
    values = value if isinstance(value, dict) else {key: value}
    numbers = {str(name): number for name, part in values.items() if (number := to_number(part)) is not None}
    if not place:
        builder.configure(values, MllogReader.NAME)
    return (place, numbers) if place and numbers else ({}, {})


def _place(metadata: Mapping[str, object]) -> dict[str, float]:
    """Return what metadata say on where in the training a value stands."""
    named = {_PLACES[name]: to_number(value) for name, value in metadata.items() if name in _PLACES}
    return {name: number for name, number in named.items() if number is not None}
