"""Jupyter notebooks: what their cells printed, cell by cell, each as a log of text.

Read are streams, results and tracebacks, and tables of HTML, in which the Trainer of Transformers and fastai show their
progress. Each cell may train anew: steps that begin again in another cell are another part.
Source: https://nbformat.readthedocs.io/en/latest/format_description.html (version 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import parse_document
from mldebug_mcp.logs.log_file import BLOCK_BYTES, HEAD_BYTES, LogFile, pieces
from mldebug_mcp.logs.settings.printed import settings_in_head

NAME = "notebook"

MOST_PARTS = 2000
"""Cells that are a part each; what those after them printed is one more. People's notebooks have some hundred."""
_CELL = regex(r"<t[dh]\b[^<>]*>")
_TAG = regex(r"<[^<>]*>")


def matches(file: LogFile) -> bool:
    """Its name says so, and it begins as an object."""
    return file.plain_name.lower().endswith(".ipynb") and file.head.lstrip().startswith("{")


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
        builder.note(f"more than {MOST_PARTS:,} cells printed something: what those after them printed is read as one")
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
        rows = [[_shown(cell) for cell in _CELL.split(row)[1:]] for row in table.split("<tr")[1:]]
        if rows and rows[0] and rows[0][0]:
            yield from map("\t".join, rows)


def _shown(cell: str) -> str:
    """Return what a reader sees of a cell, in one line."""
    import html  # its table of entities is long

    return " ".join(html.unescape(_TAG.sub("", cell)).split())
