"""A ranking of causes beside what is right, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.foreign.labels import HEALTHY, UNKNOWN, Truth

PLACES = 3


@dataclass(frozen=True)
class Judged:
    """What is right for a run, and the causes that somebody names for it, best first; none if nothing was said."""

    truth: Truth
    causes: Sequence[str]

    @property
    def says_healthy(self) -> bool:
        """Whether the run is called healthy."""
        return list(self.causes[:1]) == [HEALTHY]

    @property
    def accuses(self) -> bool:
        """Whether a fault is put first."""
        return bool(self.causes) and self.causes[0] not in (HEALTHY, UNKNOWN)

    def right(self, places: int) -> bool:
        """Whether a right cause stands among the first places."""
        return bool(self.truth.right & set(self.causes[:places]))

    def right_or_near(self, places: int) -> bool:
        """Whether a cause that is right, or that a reader would not blame, stands among the first places."""
        return bool((self.truth.right | self.truth.near) & set(self.causes[:places]))
