"""What every answer has to hold to: errors of ours in one clean line, clean text, finite or tagged numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NoReturn

from mldebug_mcp.core.text import clean
from mldebug_mcp.models.base import Model

LONGEST_ERROR = 2000
LONGEST_TEXT = 20_000


class BrokenPromiseError(Exception):
    """An answer or an error breaks what is promised of all of them."""


def check_answer(answer: Model) -> None:
    """Raise BrokenPromiseError unless an answer could go to any client as it is."""
    try:
        value = json.loads(answer.to_json(), parse_constant=_no_constant)
    except ValueError as error:
        raise BrokenPromiseError(f"its JSON is not valid: {error}") from None
    for text in texts(value):
        check_text(text)


def check_error(error: Exception) -> None:
    """Raise BrokenPromiseError unless the message of an error, as doors show it, is one bounded line."""
    message = clean(str(error))
    if "\n" in message or not message.strip() or len(message) > LONGEST_ERROR:
        raise BrokenPromiseError(f"an error of {len(message)} characters or several lines: {message[:200]!r}")


def check_text(text: str) -> None:
    """Raise BrokenPromiseError unless a text is clean, bounded, and can be encoded."""
    if clean(text) != text or len(text) > LONGEST_TEXT:
        raise BrokenPromiseError(f"text of {len(text)} characters that is not clean or too long: {text[:200]!r}")
    text.encode()


def texts(value: object) -> Iterator[str]:
    """Yield every string in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from texts(one)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}")
