"""Are rows of the evaluation trained on? Told by the keys of both, of some batches each."""

from __future__ import annotations

from collections.abc import Mapping

from mldebug_mcp.recorder.late import Value
from mldebug_mcp.recorder.rows import keys_of

NAME = "rows_evaluated"
"""The share of the rows of a batch of the training that were in an evaluation before."""
MOST_BATCHES = 64
"""Batches of evaluations whose rows are kept. Chosen: their keys take 20 MB at most."""


class Evaluated:
    """Keeps the keys of the rows that a model was evaluated on, where they are on the CPU."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._batches = 0

    def take(self, args: Value, kwargs: Mapping[str, Value]) -> None:
        """Keep the rows of a batch of an evaluation, of the first ones alone."""
        if self._batches < MOST_BATCHES:
            self._batches += 1
            self._keys |= set(_keys(args, kwargs))

    def share(self, args: Value, kwargs: Mapping[str, Value]) -> float | None:
        """Return the share of the rows of a batch that were in an evaluation; None where that is not known."""
        rows = _keys(args, kwargs) if self._keys else []
        return sum(row in self._keys for row in rows) / len(rows) if rows else None


def _keys(args: Value, kwargs: Mapping[str, Value]) -> list[str]:
    found = keys_of(dict(kwargs) if kwargs else list(args))
    return found.listed() if found is not None else []
