"""Printed objects: dictionaries, JSON, and what `print` makes of a Namespace, a dataclass or TrainingArguments.

One tolerant parser for all of them: nothing is evaluated, and what has no meaning as a setting stays text.
"""

from __future__ import annotations

import re

from mldebug_mcp.logs.settings.values import MAX_TEXT, parse_value
from mldebug_mcp.text import shorten

MAX_DEPTH = 20
MAX_OBJECT = 200_000
"""Characters of a printed object that are read."""

_SPACE = re.compile(r"\s*")
_STRING = re.compile(r"[rbuf]?(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")", re.DOTALL)
_NAMED = re.compile(r"([A-Za-z_][\w.]{0,120})\s*\(")
_KEYWORD = re.compile(r"([A-Za-z_]\w{0,120})\s*=(?!=)\s*")
_ENUM = re.compile(r"<[\w.]+(?::\s*([^<>\n]{1,200}))?>")
_BARE = re.compile(r"[^,(){}\[\]\n:=]*(?::(?!\s)[^,(){}\[\]\n]*)?")
_BARE_ITEM = re.compile(r"[^,)}\]\n]*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class NotAnObjectError(ValueError):
    """The text is not a printed object."""


def parse_object(text: str, start: int = 0) -> tuple[object, int]:
    """Return the object printed at a place of a text, and where it ends.

    `Namespace(lr=0.1)` and `{'lr': 0.1}` are mappings, `(0.9, 0.95)` is a list, `<Strategy.STEPS: 'steps'>` is "steps".

    Raises:
        NotAnObjectError: there is none, it is cut off, or it is nested too deeply.
    """
    return _Parser(text[: start + MAX_OBJECT]).value(start, 0)


def value_in(text: str) -> object:
    """Return what the text behind a key stands for: a plain value, or a printed list or mapping."""
    if text[:1] and text[:1] in "[({":
        try:
            return parse_object(text)[0]
        except NotAnObjectError:
            return text
    return parse_value(text)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, at: int, depth: int) -> tuple[object, int]:
        if depth > MAX_DEPTH:
            raise NotAnObjectError("nested too deeply")
        at = self._skip(at)
        sign = self._text[at : at + 1]
        if sign == "{":
            return self._items(at + 1, "}", depth)
        if sign and sign in "[(":
            return self._items(at + 1, _CLOSING[sign], depth)
        string = _STRING.match(self._text, at)
        if string:
            raw = string[1] if string[1] is not None else string[2]
            return shorten(_ESCAPED.sub(r"\1", raw), MAX_TEXT) if raw else "", string.end()
        named = _NAMED.match(self._text, at)
        if named:
            inner, end = self._items(named.end(), ")", depth)
            return _of_a_call(named[1], inner), end
        enum = _ENUM.match(self._text, at)
        if enum:
            return parse_value(enum[1] or enum[0]), enum.end()
        bare = _BARE_ITEM.match(self._text, at)
        assert bare is not None  # noqa: S101 - it matches nothing too
        return parse_value(bare[0]), bare.end()

    def _items(self, at: int, closing: str, depth: int) -> tuple[object, int]:
        """Read what stands between brackets: pairs make a mapping, values a list."""
        pairs: dict[str, object] = {}
        values: list[object] = []
        while True:
            at = self._skip(at)
            if at >= len(self._text):
                raise NotAnObjectError("cut off")
            if self._text[at] == closing:
                holds = closing == ")" and values and isinstance(values[0], float | int | list)  # array([1], dtype=...)
                return (values if holds else pairs or (values if closing != "}" else {})), at + 1
            if self._text[at] == ",":
                at += 1
                continue
            before = at
            keyword = _KEYWORD.match(self._text, at) if closing == ")" else None
            if keyword:
                pairs[keyword[1]], at = self.value(keyword.end(), depth + 1)
            elif closing == "}":
                key, at = self._key(at, depth)
                pairs[key], at = self.value(at, depth + 1)
            else:
                value, at = self.value(at, depth + 1)
                values.append(value)
            if at == before:
                raise NotAnObjectError("a bracket that was not opened")

    def _key(self, at: int, depth: int) -> tuple[str, int]:
        string = _STRING.match(self._text, at)
        if string:
            key, at = str(string[1] if string[1] is not None else string[2]), string.end()
        elif self._text[at] in "(<":
            value, at = self.value(at, depth + 1)
            key = str(value)
        else:
            bare = _BARE.match(self._text, at)
            assert bare is not None  # noqa: S101 - it matches nothing too
            key, at = bare[0].strip(), bare.end()
        at = self._skip(at)
        if self._text[at : at + 1] != ":":
            raise NotAnObjectError("a key without a value")
        return key, at + 1

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return at if space is None else space.end()


def _of_a_call(name: str, inner: object) -> object:
    """Return the arguments of a printed object; of one with a single value, as `PosixPath('x')`, that value."""
    if isinstance(inner, dict) and inner:
        return inner
    if isinstance(inner, list) and len(inner) == 1:
        return inner[0]
    return inner or name
