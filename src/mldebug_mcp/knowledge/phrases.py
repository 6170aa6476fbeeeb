"""Each way to ask for something on its own, so that the one that is nearest to a question counts.

In the text of a whole entry the many ways that are not meant make the one that is weigh less.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mldebug_mcp.knowledge.bm25 import Bm25, Stems

MOST = 80
"""Phrases that are looked at, nearest first (chosen: further ones share a common word alone)."""
FURTHER = 0.5
"""What each further phrase of an entry counts of the one before (chosen)."""
LONGEST = 220
"""Characters: a longer sentence is no way to ask (chosen)."""


class Phrases:
    """The phrases of all entries, searchable. Threads may share it."""

    def __init__(self, phrases: Iterable[tuple[str, str]], stems: Stems) -> None:
        """Take the key of an entry with each of its phrases."""
        pairs = list(phrases)
        self._keys = [key for key, _ in pairs]
        self._texts = Bm25([(said,) for _, said in pairs], (1.0,), stems)

    def nearest(self, words: Sequence[str]) -> Mapping[str, float]:
        """Return the entries whose phrases have words of a question: 1 for the nearest, less for the others."""
        return added_up((self._keys[place], score) for place, score in self._texts.ranked(words, MOST))


def added_up(near: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    """Return the score of each entry from those of its texts, nearest first: 1 for the best entry."""
    scores: dict[str, float] = {}
    told: Counter[str] = Counter()
    for key, score in near:
        scores[key] = scores.get(key, 0.0) + score * FURTHER ** told[key]
        told[key] += 1
    best = max(scores.values(), default=1.0)
    return {key: score / best for key, score in scores.items()}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are short enough to be a way to ask."""
    return [one for one in re.split(r"(?<=[.;])\s", text) if 15 < len(one) <= LONGEST]
