"""Logs of MLPerf: lines of `:::MLLOG {...}` (`:::MLL` in older ones) among whatever else a program prints.

A number that names where in the training it stands is a record; any other value is a setting.
Source: https://github.com/mlcommons/training_policies/blob/master/training_rules.adoc and
https://github.com/mlcommons/logging (mlperf_logging/mllog).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import parse_object
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import to_number

NAME = "mllog"

_MLLOG_MARK = ":::MLL"
_LINE = regex(r":::MLL(?:OG)? (?:[\d.]{1,30} (?P<key>\w{1,100}): )?(?P<object>\{.*)")
_INTERVALS = ("INTERVAL_START", "INTERVAL_END")
_PLACES = {
    "step": "step", "step_num": "step", "iteration": "step", "epoch": "epoch", "epoch_num": "epoch",
    "samples": "samples", "samples_count": "samples",
}  # fmt: skip
"""What the metadata of a value may say of where in the training it stands."""


def matches(file: LogFile) -> bool:
    """Its mark stands in the beginning."""
    return _MLLOG_MARK in file.head


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the lines with the mark, and the others as text."""
    from mldebug_mcp.logs.formats.text_log import Text  # its many shapes of lines take long to load

    text = Text(builder)
    text.take_lines(_plain(file.lines(), builder))
    text.end()


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
    if broken:
        builder.note(f"skipped {broken} line(s) of MLPerf that are cut off or no JSON")


def _record(entry: Mapping[str, object], builder: RunBuilder) -> tuple[dict[str, float], dict[str, float]]:
    """Return where a value was measured, and the value; both empty if there is none: then it is kept as a setting."""
    key, value, metadata = entry.get("key"), entry.get("value"), entry.get("metadata")
    if not isinstance(key, str) or value is None or entry.get("event_type") in _INTERVALS:
        return {}, {}
    place = _place(metadata) if isinstance(metadata, dict) else {}
    values = value if isinstance(value, dict) else {key: value}
    numbers = {str(name): number for name, part in values.items() if (number := to_number(part)) is not None}
    if not place:
        builder.configure(values, NAME)
    return (place, numbers) if place and numbers else ({}, {})


def _place(metadata: Mapping[str, object]) -> dict[str, float]:
    """Return what metadata say on where in the training a value stands."""
    named = {_PLACES[name]: to_number(value) for name, value in metadata.items() if name in _PLACES}
    return {name: number for name, number in named.items() if number is not None}
