"""Which causes a question is about, learnt from phrases and questions whose causes are known.

`learnt.npz` holds a linear model (a softmax over the causes, and classes for what leads to none and for questions of
other fields): how much each word, each tag that the question names, each pair of words that stand near each other and
each piece of a word speaks for each cause. `python -m benchmarks.search.learn` fits it anew.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mldebug_mcp.knowledge.concepts import NAMES

if TYPE_CHECKING:
    from numpy import float32, int8
    from numpy.typing import NDArray

FILE = "learnt.npz"
NEAR = 3
"""Words that stand at most so far from each other are a pair (fitted on half of the questions of benchmarks/search)."""
ALONE, NEXT, PIECE = ".", "_", "~"
"""What features begin with that are words as they were put, two such words in a row, and pieces of words."""
PIECES = (4, 5)
"""Characters of a piece (fitted as above)."""
_WORD = re.compile(r"(?<!\d)[^\W\d_]+")
"""A word, but no unit of a number."""
OTHER, NO_CAUSE = "", "*"
"""The classes of questions of other fields, and of what is known here and leads to no cause, such as some errors."""


def features(words: Sequence[str], tags: Sequence[str], said: str, put: str) -> Iterator[str]:
    """Yield what the model knows a question by.

    Args:
        words: The stems of its words that say something, in their order.
        tags: The tags that it names.
        said: The question in the words that entries use: its small words tell `all the same` from `not the same`.
        put: The question as it was put: the pieces of its words bring together those of one root, of languages that are
            alike, and misspelt ones.
    """
    yield from words
    yield from (f"#{tag}" for tag in tags)
    for place, word in enumerate(words):
        yield from (" ".join(sorted((word, near))) for near in words[place + 1 : place + 1 + NEAR])
    each = _letters(said)
    yield from (f"{ALONE}{word}" for word in each)
    yield from (f"{NEXT}{one} {other}" for one, other in pairwise(each))
    for word in _letters(put):
        whole = f"<{word}>"
        for length in PIECES if len(word) >= min(PIECES) else ():
            yield from (f"{PIECE}{whole[start : start + length]}" for start in range(len(whole) - length + 1))


def _letters(text: str) -> list[str]:
    """Return the words of a text without its numbers, and without names of models and the like."""
    found = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    return [word for word in found if word not in NAMES]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a question is about.

    Args:
        likely: The probability of each cause.
        evidence: How much its words speak for a cause more than for a question of another field.
    """

    likely: Mapping[str, float]
    evidence: float


@dataclass(frozen=True, slots=True)
class Learnt:
    """The model. It is only read, so threads may share it."""

    causes: tuple[str, ...]
    rows: Mapping[str, int]
    weights: NDArray[int8]
    scale: NDArray[float32]
    rarity: NDArray[float32]
    bias: NDArray[float32]

    def read(self, words: Sequence[str], tags: Sequence[str], said: str, put: str) -> Reading:
        """Return what a question is about: how likely each cause is, and how much speaks for it being of this field.

        Args:
            words: As for `features`, and so are the others.
            tags: As there.
            said: As there.
            put: As there.
        """
        import numpy as np

        known = sorted({self.rows[one] for one in features(words, tags, said, put) if one in self.rows})
        if not known:
            return Reading({}, 0.0)
        rarity = self.rarity[known]
        speaks = (rarity * self.scale[known]) @ self.weights[known].astype(np.float32)
        scores = speaks / np.linalg.norm(rarity) + self.bias
        shares = np.exp(scores - scores.max())
        told = zip(self.causes, (shares / shares.sum()).tolist(), strict=True)
        likely = {cause: share for cause, share in told if cause not in (OTHER, NO_CAUSE)}
        other = self.causes.index(OTHER) if OTHER in self.causes else None
        return Reading(likely, float(speaks.max() - (0.0 if other is None else speaks[other])))


@lru_cache(maxsize=1)
def learnt() -> Learnt:
    """Load the model."""
    import numpy as np

    with np.load(Path(__file__).parent / FILE, allow_pickle=False) as held:
        names, causes = (bytes(held[name]).decode().split("\n") for name in ("features", "causes"))
        rows = {name: row for row, name in enumerate(names)}
        return Learnt(tuple(causes), rows, held["weights"], held["scale"], held["rarity"], held["bias"])
