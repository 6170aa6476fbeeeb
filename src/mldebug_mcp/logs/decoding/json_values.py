"""Parsing JSON as trainers write it: bare NaN and Infinity, files cut off in the middle, nesting without end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.progress import checkpoint

_DECODER = json.JSONDecoder()
OBJECTS_BETWEEN_CHECKPOINTS = 16_384

Object = dict[str, object]


def parse_json(text: str, each: Callable[[Object], Object] | None = None) -> object:
    """Return the value that `text` holds; `each` is called for every object in it.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text, object_hook=each)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_object(text: str) -> Object | None:
    """Return the object that `text` holds, or None if it holds none."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_column(value: object) -> bool:
    """Say whether a value is a list of numbers, such as a Keras history has for each metric; null is not logged."""
    if not isinstance(value, list) or any(item is not None and to_number(item) is None for item in value[:10]):
        return False
    return next((to_number(item) is not None for item in value if item is not None), False)


def holds_columns(value: object) -> bool:
    """Say whether an object holds columns of numbers or a list of objects, by itself or in the objects in it."""
    if not isinstance(value, dict):
        return False
    return any(
        (is_column(one) and len(one) > 1)
        or (isinstance(one, list) and len(one) > 1 and isinstance(one[0], dict))
        or (isinstance(one, dict) and any(is_column(inner) for inner in one.values()))
        for one in value.values()
    )


def parse_document(text: str) -> object:
    """Return the value of a whole document, with checkpoints: parsing a large one takes seconds."""
    count = 0

    def each(value: Object) -> Object:
        nonlocal count
        count += 1
        if count % OBJECTS_BETWEEN_CHECKPOINTS == 0:
            checkpoint(f"{count:,} objects read")
        return value

    return parse_json(text, each)


def objects_in(text: str, start: int = 0) -> Iterator[Object]:
    """Yield the objects that stand one after another in `text` from `start`, up to the first cut off or broken one."""
    while True:
        brace = text.find("{", start)
        if brace < 0 or text[start:brace].strip(" \t\r\n,["):
            return
        try:
            value, start = _DECODER.raw_decode(text, brace)
        except (ValueError, RecursionError):
            return
        yield value


def cut_off(name: str, records: int) -> str:
    """Return the note of a document of which only the records at its beginning could be read."""
    return f"{name} is cut off or broken: {records} whole records were read from its beginning"
