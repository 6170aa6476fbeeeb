"""Times of the parts of a step: by the wall where the loop computes, by events where a GPU does, without waiting."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Stamp:
    """A moment.

    Args:
        wall: Seconds of `time.perf_counter`.
        event: The same moment in the work of the GPU; None where there is none.
    """

    wall: float
    event: Any = None


def now(*, on_gpu: bool) -> Stamp:
    """Return this moment, in the work of the GPU too if there is one."""
    if not on_gpu:
        return Stamp(time.perf_counter())
    event = sys.modules["torch"].cuda.Event(enable_timing=True)
    event.record()
    return Stamp(time.perf_counter(), event)


def seconds(first: Stamp, last: Stamp) -> float:
    """Return the time between two moments; the GPU's must have come."""
    if first.event is None or last.event is None:
        return last.wall - first.wall
    return float(first.event.elapsed_time(last.event)) / 1000
