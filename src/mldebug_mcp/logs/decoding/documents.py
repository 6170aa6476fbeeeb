"""The values of a whole document → records, in whatever of the usual forms they stand in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.conventions.frameworks import are_measures_of_boosting
from mldebug_mcp.logs.decoding.curves import curves_in
from mldebug_mcp.logs.decoding.json_values import Object, is_column, parse_object
from mldebug_mcp.logs.decoding.points import add_points
from mldebug_mcp.logs.names import is_telling
from mldebug_mcp.logs.settings.printed import is_configuration
from mldebug_mcp.logs.source import LogFile

SELDOM = 2
"""Rows for one value, from which on a column is one of what is measured seldom: a chosen number."""


def take_document(document: object, builder: RunBuilder) -> None:
    """Give what a document holds to the builder: a list of records, columns, or curves with steps of their own."""
    curves = curves_in(document)
    if curves:
        add_points(builder, curves)
        return
    records = records_in(document)
    if isinstance(document, dict) and all(record is not document for record in records):
        _configure(document, builder)
    for record in records:
        builder.record(record)


def _configure(document: Mapping[str, object], builder: RunBuilder) -> None:
    """Take the configuration that a document holds beside its records."""
    for key, value in document.items():
        if isinstance(value, dict) and is_configuration(value, once=True) and not any(map(is_telling, value)):
            builder.configure(value, key)


def records_in(document: object) -> Sequence[Mapping[str, object]]:
    """Return the records of a document, in whatever of these forms they stand in it."""
    if isinstance(document, list):
        return [record for record in document if isinstance(record, dict)]
    if not isinstance(document, dict):
        return []
    columns = {key: value for key, value in document.items() if is_column(value)}
    if not any(map(is_telling, columns)):  # a History of Keras, written out: {"history": {...}, "epoch": [...]}
        columns = {**columns, **_grouped(document)}
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


def objects_by_line(file: LogFile, builder: RunBuilder) -> Iterator[Object]:
    """Yield the object of each line; the lines that are none are counted in the notes."""
    broken = 0
    for line in file.lines():
        if not line.strip():
            continue
        record = parse_object(line)
        if record is not None:
            yield record
        else:
            broken += 1
    if broken:
        builder.note(f"skipped {broken} line(s) that are not JSON objects")
