"""What the message of a failed allocation counts, and whether it shows free memory that lies in pieces."""

from __future__ import annotations

import re

from mldebug_mcp.core.lazy import dataclass, regex

_SIZE = r"(?<![\d.])(\d{1,15}(?:\.\d{1,15})?) ?([KMGT])(?:i?B|b)"
_BYTES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""Bytes of a unit. Source: IEC 80000-13."""
REQUEST = regex(rf"(?i)Tried to allocate {_SIZE}")
_UNUSED = regex(rf"(?i){_SIZE} is reserved by PyTorch but unallocated")
_ALLOCATED = regex(rf"(?i){_SIZE} (?:already allocated|is allocated by PyTorch)")
_RESERVED = regex(rf"(?i){_SIZE} reserved in total")
_FREE = regex(rf"(?i){_SIZE} (?:is )?free\b")
_ALLOWED = regex(rf"(?i){_SIZE} allowed")
"""What a process may take where it may not have the whole device."""

MIN_SHARE_OF_RESERVED = 0.07
"""Of all that is reserved. Chosen: a process that is full has a little unused as well."""
ROOM = 64 * _BYTES["M"]
"""In bytes: the allocator asks for more than a tensor needs, in units of 2 and of 20 MiB. Chosen."""


def lies_in_pieces(asked: float, allocated: float, unused: float, free: float) -> bool:
    """Return whether a request failed although more than it asked for was unused: that was not in one piece.

    A little unused memory is ordinary, and with less than the request the device is full. Sizes are in bytes. Source of
    the rule: PyTorch, "CUDA semantics: memory management", which speaks of much that is reserved and unallocated.

    Args:
        asked: What was asked for.
        allocated: What tensors held.
        unused: What was reserved without an allocation.
        free: What the device had left for this process.
    """
    return unused >= max(asked, MIN_SHARE_OF_RESERVED * (allocated + unused)) or free >= asked + ROOM


@dataclass(frozen=True, slots=True)
class PrintedAllocation:
    """An allocation that failed, in bytes, as its message counts it.

    Args:
        asked: What was asked for.
        allocated: What tensors held, 0 if unknown.
        unused: What was reserved without an allocation; None if unknown.
        free: What the device had left; 0 if unknown, or if the process may not take all of it.
    """

    asked: float
    allocated: float
    unused: float | None
    free: float

    @property
    def in_pieces(self) -> bool:
        """Whether the message shows free memory that lies in pieces."""
        return lies_in_pieces(self.asked, self.allocated, self.unused or 0.0, self.free)


def printed_allocation(text: str) -> PrintedAllocation | None:
    """Return what a message of PyTorch's allocator counts; None where it does not say what was asked for."""
    asked, unused, allocated, reserved, free = (
        _first(pattern, text) for pattern in (REQUEST, _UNUSED, _ALLOCATED, _RESERVED, _FREE)
    )
    if asked is None:
        return None
    if unused is None and reserved is not None and allocated is not None:
        unused = reserved - allocated
    return PrintedAllocation(asked, allocated or 0.0, unused, 0.0 if _ALLOWED.search(text) else free or 0.0)


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return float(found[1]) * _BYTES[found[2].upper()] if found else None
