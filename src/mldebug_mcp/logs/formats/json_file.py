"""One JSON document: a list of records or numbers, an object of columns (a Keras history), curves, or a summary."""

from __future__ import annotations

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.documents import take_document
from mldebug_mcp.logs.formats.bare_columns import rows_in, take_rows
from mldebug_mcp.logs.json_yaml import cut_off, objects_in, parse_document
from mldebug_mcp.logs.log_file import LogFile

NAME = "json"


_LIST_OF_NUMBERS = regex(r"\s*+\[[\d\s.,eE+-]*+\]\s*+")


def matches(file: LogFile) -> bool:
    """It begins as a JSON object or list, or is a list of numbers under any name."""
    head = file.head.lstrip()
    if head[:1] not in ("{", "["):
        return False
    is_named = file.plain_name.endswith(".json") or head[:2] in ("[{", '{"', "{\n", "[\n")
    return is_named or (len(file.head) == file.size and _LIST_OF_NUMBERS.fullmatch(file.head) is not None)


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the records, wherever in the document they stand."""
    text = file.text()
    try:
        document = parse_document(text)
    except ValueError as error:
        records: list[object] = list(objects_in(text)) if text.lstrip().startswith("[") else []
        begins_log = (
            str(error).startswith("Extra data")
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
    rows = rows_in(document)
    if rows is not None:
        take_rows(rows, file, builder)
        return
    take_document(document, builder, file.name)
