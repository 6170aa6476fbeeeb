"""CatBoost's `catboost_training.json`: every measure of every set, by iteration, and which way each is better.

The tables and event files next to it hold the same numbers, rounded or cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import objects_in, parse_document
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import to_number

NAME = "catboost"
_SET = regex(r"(?P<kind>learn|test)(?P<number>\d*)")


def matches(file: LogFile) -> bool:
    """It has CatBoost's name, or its head lists measures of learning and of tests."""
    return file.head.lstrip().startswith("{") and '"learn_metrics"' in file.head and '"test_metrics"' in file.head


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the iterations. A training that runs, or was killed, leaves the document open."""
    text = file.text()
    try:
        document = parse_document(text)
        meta, rows = (document.get("meta"), document.get("iterations")) if isinstance(document, dict) else (None, None)
    except ValueError:
        start = text.find("{", text.find("{") + 1)
        found = list(objects_in(text, max(start, 0)))
        meta, rows = (found[0], found[1:]) if found else (None, None)
        builder.note("the document is not closed: the training still runs, or it was killed")
    if not isinstance(meta, Mapping) or not isinstance(rows, list):
        raise InputError(f"{file.name}: no iterations in it; name another file of CatBoost's train_dir")
    names = {key: [_name(metric) for metric in _list(meta.get(f"{key}_metrics"))] for key in ("learn", "test")}
    for row in rows:
        if isinstance(row, Mapping):
            builder.record(dict(_numbers(row, names)))
    builder.configure({"booster": "catboost", "iterations": meta.get("iteration_count")}, NAME)


def _numbers(row: Mapping[str, object], names: Mapping[str, list[str]]) -> Iterator[tuple[str, object]]:
    yield "iteration", row.get("iteration")
    for key, values in row.items():
        of_set = _SET.fullmatch(key)
        if of_set is None:
            continue
        part = "train" if of_set["kind"] == "learn" else f"test{of_set['number']}"
        for name, value in zip(names[of_set["kind"]], _list(values), strict=False):
            if name and to_number(value) is not None:
                yield f"{part}-{name}", value


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _name(measure: object) -> str:
    return str(measure.get("name", "")) if isinstance(measure, Mapping) else ""
