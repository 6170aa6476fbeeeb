"""Times of the parts of a step: by the wall where the loop computes, by events where a GPU does, without waiting."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

Moment: TypeAlias = Any
"""Seconds of `time.perf_counter`, or an event in the work of the GPU."""


def clock_of(*, on_gpu: bool) -> Callable[[], Moment]:
    """Return what tells this moment."""
    return _event if on_gpu else time.perf_counter


def seconds(first: Moment, last: Moment) -> float:
    """Return the time between two moments of one clock; the GPU's must have come."""
    found: float = last - first if isinstance(first, float) else first.elapsed_time(last) / 1000
    return found


def _event() -> Moment:
    event = sys.modules["torch"].cuda.Event(enable_timing=True)
    event.record()
    return event
