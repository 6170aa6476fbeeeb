"""The order of the rows in a pass over the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mldebug_mcp.errors import InputError
from mldebug_mcp.rows.plan import Plan
from mldebug_mcp.rows.shuffle import Generator, Ints

NUMBERS_OF_A_SEED = 2
"""Numbers of 32 bits that a `DataLoader` takes from its generator before each pass, for the seeds of its workers."""
AT_ONCE = 1 << 18
"""Rows of an order that are made at least."""
MOST_DRAWN = 500_000_000
"""Numbers that are drawn to get to a pass: some seconds' work."""


@dataclass(slots=True)
class Orders:
    """The orders of the passes of a plan, each made once.

    Args:
        plan: How rows are dealt out.
    """

    plan: Plan
    _made: dict[int, Ints] = field(default_factory=dict)

    def of(self, epoch: int) -> Ints:
        """Return the rows in the order of a pass, shape (rows,); raises InputError if that is too much work."""
        return self._up_to(self.plan.rows, epoch)

    def places_of(self, epoch: int, rows: Ints) -> list[int]:
        """Return the places of some rows in the order of a pass, sorted; raises InputError if that is too much work."""
        places = np.unique(rows) if self.plan.order == "sequential" else np.flatnonzero(np.isin(self.of(epoch), rows))
        return [int(one) for one in places]

    def rows_at(self, epoch: int, places: Ints) -> list[int]:
        """Return the rows at some places of the order of a pass; raises InputError if that is too much work."""
        if self.plan.order == "sequential":  # of a pass of any length nothing is made
            return [int(one) for one in places]
        last = int(places.max(initial=0))
        order: list[int] = self._up_to(min(self.plan.rows, (last // AT_ONCE + 1) * AT_ONCE), epoch)[places].tolist()
        return order

    def _up_to(self, count: int, epoch: int) -> Ints:
        """Return the order of a pass up to some place: the beginning of a long one is made far sooner than all."""
        if epoch not in self._made or len(self._made[epoch]) < count:
            self._made[epoch] = self._order(epoch, count)
        return self._made[epoch]

    def _order(self, epoch: int, count: int) -> Ints:
        plan = self.plan
        if plan.order == "sequential":
            return np.arange(count)
        if plan.order == "seedable":
            return Generator(plan.seed + epoch).shuffled(plan.rows, count)
        before = NUMBERS_OF_A_SEED if plan.order == "loader_generator" else 0
        # At the end of a pass RandomSampler shuffles once more, and yields nothing of it.
        left = before + epoch * (before + 2 * (plan.rows - 1))
        if left > MOST_DRAWN:
            raise InputError(f"the shuffle of pass {epoch:,} is too far on to be drawn again; name an earlier step")
        generator = Generator(plan.seed)
        while left > 0:
            left -= len(generator.drawn(min(left, 1 << 22)))
        return generator.shuffled(plan.rows, count)
