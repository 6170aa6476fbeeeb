"""Text from outside, made safe to show: one place for cleaning and shortening."""

from __future__ import annotations

import json
import re
import unicodedata

# ANSI and OSC sequences are removed whole: without their escape character they would leave "[31m" and the like.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_KEPT = "\n\t"
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Characters that nothing shows though Python calls them printable: variation selectors, fillers, the grapheme joiner
(those of Default_Ignorable_Code_Point in DerivedCoreProperties.txt, Unicode 16), and the blank of braille."""
WHOLE = 1e9
"""Whole numbers below this are written out: no run has more steps, and bytes read better as powers."""

LONGEST_ERROR = 2000
"""Characters of an error message: enough for two of the longest paths that are shown, and what to do."""


def clean(text: str) -> str:
    """Return `text` with what can be seen in it, and no other character that could carry a hidden message.

    Escape sequences, control, bidirectional, joining, private-use, unassigned and default-ignorable characters go; of
    an emoji its parts stay. Newlines and tabs are kept, every other space becomes a plain one. A lone surrogate (an
    undecodable byte) becomes U+FFFD.
    """
    if text.isascii() and text.isprintable():  # most texts, by far
        return text
    shown = text.replace("\n", "").replace("\t", "")
    if shown.isprintable() and (text.isascii() or not _INVISIBLE.search(text)):
        return text
    text = _INVISIBLE.sub("", _ESCAPE.sub("", text))
    return "".join(map(_clean_character, text))


def _clean_character(character: str) -> str:
    """Return what stands for a character: Python calls all of Unicode's "Other" and "Separator" unprintable."""
    if character in _KEPT or character.isprintable():
        return character
    return {"Cs": "\ufffd", "Zs": " "}.get(unicodedata.category(character), "")


def cut(text: str, limit: int) -> str:
    """Return `text` cleaned, with its lines, cut to at most `limit` characters with an ellipsis."""
    if len(text) <= limit and text.isascii() and text.isprintable():  # most texts, by far
        return text
    # Cut generously first, so that a megabyte of text is not cleaned for its first hundred characters.
    text = clean(text if len(text) <= limit else text[: limit * 8])
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shorten(text: str, limit: int) -> str:
    """Return `text` cleaned, on one line, cut to at most `limit` characters with an ellipsis."""
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
