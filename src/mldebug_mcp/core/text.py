"""Text that is safe and short enough to show, numbers in words, and what a mistyped name may mean."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence

from mldebug_mcp.core.lazy import regex

# Text from outside, made safe to show: one place for cleaning and shortening.


# ANSI and OSC sequences are removed whole: without their escape character they would leave "[31m" and the like.
_ESCAPE = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_KEPT = "\n\t"
_INVISIBLE = regex("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")
"""Characters that nothing shows though Python calls them printable: variation selectors, fillers, the grapheme joiner
(those of Default_Ignorable_Code_Point in DerivedCoreProperties.txt, Unicode 16), and the blank of braille."""
MAX_NUMBER_WRITTEN_OUT = 1e9
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


def fits(text: str, pattern: str) -> bool:
    """Say whether a pattern stands for a text, where each `*` stands for anything; nothing has to be compiled."""
    first, *parts = pattern.split("*")
    if not parts:
        return text == pattern
    start, end = len(first), len(text) - len(parts[-1])
    if start > end or not text.startswith(first) or not text.endswith(parts[-1]):
        return False
    for part in parts[:-1]:
        found = text.find(part, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True


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
    whole = abs(value) < MAX_NUMBER_WRITTEN_OUT and value == int(value)
    return f"{value:.0f}" if whole else f"{value:.4g}"


def ratio(value: float) -> str:
    """Return a number of times with two digits: "4.2", "61", "7500"; more would say more than the records know."""
    return figure(float(f"{value:.2g}"))


def counted(count: int, name: str) -> str:
    """Return how many there are, in words: "1 record", "12,000 records"."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


_CODE = regex(r"\S{0,200}?(?:[_=(\[/]|\w\.\w)|\w{1,80} = ")
"""A text whose first word is code or a name from a log, which would not be the same with a capital letter."""


def capitalised(text: str) -> str:
    """Return a sentence with a capital letter, unless it begins with code such as `nn.ModuleList`."""
    return text if _CODE.match(text) else text[:1].upper() + text[1:]


def some_of(names: Sequence[str]) -> str:
    """Return the first three of some names, for a note that counts them all."""
    return ", ".join(shorten(name, 60) for name in names[:3])


def percent(probability: float) -> str:
    """Return a probability as a whole percentage: below 1 % and above 99 % as such, as nothing is ruled out or sure."""
    if 0 < probability <= 0.005:
        return "<1%"
    if 0.995 <= probability < 1:
        return ">99%"
    return f"{probability:.0%}"


# What a mistyped word may have meant: for error messages, which name the nearest of what is allowed.


MIN_SPELLING_SIMILARITY = 0.7
"""Likeness of spelling (`difflib`'s ratio) from which a word is named. Chosen: two letters of six may be wrong."""
MIN_SURE_SIMILARITY = 0.85
"""The same for a word that stands for another one, which may be misspelt too. Chosen: one letter of eight may."""
MAX_SUGGESTIONS = 3
MAX_COMPARED_CHARACTERS = 100
"""Characters of a word that are looked at: comparing takes the square of its length."""
MIN_CONTAINED_CHARACTERS = 3
"""Characters of a word that may stand for a longer one that holds it. Chosen: fewer are in nearly every one."""


def nearest(
    word: str,
    allowed: Collection[str],
    *,
    meanings: Mapping[str, Sequence[str]] | None = None,
    most: int = MAX_SUGGESTIONS,
    alike: float = MIN_SPELLING_SIMILARITY,
) -> list[str]:
    """Return what a word may stand for, the likeliest first; nothing rather than what is alike by chance.

    What is the same but for case and punctuation stands alone. Else first what it means by `meanings`, then what is
    spelt nearly so, then what holds all of its words.

    Args:
        word: As it was given.
        allowed: What it could have been.
        meanings: What common words for the same mean, by the plain word.
        most: How many are returned at most.
        alike: The least likeness of spelling.
    """
    from difflib import get_close_matches  # for a wrong word alone

    plain = _plain(word[:MAX_COMPARED_CHARACTERS])
    if not plain:
        return []
    by_plain: dict[str, list[str]] = {}
    for text in allowed:
        by_plain.setdefault(_plain(text), []).append(text)
    if plain in by_plain:
        return by_plain[plain][:most]
    known = meanings or {}
    meaning = (
        plain if plain in known else next(iter(get_close_matches(plain, known, n=1, cutoff=MIN_SURE_SIMILARITY)), "")
    )
    meant = [text for text in known.get(meaning, ()) if text in allowed]
    spelt = [text for key in get_close_matches(plain, by_plain, n=most, cutoff=alike) for text in by_plain[key]]
    words = [part for part in re.split(r"[^a-z0-9]+", word[:MAX_COMPARED_CHARACTERS].lower()) if part]
    holding = [text for key, ones in by_plain.items() for text in ones if all(part in key for part in words)]
    contained = sorted(holding, key=lambda text: (len(text), text)) if len(plain) >= MIN_CONTAINED_CHARACTERS else []
    return list(dict.fromkeys([*meant, *spelt, *contained]))[:most]


def did_you_mean(near: Sequence[str]) -> str:
    """Return the question with these words and a space behind it; "" without any."""
    if not near:
        return ""
    return f"did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}? "


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def plain(markdown: str) -> str:
    """Return a line of Markdown without the targets of its links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown) if "](" in markdown else markdown


def duration(seconds: float) -> str:
    """Return a time in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
