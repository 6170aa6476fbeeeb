"""The order of the rows in a pass over the data."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mldebug_mcp.rows.plan import Plan
from mldebug_mcp.rows.shuffle import Generator, Ints

NUMBERS_OF_A_SEED = 2
"""Numbers of 32 bits that a `DataLoader` takes from its generator before each pass, for the seeds of its workers."""


def order_of(plan: Plan, epoch: int) -> Ints:
    """Return the rows in the order of a pass, shape (rows,)."""
    if plan.order == "sequential":
        return np.arange(plan.rows)
    if plan.order == "seedable":
        return _shuffled(plan.seed + epoch, plan.rows, 0)
    before = NUMBERS_OF_A_SEED if plan.order == "loader_generator" else 0
    # At the end of a pass RandomSampler shuffles once more, and yields nothing of it.
    return _shuffled(plan.seed, plan.rows, before + epoch * (before + 2 * (plan.rows - 1)))


@lru_cache(maxsize=4)
def _shuffled(seed: int, rows: int, skipped: int) -> Ints:
    generator = Generator(seed)
    while skipped > 0:
        skipped -= len(generator.drawn(min(skipped, 1 << 22)))
    return generator.shuffled(rows)
