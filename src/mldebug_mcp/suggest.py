"""What a mistyped word may have meant: for error messages, which name the nearest of what is allowed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

ALIKE = 0.7
"""Likeness of spelling (`difflib`'s ratio) from which a word is named. Chosen: two letters of six may be wrong."""
SURE = 0.85
"""The same for a word that stands for another one, which may be misspelt too. Chosen: one letter of eight may."""
MOST = 3
LONGEST = 100
"""Characters of a word that are looked at: comparing takes the square of its length."""
SHORTEST = 3
"""Characters of a word that may stand for a longer one that holds it. Chosen: fewer are in nearly every one."""


def nearest(
    word: str,
    allowed: Collection[str],
    *,
    meanings: Mapping[str, Sequence[str]] | None = None,
    most: int = MOST,
    alike: float = ALIKE,
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

    plain = _plain(word[:LONGEST])
    if not plain:
        return []
    by_plain: dict[str, list[str]] = {}
    for one in allowed:
        by_plain.setdefault(_plain(one), []).append(one)
    if plain in by_plain:
        return by_plain[plain][:most]
    known = meanings or {}
    meaning = plain if plain in known else next(iter(get_close_matches(plain, known, n=1, cutoff=SURE)), "")
    meant = [one for one in known.get(meaning, ()) if one in allowed]
    spelt = [one for key in get_close_matches(plain, by_plain, n=most, cutoff=alike) for one in by_plain[key]]
    words = [one for one in re.split(r"[^a-z0-9]+", word[:LONGEST].lower()) if one]
    holding = [one for key, ones in by_plain.items() for one in ones if all(part in key for part in words)]
    held = sorted(holding, key=lambda one: (len(one), one)) if len(plain) >= SHORTEST else []
    return list(dict.fromkeys([*meant, *spelt, *held]))[:most]


def did_you_mean(near: Sequence[str]) -> str:
    """Return the question with these words and a space behind it; "" without any."""
    if not near:
        return ""
    return f"did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}? "


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())
