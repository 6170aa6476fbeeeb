"""A memory snapshot as tables of numbers: what every later step computes on."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.memory.stacks import Stacks

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Action(IntEnum):
    """What the allocator did; the names are those in a snapshot."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    OOM = 7
    SNAPSHOT = 8
    OTHER = 9


@dataclass(frozen=True, slots=True)
class Segments:
    """Memory taken from the device. All columns have shape (segments,); sizes in bytes."""

    address: Ints
    size: Ints
    stream: Ints
    small: Bools
    expandable: Bools
    pool: Ints
    """Number of the private pool in the order of appearance; 0 is the default pool."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Pieces of segments when the snapshot was taken. All columns have shape (blocks,); sizes in bytes."""

    address: Ints
    size: Ints
    requested: Ints
    live: Bools
    pending: Bools
    """Freed, but another stream may still use it."""
    stack: Ints
    segment: Ints


@dataclass(frozen=True, slots=True)
class Events:
    """The recorded history, oldest first. All columns have shape (events,); `address` of an OOM is the free memory."""

    action: Ints
    address: Ints
    size: Ints
    time: Ints
    stack: Ints
    stated: Ints
    """Category that torch's profiler wrote, as its place in `layout.PROFILER`; -1 where it wrote none."""

    def __len__(self) -> int:
        return len(self.action)

    def since(self, first: int) -> Events:
        """Return the events from one on."""
        return Events(*(getattr(self, column.name)[first:] for column in fields(self)))


@dataclass(frozen=True, slots=True)
class Annotation:
    """A named moment: the start of a `record_function` range, such as ProfilerStep#3."""

    name: str
    time: int
    device: int


@dataclass(frozen=True, slots=True)
class DeviceTables:
    """One device."""

    device: int
    segments: Segments
    blocks: Blocks
    events: Events


@dataclass(slots=True)
class SnapshotTables:
    """A snapshot as read.

    Args:
        path: Where it was read.
        layout: What it is: "snapshot", "segments only", "profiler timeline".
        devices: One entry per device that holds or did anything.
        stacks: The stacks that the columns named `stack` point into.
        annotations: Named moments, in order of time.
        settings: The allocator's settings, as far as recorded.
        notes: What was skipped or guessed.
    """

    path: str
    layout: str
    devices: list[DeviceTables]
    stacks: Stacks
    annotations: list[Annotation] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
