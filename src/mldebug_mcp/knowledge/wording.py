"""A question as people type it → the same in the words that entries use.

`wording.jsonl` holds what people say instead, one meaning per line: `said`, patterns over the question in lower case,
and `means`, English words that stand in entries; abbreviations, slang, German and Chinese. Words that no entry knows
but that nearly equal one that some entry knows are taken for misspelt.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mldebug_mcp.knowledge.concepts import NAMES, STOPWORDS

FILE = "wording.jsonl"

SHORTEST_MISSPELT = 6
"""In letters: shorter words are too near to too many others."""
LIKENESS = 0.83
"""Of difflib: one letter in six wrong, doubled, left out or swapped with its neighbour."""
_HAN = r"[\u3400-\u9fff]"
_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z]{3})(?=[A-Z][a-z]{2})|(?<=[a-z])(?=Of[A-Z])|(?<=[a-z]Of)(?=[A-Z])")
"""Between the words of an identifier such as OutOfMemoryError; not in names such as PyTorch."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A way to say something."""

    pattern: re.Pattern[str]
    means: str


@lru_cache(maxsize=1)
def wordings() -> tuple[Wording, ...]:
    """Return the wordings in file order: longer ones stand before those they hold."""
    lines = (Path(__file__).parent / FILE).read_text(encoding="utf-8").splitlines()
    return tuple(Wording(_pattern(row["said"]), f" {row['means']} ") for row in map(json.loads, lines))


def _pattern(said: list[str]) -> re.Pattern[str]:
    """Return a pattern for words that begin so; Chinese is written without spaces, so that it may stand anywhere."""
    if re.search(_HAN, said[0]):
        return re.compile("|".join(said))
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(said)})[^\W\d_]*")


def reworded(question: str) -> str:
    """Return a question in lower case and in the words that entries use."""
    text = unicodedata.normalize("NFKC", question).replace("\u2019", "'")
    text = _CAMEL.sub(" ", text).lower()
    text = re.sub(rf"(?<={_HAN})(?=[a-z0-9])|(?<=[a-z0-9])(?={_HAN})", " ", text)
    for one in wordings():
        text = one.pattern.sub(one.means, text)
    return " ".join(text.split())


def spelt(question: str, known: Collection[str]) -> str:
    """Return a question with its misspelt words as entries spell them.

    Args:
        question: In lower case.
        known: All words of all entries.
    """
    by_letter = _by_first_letter(frozenset(known))

    def put_right(match: re.Match[str]) -> str:
        word = match[0]
        if len(word) < SHORTEST_MISSPELT or word in known or word in STOPWORDS or word in NAMES:
            return word
        near = [one for one in by_letter.get(word[0], ()) if abs(len(one) - len(word)) <= 2]
        return next(iter(difflib.get_close_matches(word, near, n=1, cutoff=LIKENESS)), word)

    return _WORD.sub(put_right, question)


@lru_cache(maxsize=1)
def _by_first_letter(known: frozenset[str]) -> dict[str, list[str]]:
    letters: dict[str, list[str]] = {}
    for word in sorted(known - STOPWORDS):
        letters.setdefault(word[0], []).append(word)
    return letters
