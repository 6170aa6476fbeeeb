"""Texts as vectors, so that what is meant alike is near though it shares no word: those of WordLlama, if installed.

Its wheel carries a vector for each of 32,000 tokens (256 numbers, 16 MB); a text is the mean of its tokens'. The
package itself is not imported: that would set up logging of its own, and look for its tokenizer on the network.
Source: WordLlama, https://github.com/dleemiller/WordLlama; its `l2_supercat` model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mldebug_mcp.knowledge.bm25 import highest
from mldebug_mcp.knowledge.phrases import added_up

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
MOST = 80
"""Texts that are looked at, nearest first (chosen, as for phrases)."""
SHARPNESS = 8.0
"""Power of e that a cosine of 1 counts: the nearest text outweighs many that are less near (fitted on half of the
questions of benchmarks/search)."""


class Vectors:
    """The vectors of a tokenizer's tokens."""

    def __init__(self, folder: Path) -> None:
        """Load them from the folder of the package."""
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self._tokens: NDArray[float32] = next(iter(load_file(folder / WEIGHTS).values())).astype("float32")
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))

    def of(self, texts: Sequence[str]) -> NDArray[float32]:
        """Return a row of length 1 for each text."""
        import numpy as np

        encoded = self._tokenizer.encode_batch([text.lower() for text in texts], add_special_tokens=False)
        rows = np.stack([self._tokens[one.ids or [0]].mean(axis=0) for one in encoded])
        return _unit(rows)


class Neighbours:
    """Texts, each with the key of an entry, found by what they mean. Threads may share it."""

    def __init__(self, texts: Iterable[tuple[str, str]], vectors: Vectors) -> None:
        """Take the key of an entry with each of its texts."""
        pairs = list(dict.fromkeys(texts))
        self._vectors = vectors
        self._keys = [key for key, _ in pairs]
        rows = vectors.of([text for _, text in pairs])
        self._middle = rows.mean(axis=0)
        self._rows = _unit(rows - self._middle)

    def nearest(self, question: str) -> tuple[Mapping[str, float], float]:
        """Return the entries with texts near to a question, 1 for the nearest, and the cosine of the nearest text.

        All texts are of one field, and so point one way: what they have in common is taken away before they are
        compared.
        """
        cosines = self._rows @ _unit(self._vectors.of([question]) - self._middle)[0]
        first = highest(cosines, MOST)
        near = added_up((self._keys[place], math.exp(SHARPNESS * cosine)) for place, cosine in first)
        return near, first[0][1]


@lru_cache(maxsize=1)
def vectors() -> Vectors | None:
    """Return the vectors, or None where the package is not installed or holds other files."""
    spec = find_spec(PACKAGE)
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    held = [folder for folder in folders if (folder / WEIGHTS).is_file() and (folder / TOKENIZER).is_file()]
    return Vectors(held[0]) if held else None


def _unit(rows: NDArray[float32]) -> NDArray[float32]:
    import numpy as np

    unit: NDArray[float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return unit
