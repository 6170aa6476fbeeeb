"""BM25 over texts of several columns, in memory: SQLite's FTS5 cuts words and stems them, and NumPy adds up.

What each word counts in each text does not depend on the question, so it is computed once; a question then adds a few
arrays, in a tenth of the time that FTS5 takes to rank. The scores are those of FTS5.
Source: SQLite, FTS5, "The bm25() function" (k1 1.2, b 0.75; a word in more than half of the texts counts next to
nothing; a column's weight multiplies how often the word stands in it).
"""

from __future__ import annotations

import math
import re
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

K1, B, LEAST_IDF = 1.2, 0.75, 1e-6
MOST_HELD = 5_000
"""Stems that are remembered of words in no text (chosen: beyond, a question's words are stemmed anew)."""
_TOKENIZE = "tokenize='porter unicode61'"
_POINT = re.compile(r"(?<=\d)\.(?=\d)")


class Stems:
    """The stem of each word, as FTS5 makes it. Threads may share it."""

    def __init__(self, words: Iterable[str]) -> None:
        """Stem the words of the texts at once; others are stemmed as they are asked for."""
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        _create(self._connection, 1)
        known = sorted(words)
        self._connection.executemany("INSERT INTO texts VALUES (?)", ((_one_number(word),) for word in known))
        found: dict[int, list[str]] = defaultdict(list)
        for row, term in self._connection.execute("SELECT doc, term FROM terms"):
            found[row].append(term)
        self._stems = {word: _alone(found[row]) for row, word in enumerate(known, start=1)}
        self._most = len(known) + MOST_HELD

    def of(self, word: str) -> str:
        """Return the stem of a word; nothing for what is no single word."""
        stem = self._stems.get(word)
        if stem is None:
            with self._lock:
                self._connection.execute("DELETE FROM texts")
                self._connection.execute("INSERT INTO texts VALUES (?)", (_one_number(word),))
                stem = _alone([term for (term,) in self._connection.execute("SELECT term FROM terms")])
                if len(self._stems) < self._most:
                    self._stems[word] = stem
        return stem


class Bm25:
    """Texts, each of the same columns. It is only read after it was built, so threads may share it."""

    def __init__(self, rows: Sequence[Sequence[str]], weights: Sequence[float], stems: Stems) -> None:
        """Count the words of texts; `weights` has what a word counts in each column."""
        import numpy as np

        connection = sqlite3.connect(":memory:")
        _create(connection, len(weights))
        places = ", ".join("?" * len(weights))
        statement = f"INSERT INTO texts VALUES ({places})"  # noqa: S608  (question marks)
        connection.executemany(statement, ([_one_number(text) for text in row] for row in rows))
        counted: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        lengths = np.zeros(len(rows))
        by_column = {f"c{place}": weight for place, weight in enumerate(weights)}
        for term, row, column in connection.execute("SELECT term, doc, col FROM terms"):
            counted[term][row - 1] += by_column[column]
            lengths[row - 1] += 1
        connection.close()
        self._stems = stems
        self._size = len(rows)
        saturation = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9)) if rows else lengths
        self._held: dict[str, tuple[NDArray[int64], NDArray[float64]]] = {}
        for term, often in counted.items():
            held = np.fromiter(often, dtype=np.int64)
            times = np.fromiter(often.values(), dtype=np.float64)
            rarity = max(math.log((len(rows) - len(held) + 0.5) / (len(held) + 0.5)), LEAST_IDF)
            self._held[term] = held, rarity * times * (K1 + 1) / (times + saturation[held])

    def holders(self, word: str) -> NDArray[int64]:
        """Return the places of the texts that hold a word in any form."""
        import numpy as np

        held = self._held.get(self._stems.of(word))
        return np.empty(0, dtype=np.int64) if held is None else held[0]

    def ranked(self, words: Iterable[str], most: int) -> list[tuple[int, float]]:
        """Return the places of the texts that hold any of some words with their scores, best first; `most` at most."""
        import numpy as np

        scores = np.zeros(self._size)
        for stem in map(self._stems.of, words):
            if stem in self._held:
                held, counts = self._held[stem]
                scores[held] += counts
        return [(place, score) for place, score in highest(scores, most) if score > 0]


def highest(scores: NDArray[Any], most: int) -> list[tuple[int, float]]:
    """Return the places of the highest scores with them, highest first; equal ones in their order."""
    import numpy as np

    places = np.sort(np.argpartition(scores, -most)[-most:]) if most < len(scores) else np.arange(len(scores))
    places = places[np.argsort(-scores[places], kind="stable")]
    return list(zip(places.tolist(), scores[places].tolist(), strict=True))


def _create(connection: sqlite3.Connection, columns: int) -> None:
    names = ", ".join(f"c{place}" for place in range(columns))
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5({names}, {_TOKENIZE})")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(texts, 'instance')")


def _one_number(text: str) -> str:
    """Return a text in which a number with a point is one word."""
    return _POINT.sub("d", text)


def _alone(stems: list[str]) -> str:
    return stems[0] if len(stems) == 1 else ""
