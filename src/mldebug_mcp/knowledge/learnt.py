"""Which causes a question is about, learnt from phrases and questions whose causes are known.

`learnt.npz` holds a linear model (a softmax over the causes, and classes for what leads to none and for questions of
other fields): how much each word, each tag that the question names and each pair of words that stand near each other
speaks for each cause. `python -m benchmarks.search.learn` fits it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

FILE = "learnt.npz"
NEAR = 3
"""Words that stand at most so far from each other are a pair (fitted on half of the questions of benchmarks/search)."""
OTHER, NO_CAUSE = "", "*"
"""The classes of questions of other fields, and of what is known here and leads to no cause, such as some errors."""


def features(words: Sequence[str], tags: Sequence[str]) -> Iterator[str]:
    """Yield what the model knows a question by.

    Args:
        words: The stems of its words that say something, in their order.
        tags: The tags that it names.
    """
    yield from words
    yield from (f"#{tag}" for tag in tags)
    for place, word in enumerate(words):
        yield from (" ".join(sorted((word, near))) for near in words[place + 1 : place + 1 + NEAR])


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
    weights: NDArray[float32]
    rarity: NDArray[float32]
    bias: NDArray[float32]

    def read(self, words: Sequence[str], tags: Sequence[str]) -> Reading:
        """Return what a question is about: how likely each cause is, and how much speaks for it being of this field."""
        import numpy as np

        known = sorted({self.rows[one] for one in features(words, tags) if one in self.rows})
        if not known:
            return Reading({}, 0.0)
        rarity = self.rarity[known]
        speaks = rarity @ self.weights[known]
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
        weights = held["weights"].astype(np.float32) * held["scale"]
        return Learnt(
            tuple(causes), {name: row for row, name in enumerate(names)}, weights, held["rarity"], held["bias"]
        )
