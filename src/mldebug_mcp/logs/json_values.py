"""Parsing JSON as trainers write it: bare NaN and Infinity, files cut off in the middle, nesting without end."""

from __future__ import annotations

import json
from collections.abc import Iterator

_DECODER = json.JSONDecoder()


def parse_json(text: str) -> object:
    """Return the value that `text` holds; raises ValueError for anything that is not JSON, however deeply nested."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def objects_in(text: str, start: int = 0) -> Iterator[dict[str, object]]:
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
