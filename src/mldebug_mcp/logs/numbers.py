"""Numbers as logs spell them: NaN in many spellings, thousands separators, percentages, numbers as strings."""

from __future__ import annotations

import math
import re

from mldebug_mcp.core.lazy import regex

_SPECIAL = {
    **dict.fromkeys(("nan", "+nan", "-nan", "nan.0", ".nan"), math.nan),
    **dict.fromkeys(("nan(ind)", "-nan(ind)", "nan(snan)", "-nan(snan)"), math.nan),
    **dict.fromkeys(("inf", "+inf", "inf.0", ".inf", "infinity"), math.inf),
    **dict.fromkeys(("-inf", "-.inf", "-infinity"), -math.inf),
}
_PLAIN = regex(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+|f[-+]?\d{1,2})?")
_THOUSANDS = regex(r"[-+]?\d{1,3}(?:(?:,\d{3})+|(?:_\d{3})+)(?:\.\d+)?")
_UNDERSCORED = regex(r"(?<![\w.,])\d{1,3}(?:_\d{3})+(?!\d)")
_WRAPPED = regex(r"(?:tensor|(?:np\.|numpy\.)?float\d+)\(\s*\[?([^,()\s\]]+)[^()]*\)", needs="(")
_WINDOWS = regex(r"([-+]?)1\.#([a-z]+)\d*")

_DECIMAL_COMMA = regex(r"(?<=[:=;\t\"])[ \t]{0,8}-?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?!\d|,\d)", needs=",")
_DECIMAL_POINT = regex(r"(?<![\d.])\d+\.\d+(?![\d.])")
_COMMA = regex(r"(?<=\d),(?=\d)")

MAY_HOLD_NUMBER = regex(r"\d|nan|inf", re.IGNORECASE)
NO_DIGITS = str.maketrans("", "", "0123456789")
WITH_UNIT = (
    r"(?P<number>[-+]?(?:\d[\d,_]{0,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?)"
    r"(?:\s?(?P<unit>%|[kKMGT]i?B|[kKMGTB]|[mg]i?b|x|dB|[mun]?s|µs|m?secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)"
    r"(?:(?:\s[A-Za-z]{1,12})?/[A-Za-z]{1,12})?|\s?[A-Za-z]{1,12}/[A-Za-z]{1,12})?"
)
"""A regular expression for a cell that is a number and its unit: "12.3k", "22.0 GB", "900ms", "12.3k samples/s"."""
_WITH_UNIT = regex(WITH_UNIT)
DURATION = (
    r"(?:(?P<days>\d{1,5})d(?:ays?)?\s?)?(?:(?P<hours>\d{1,6})h\s?)?(?:(?P<minutes>\d{1,6})m(?:in)?\s?)?"
    r"(?:(?P<seconds>\d{1,6}(?:\.\d{1,9})?)s(?:ec)?)?"
)
"""A regular expression for days, hours, minutes and seconds behind one another: "1m 10s", "0h01m"; it may be empty."""
_DURATION = regex(DURATION)
SECONDS_PER = {"days": 86_400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}

HUGE = 10**15
"""The largest whole number that is kept: no counter of a training reaches it."""
MAX_NUMBER = 400
"""Characters of a number: the largest float has 309 digits, which a format such as `.2f` writes out."""

NUMBER = (
    r"(?:[-+]?1\.#[A-Z]+\d*|[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+|(?<=\d)f[-+]?\d{1,2})?"
    r"|\.nan|-?\.inf|[-+]?nan(?:\.0|\(s?(?:ind|nan)\))?|[-+]?inf(?:inity|\.0)?)"
)
"""A regular expression for one number in a line of text; to be used without regard to case.

"1.#QNAN", "-1.#IND" and "1.#INF00" are what older C runtimes of Windows print; ".nan" and ".inf" are YAML's.
"""


def parse_numbers(text: str, most: int | None = None) -> list[float] | None:
    """Return the numbers of a text, parted by commas or blanks, at `most` so many; None if any of it is other text."""
    numbers = [parse_number(word) for word in text.replace(",", " ").split()[:most]]
    return None if None in numbers else [number for number in numbers if number is not None]


def has_decimal_commas(text: str) -> bool:
    """Say whether the numbers of a text are written as 0,25, as in much of Europe: nearly all of those that tell."""
    commas = len(_DECIMAL_COMMA.findall(text))
    return commas > 2 and commas > 2 * len(_DECIMAL_POINT.findall(text))


def with_points(text: str) -> str:
    """Return a text whose numbers have decimal commas with points in their place."""
    return _COMMA.sub(".", text)


def without_underscores(text: str) -> str:
    """Return a text whose numbers have no underscores between groups of thousands, as Python writes them: "10_000"."""
    return _UNDERSCORED.sub(lambda number: number[0].replace("_", ""), text) if "_" in text else text


def whole_number(digits: str) -> int:
    """Return the number that digits spell; one beyond any counter is cut to `HUGE`, as Python refuses to read some."""
    return min(HUGE, int(digits[:20]))


def parse_number(text: str) -> float | None:
    """Return the number that `text` spells, or None if it spells none.

    "1,234" and "1_234" are 1234, "12.5%" is 12.5, "tensor(2.31, device='cuda:0')" and "np.float32(2.31)" are 2.31;
    "nan", "NaN", "-nan", "nan.0", "-nan(ind)", "1.#QNAN" are NaN.
    """
    text = text.strip()
    if len(text) > MAX_NUMBER:
        return None
    if _PLAIN.fullmatch(text):
        return float(text.replace("f", "e"))  # Julia prints a Float32 as 1.5f-4
    special = special_number(text.lower())
    if special is not None:
        return special
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", "").replace("_", ""))
    if text.endswith("%"):
        return parse_number(text[:-1])
    wrapped = _WRAPPED.fullmatch(text)
    return parse_number(wrapped[1]) if wrapped else None


def parse_with_unit(text: str) -> tuple[float, str] | None:
    """Return the number that `text` spells and the unit behind it, "" where it has none; None if it spells none.

    "12.3k" is 12.3 and "k", "22.0 GB" is 22 and "GB"; what is counted per time is left out: "12.3k samples/s" is the
    same as "12.3k". A duration, "1m 10s" or "0h01m", is in seconds.
    """
    text = text.strip()
    if (number := None if text.endswith("%") else parse_number(text)) is not None:
        return number, ""
    if (found := _WITH_UNIT.fullmatch(text)) and (number := parse_number(found["number"])) is not None:
        return number, found["unit"] or ""
    duration = _DURATION.fullmatch(text) if text else None
    return (seconds_of(duration), "s") if duration else None


def seconds_of(duration: re.Match[str]) -> float:
    """Return what a match of `DURATION` is in seconds."""
    return sum(float(duration[part] or 0) * seconds for part, seconds in SECONDS_PER.items())


def special_number(text: str) -> float | None:
    """Return the NaN or the infinity that a text in lower case spells, None for other texts."""
    windows = _WINDOWS.fullmatch(text)
    if windows:
        return float(f"{windows[1]}inf") if windows[2] == "inf" else math.nan
    return _SPECIAL.get(text)


def to_number(value: object) -> float | None:
    """Return the float that a parsed JSON or CSV value stands for, or None for other values.

    Flags are no numbers; a list of one number is that number (the learning rate of the only group).
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return float(value) if abs(value) < 1 << 1000 else math.inf
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list):
        return to_number(value[0])
    return parse_number(value) if isinstance(value, str) else None
