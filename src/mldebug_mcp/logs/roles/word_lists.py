"""How the lists of words are written down."""

from __future__ import annotations


def all_of(words: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(words.split())


def grouped(*groups: str) -> dict[str, str]:
    """Return word → meaning, of groups such as "mean: avg average"."""
    found = {}
    for group in groups:
        meaning, _, words = group.strip().partition(":")
        found.update(dict.fromkeys(words.split(), meaning))
        if " " not in meaning:
            found.setdefault(meaning, meaning)
    return found


def lines(text: str) -> list[str]:
    """Return the lines of a text that hold anything."""
    return [line for line in text.splitlines() if line.strip()]
