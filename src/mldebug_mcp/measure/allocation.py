"""What the message of a failed allocation counts: asked for, allocated, and reserved without an allocation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mldebug_mcp.logs.run import Message, Run
from mldebug_mcp.measure.unknown import CannotTell

_SIZE = r"([\d.]+) ?([KMGT])i?B"
REQUEST = re.compile(rf"Tried to allocate {_SIZE}", re.IGNORECASE)
UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated", re.IGNORECASE)
ALLOCATED = re.compile(rf"{_SIZE} (?:already allocated|is allocated by PyTorch)", re.IGNORECASE)
RESERVED = re.compile(rf"{_SIZE} reserved in total", re.IGNORECASE)
FREE = re.compile(rf"{_SIZE} (?:is )?free\b(?!.*\ballowed\b)", re.IGNORECASE)
"""Not where the process may have a part of the device only."""
_BYTES = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
"""Bytes of a unit. Source: IEC 80000-13."""
GIB = _BYTES["G"]
"""Bytes. Source: IEC 80000-13."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """An allocation that failed, in bytes.

    Args:
        message: Where it is told.
        asked: What was asked for.
        allocated: What was allocated, 0 where that is not told.
        unused: What was reserved without an allocation or, where it is more, free; None where that is not told.
    """

    message: Message
    asked: float
    allocated: float
    unused: float | None


def failed_allocation(run: Run) -> Allocation:
    """Return the allocation that ended a run, the first that tells what was unused.

    Raises CannotTell if no message names its size.
    """
    told = [one for message in run.fatal if (one := _told(message)) is not None]
    if not told:
        raise CannotTell("no message of a failed allocation that ended the run and names its size")
    return next((one for one in told if one.unused), told[0])


def _told(message: Message) -> Allocation | None:
    asked, stated, reserved, allocated, free = (
        _bytes(one, message) for one in (REQUEST, UNUSED, RESERVED, ALLOCATED, FREE)
    )
    if stated is None and reserved is not None and allocated is not None:
        stated = reserved - allocated
    unused = None if stated is None else max(stated, free or 0.0)
    return None if asked is None else Allocation(message, asked, allocated or 0.0, unused)


def _bytes(pattern: re.Pattern[str], message: Message) -> float | None:
    found = pattern.search(message.text)
    try:
        return float(found[1]) * _BYTES[found[2].upper()] if found else None
    except ValueError:
        return None
