"""One JSON document: a list of records, an object of columns (a Keras history), or a summary object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.decoding.json_values import cut_off, is_column, objects_in, parse_document
from mldebug_mcp.logs.formats import text_log
from mldebug_mcp.logs.framework_columns import are_measures_of_boosting
from mldebug_mcp.logs.names import is_telling
from mldebug_mcp.logs.source import LogFile

NAME = "json"
SELDOM = 2
"""Rows for one value, from which on a column is one of what is measured seldom: a chosen number."""


def matches(file: LogFile) -> bool:
    """It begins as a JSON object or list."""
    return file.head.lstrip()[:1] in ("{", "[") and (
        file.plain_name.endswith(".json") or file.head.lstrip()[:2] in ("[{", '{"', "{\n", "[\n")
    )


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the records, wherever in the document they stand."""
    text = file.text()
    try:
        document = parse_document(text)
    except ValueError as error:
        records: list[object] = list(objects_in(text)) if text.lstrip().startswith("[") else []
        if not records and text.lstrip().startswith("{") and str(error).startswith("Extra data"):
            builder.formats[-1:] = [text_log.NAME]
            text_log.read(file, builder)  # a log that begins with the configuration, printed as JSON
            return
        if not records:
            raise InputError(
                f"{file.name}: not valid JSON ({error}); if records follow one another, name it .jsonl"
            ) from None
        builder.note(cut_off(file.path.name, len(records)))
        document = records
    for record in records_in(document):
        builder.record(record)


def records_in(document: object) -> Sequence[Mapping[str, object]]:
    """Return the records of a document, in whatever of these forms they stand in it."""
    if isinstance(document, list):
        return [record for record in document if isinstance(record, dict)]
    if not isinstance(document, dict):
        return []
    columns = {key: value for key, value in document.items() if is_column(value)} or _grouped(document)
    if columns:
        return _rows(columns)
    for value in document.values():
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return value
    return [document]


def _rows(columns: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Return the records of columns.

    A column that is far shorter than the longest was measured now and then, as an evaluation is, and its last value at
    the end: its values are spread evenly. One that is a little shorter lacks its end.
    """
    rows: list[dict[str, object]] = [{} for _ in range(max(map(len, columns.values())))]
    for key, column in columns.items():
        last = len(rows) if SELDOM * len(column) <= len(rows) else len(column)
        for number, value in enumerate(column, start=1):
            rows[math.ceil(number * last / len(column)) - 1][key] = value
    return rows


def _grouped(document: Mapping[str, object]) -> dict[str, list[object]]:
    """Return the columns of the objects in a document: `{"train": {"loss": [...]}, "val": {"loss": [...]}}`."""
    groups = {
        key: {name: column for name, column in value.items() if is_column(column)}
        for key, value in document.items()
        if isinstance(value, dict)
    }
    telling = {key: group for key, group in groups.items() if any(map(is_telling, group))}
    groups = telling or {key: group for key, group in groups.items() if group}
    if len(groups) == 1:
        return next(iter(groups.values()))
    # XGBoost's and LightGBM's `evals_result` holds their measures alone; printed, they stand behind a hyphen.
    between = "-" if are_measures_of_boosting({name for group in groups.values() for name in group}) else "/"
    return {f"{key}{between}{name}": column for key, group in groups.items() for name, column in group.items()}
