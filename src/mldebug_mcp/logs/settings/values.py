"""Values of settings: text becomes flags, numbers, lists and objects.

One tolerant parser reads dictionaries, JSON, and what `print` makes of a Namespace, a dataclass or TrainingArguments:
nothing is evaluated.
"""

from __future__ import annotations

import re

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.numbers import special_number

# Values of settings: what configurations and command lines spell as text becomes flags, numbers, lists and text.

Scalar = str | float | int | bool | None
Value = Scalar | tuple[Scalar, ...]
"""A setting's value; a list of plain values is kept as a tuple."""

MAX_TEXT = 500
"""Characters of a value that are kept."""
MAX_ITEMS = 64
"""Items of a list that are kept."""

_WORDS: dict[str, bool | None] = {
    "true": True, "false": False, "none": None, "null": None, "~": None,
}  # fmt: skip
_FLAGS = {"yes": True, "on": True, "no": False, "off": False, "1": True, "0": False}
_NUMBER_WITH_UNIT = regex(r"([-+]?(?:\d[\d_]*(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,4})?)\s?([kKmMbBgG%]?)")
_FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "%": 0.01}
MAX_DIGITS = 64


def parse_value(text: str) -> Scalar:
    """Return what a bare text stands for: None, a flag, a number, or the text without its quotes.

    Letters for thousands ("2k") are left to `number_of`: "16b" may be a name.
    """
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return shorten(text[1:-1], MAX_TEXT)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    found = _NUMBER_WITH_UNIT.fullmatch(text) if len(text) <= MAX_DIGITS else None
    return shorten(text, MAX_TEXT) if found is None or found[2] else _as_number(found[1])


def number_of(value: object) -> int | float | None:
    """Return the number that a value spells ("3e-4", "100_000", "2k", "0.1%" = 0.001), None if it spells none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value if isinstance(value, float) or abs(value) < 1 << 1000 else None
    if not isinstance(value, str) or len(value) > MAX_DIGITS:
        return None
    text = value.strip().strip("'\"")
    found = _NUMBER_WITH_UNIT.fullmatch(text)
    if found is None:
        return special_number(text.lower())
    number, factor = _as_number(found[1]), _FACTORS[found[2].lower()]
    return number if factor == 1 else number * factor


def flag_of(value: object) -> bool | None:
    """Return the truth that a value spells (true, "False", 1, "no"), None if it spells none."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else None
    text = value.strip().lower() if isinstance(value, str) else ""
    return _FLAGS.get(text, _WORDS.get(text))


def _as_number(digits: str) -> int | float:
    plain = digits.replace("_", "").replace(",", "")
    return int(plain) if plain.lstrip("+-").isdigit() else float(plain)


# Printed objects: dictionaries, JSON, and what `print` makes of a Namespace, a dataclass or TrainingArguments.

MAX_DEPTH = 20
MAX_OBJECT = 200_000
"""Characters of a printed object that are read."""

_SPACE = regex(r"\s*")
_STRING = regex(r"[rbuf]?(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")", re.DOTALL)
_NAMED = regex(r"([A-Za-z_][\w.]{0,120})\s*\(")
_KEYWORD = regex(r"([A-Za-z_]\w{0,120})\s*=(?!=)\s*")
_ENUM = regex(r"<[\w.]+(?::\s*([^<>\n]{1,200}))?>")
_BARE = regex(r"[^,(){}\[\]\n:=]*(?::(?!\s)[^,(){}\[\]\n]*)?")
_BARE_ITEM = regex(r"[^,)}\]\n]*")
_ESCAPED = regex(r"\\(.)", re.DOTALL)
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
