"""Text from outside, made safe to show: one place for cleaning and shortening."""

from __future__ import annotations

import json
import re
import unicodedata

# ANSI and OSC sequences are removed whole: without their escape character they would leave "[31m" and the like.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_KEPT = "\n\t"
# Cc control, Cf format (bidi, zero width), Cs surrogate, Co private use, Zl/Zp line and paragraph separators.
_DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
WHOLE = 1e9
"""Whole numbers below this are written out: no run has more steps, and bytes read better as powers."""


def clean(text: str) -> str:
    """Return `text` without escape sequences, control and invisible characters and lone surrogates.

    Newlines and tabs are kept. A lone surrogate (an undecodable byte) becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPE.sub("", text)
    return "".join(map(_clean_character, text))


def _clean_character(character: str) -> str:
    if character in _KEPT or character.isprintable():
        return character
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return "" if category in _DROPPED_CATEGORIES else character


def shorten(text: str, limit: int) -> str:
    """Return `text` cleaned, on one line, cut to at most `limit` characters with an ellipsis."""
    # Cut generously first, so that a megabyte of text is not cleaned for its first hundred characters.
    line = " ".join(clean(text[: limit * 8]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def quoted(text: str) -> str:
    """Return text as a string literal for a call that can be copied, with what cannot be shown escaped."""
    return json.dumps(text, ensure_ascii=clean(text) != text)


def figure(value: float) -> str:
    """Return a number for a sentence: four significant digits, no trailing zeros.

    A whole number below a billion is written out: nobody finds step 123892 by 1.239e+05.
    """
    whole = abs(value) < WHOLE and value == int(value)
    return f"{value:.0f}" if whole else f"{value:.4g}"


def counted(count: int, name: str) -> str:
    """Return how many there are, in words: "1 record", "12,000 records"."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


def percent(probability: float) -> str:
    """Return a probability as a whole percentage: below 1 % and above 99 % as such, as nothing is ruled out or sure."""
    if 0 < probability <= 0.005:
        return "<1%"
    if 0.995 <= probability < 1:
        return ">99%"
    return f"{probability:.0%}"
