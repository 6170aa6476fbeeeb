"""What a workload is: a training whose memory is recorded, and what there is to be found in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

MANY_ENTRIES = 200_000


@dataclass(frozen=True, slots=True)
class Workload:
    """A training whose memory is recorded.

    Args:
        name: What it is called.
        start: Runs it on a device, and returns whatever has to live until the snapshot is taken.
        shows: Findings that must be told.
        may: Further findings, of a warning or an error, that may be told.
        limit: Bytes that the process may take; 0 for all that there are.
        expandable: Whether the allocator's segments are expandable.
        history: Whether events are recorded.
        entries: The most of them that are kept.
        devices: How many devices it takes.
        needs_cuda: Whether it uses what no model of the allocator has.
    """

    name: str
    start: Callable[[torch.device], object]
    shows: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    limit: int = 0
    expandable: bool = False
    history: bool = True
    entries: int = MANY_ENTRIES
    devices: int = 1
    needs_cuda: bool = False
