"""Numbers as logs spell them: NaN in many spellings, thousands separators, percentages, numbers as strings."""

from __future__ import annotations

import math
import re

_SPECIAL = {
    "nan": math.nan,
    "+nan": math.nan,
    "-nan": math.nan,
    "nan.0": math.nan,
    "-nan(ind)": math.nan,
    "1.#qnan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "-inf": -math.inf,
    "inf.0": math.inf,
    "infinity": math.inf,
    "-infinity": -math.inf,
    "1.#inf": math.inf,
}
_PLAIN = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_TENSOR = re.compile(r"tensor\(\s*([^,()\s]+)[^()]*\)")

HUGE = 10**15

NUMBER = (
    r"(?:[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
    r"|[-+]?nan(?:\.0)?|[-+]?inf(?:inity|\.0)?)"
)
"""A regular expression for one number in a line of text; to be used without regard to case."""


def whole_number(digits: str) -> int:
    """Return the number that digits spell; one beyond any counter is cut to `HUGE`, as Python refuses to read some."""
    return min(HUGE, int(digits[:20]))


def parse_number(text: str) -> float | None:
    """Return the number that `text` spells, or None if it spells none.

    "1,234" is 1234, "12.5%" is 12.5, "tensor(2.31, device='cuda:0')" is 2.31, "nan", "NaN", "-nan", "nan.0" are NaN.
    """
    text = text.strip()
    if len(text) > 64:
        return None
    if _PLAIN.fullmatch(text):
        return float(text)
    lowered = text.lower()
    if lowered in _SPECIAL:
        return _SPECIAL[lowered]
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    if text.endswith("%"):
        return parse_number(text[:-1])
    tensor = _TENSOR.fullmatch(text)
    return parse_number(tensor[1]) if tensor else None


def to_number(value: object) -> float | None:
    """Return the float that a parsed JSON or CSV value stands for, or None if it is no number. Flags are no numbers."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return float(value) if abs(value) < 1 << 1000 else math.inf
    return parse_number(value) if isinstance(value, str) else None
