"""Each way to ask for something on its own, so that the one that is nearest to a question counts.

In the text of a whole entry the many ways that are not meant make the one that is weigh less.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence

MOST = 80
"""Phrases that are looked at, nearest first (chosen: further ones share a common word alone)."""
FURTHER = 0.5
"""What each further phrase of an entry counts of the one before (chosen)."""
LONGEST = 220
"""Characters: a longer sentence is no way to ask (chosen)."""


class Phrases:
    """The phrases of all entries, searchable. Threads may share it."""

    def __init__(self, phrases: Iterable[tuple[str, str]]) -> None:
        """Take the key of an entry with each of its phrases."""
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.execute(
            "CREATE VIRTUAL TABLE phrases USING fts5(key UNINDEXED, said, tokenize='porter unicode61')"
        )
        self._connection.executemany("INSERT INTO phrases VALUES (?, ?)", phrases)

    def nearest(self, words: Sequence[str]) -> Mapping[str, float]:
        """Return the entries whose phrases have words of a question: 1 for the nearest, less for the others."""
        if not words:
            return {}
        match = " OR ".join(f'"{word}"' for word in words)
        statement = "SELECT key, -bm25(phrases) FROM phrases WHERE phrases MATCH ? ORDER BY rank LIMIT ?"
        with self._lock:
            rows: list[tuple[str, float]] = self._connection.execute(statement, (match, MOST)).fetchall()
        near: dict[str, float] = {}
        told: dict[str, int] = {}
        for key, score in rows:
            near[key] = near.get(key, 0.0) + score * FURTHER ** told.get(key, 0)
            told[key] = told.get(key, 0) + 1
        best = max(near.values(), default=1.0)
        return {key: score / best for key, score in near.items()}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are short enough to be a way to ask."""
    return [one for one in re.split(r"(?<=[.;])\s", text) if 15 < len(one) <= LONGEST]
