"""A regular expression → words of which one stands in every text that it matches.

Looking for a word costs a fraction of what a pattern costs, and a line of a log shows few of the errors that are known:
the patterns of the others need not be tried. What stands in groups is left out, so that a pattern without a word
outside of them is always tried.
"""

from __future__ import annotations

import re

MIN_LENGTH = 3
"""Characters of a word that tells lines apart; the patterns with no word of that length are always tried. Chosen."""

_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)
_LETTER_CLASS = re.compile(r"\\[A-Za-z0-9]")


def required_words(pattern: str) -> tuple[str, ...]:
    """Return words of which at least one stands in every text that a pattern matches; nothing if it has none."""
    if "(?i)" in pattern:
        return ()
    words = [max(_runs(alternative), key=len, default="") for alternative in _alternatives(pattern)]
    return tuple(words) if all(len(word) >= MIN_LENGTH for word in words) else ()


def _alternatives(pattern: str) -> list[list[str]]:
    """Return the pieces of each alternative of the whole pattern; a group, with all in it, is one empty piece."""
    alternatives: list[list[str]] = [[]]
    depth = 0
    for piece in _PIECE.findall(pattern):
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
            if depth == 0:
                alternatives[-1].append("")
        elif depth == 0 and piece == "|":
            alternatives.append([])
        elif depth == 0:
            alternatives[-1].append(piece)
    return alternatives


def _runs(pieces: list[str]) -> list[str]:
    """Return the words that every match of an alternative holds: what stands between its wildcards."""
    runs = [""]
    for piece in pieces:
        if piece in ("?", "*") or (piece.startswith("{") and len(piece) > 1):
            runs[-1] = runs[-1][:-1]  # what stands before it may be missing
            runs.append("")
        elif len(piece) == 1 and piece not in ".^$+":
            runs[-1] += piece
        elif len(piece) == 2 and piece[0] == "\\" and not _LETTER_CLASS.match(piece):
            runs[-1] += piece[1]
        else:
            runs.append("")
    return runs
