"""What torch itself counts of a device's memory."""

from __future__ import annotations

from typing import NamedTuple


class Totals(NamedTuple):
    """Bytes, as `torch.cuda.memory_stats` counts them.

    Args:
        allocated: Held by tensors at the end.
        reserved: Held by the allocator at the end.
        peak: The most that tensors held.
        requested: Asked for by the tensors of the end, without rounding.
    """

    allocated: int
    reserved: int
    peak: int
    requested: int
