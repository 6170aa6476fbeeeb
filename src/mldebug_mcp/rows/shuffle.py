"""PyTorch's shuffling on the processor, in numpy: the same numbers from the same seed, so that torch is not needed.

`torch.Generator` is MT19937 seeded with 32 bits, and `torch.randperm` a Fisher-Yates shuffle from the front
(https://github.com/pytorch/pytorch, aten/src/ATen/native/TensorFactories.cpp, `randperm_cpu`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mldebug_mcp.limits import unhurried

Ints = npt.NDArray[np.int64]

MOST_ROWS = 10_000_000
"""Rows that are shuffled: some ten seconds' work, and far below the number from which torch draws 64 bits each."""


class Generator:
    """The numbers of a `torch.Generator` on the processor.

    Args:
        seed: What `manual_seed` was given; 32 bits of it count, as in torch.
    """

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.RandomState(seed & 0xFFFFFFFF)

    def drawn(self, count: int) -> Ints:
        """Return the next numbers of 32 bits."""
        return self._numbers.randint(0, 2**32, count, dtype=np.uint32).astype(np.int64)

    def shuffled(self, rows: int, first: int | None = None) -> Ints:
        """Return the first of `torch.randperm(rows)`, by default all of it; the last call, where it is not all."""
        wanted = rows if first is None else min(first, rows)
        swaps = min(wanted, rows - 1)
        with unhurried():  # bounded by MOST_ROWS, whatever a file says
            partners = np.arange(swaps) + self.drawn(swaps) % np.arange(rows, rows - swaps, -1)
            order = list(range(rows))
            for place, partner in enumerate(partners.tolist()):
                order[place], order[partner] = order[partner], order[place]
            return np.array(order[:wanted], np.int64)
