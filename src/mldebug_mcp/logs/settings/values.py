"""Values of settings: what configurations and command lines spell as text becomes flags, numbers, lists and text."""

from __future__ import annotations

import math
import re

from mldebug_mcp.text import shorten

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
_NUMBER = re.compile(r"([-+]?(?:\d[\d_]*(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,4})?)\s?([kKmMbBgG%]?)")
_FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "%": 0.01}
_SPECIAL = {"inf": math.inf, "infinity": math.inf, "-inf": -math.inf, ".inf": math.inf, "nan": math.nan}
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
    found = _NUMBER.fullmatch(text) if len(text) <= MAX_DIGITS else None
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
    found = _NUMBER.fullmatch(text)
    if found is None:
        return _SPECIAL.get(text.lower())
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
